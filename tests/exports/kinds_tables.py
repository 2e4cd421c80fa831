"""Networks for tables, sparse features, graphs, point clouds and text: look-ups, scatters, sets and strings."""

from __future__ import annotations

import numpy as np
import openvino as ov
import torch
from kinds_parts import Kind, Layers, Made, drawn, exported, taking
from openvino import opset16 as op
from torch import Tensor, nn


def sparse_features(rng: np.random.Generator, batch: int) -> dict[str, np.ndarray]:
    """Four sparse features of 0 to 5 values a row, each as its indices [n, 2] and values [n], and dense ones."""
    found: dict[str, np.ndarray] = {"dense": rng.standard_normal((batch, 13), np.float32)}
    for number in range(4):
        counts = rng.integers(0, 6, batch)
        rows = np.repeat(np.arange(batch), counts)
        columns = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        found[f"indices{number}"] = np.stack([rows, columns], 1)
        found[f"values{number}"] = rng.integers(0, 20000, len(rows))
    return found


def sparse_embeddings(rng: np.random.Generator) -> Made:
    """Wide and deep, as TensorFlow's frontend writes embedding_lookup_sparse: rows filled, then summed by segments."""
    layers = Layers(rng)
    given = [sparse_features(rng, batch) for (batch,) in [(256,), *drawn(rng, (100, 300))]]
    open_axes = dict.fromkeys(given[0], (0,))
    parameters = taking(given[0], open_axes)
    named = {node.get_friendly_name(): node for node in parameters}
    batch = op.gather(op.shape_of(named["dense"]), np.int64(0), np.int64(0))
    shape = op.concat([op.unsqueeze(batch, 0), np.array([5], np.int64)], 0)
    parts = [named["dense"]]
    for number in range(4):
        filled = op.sparse_fill_empty_rows(named[f"values{number}"], shape, named[f"indices{number}"], np.int64(0))
        rows = op.squeeze(op.strided_slice(filled.output(0), [0, 0], [0, 1], [1, 1], [1, 0], [1, 0]), np.array([1]))
        table = op.constant(layers.weights(20000, 32))
        # a row that was empty has the embedding of the default value, which TensorFlow then makes zeros
        sums = op.embedding_segments_sum(
            table, op.convert(filled.output(1), "i32"), op.convert(rows, "i32"), op.convert(batch, "i32"), np.int32(0)
        )
        # OpenVINO 2026.4 neither selects by this boolean nor negates it: "unsupported src_prc"
        full = op.subtract(np.float32(1), op.unsqueeze(op.convert(filled.output(2), "f32"), 1))
        parts.append(op.multiply(sums, full))
    node = op.concat(parts, 1)
    node = layers.dense(layers.dense(node, 256, active=True), 128, active=True)
    return Made(ov.Model([op.sigmoid(layers.dense(node, 1))], parameters), given[0], given[1:])


class Dlrm(nn.Module):
    """Dense features by an MLP, 16 bags, all products of two of them, and another MLP."""

    def __init__(self) -> None:
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(13, 128), nn.ReLU(), nn.Linear(128, 32), nn.ReLU())
        self.bags = nn.ModuleList(nn.EmbeddingBag(20000, 32, mode="sum") for _ in range(16))
        pairs = torch.tril_indices(17, 17, -1)
        self.register_buffer("pairs", pairs[0] * 17 + pairs[1])
        self.top = nn.Sequential(
            nn.Linear(136 + 32, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1), nn.Sigmoid()
        )

    def forward(self, dense: Tensor, items: Tensor, offsets: Tensor) -> Tensor:
        x = self.bottom(dense)
        parts = torch.stack([x, *(bag(items[n], offsets[n]) for n, bag in enumerate(self.bags))], 1)
        pairs = (parts @ parts.transpose(1, 2)).flatten(1)[:, self.pairs]
        return self.top(torch.cat([x, pairs], 1))


def dlrm(rng: np.random.Generator) -> Made:
    """Batches of 64, bags of 3 on average."""
    counts = rng.multinomial(64 * 3, np.full(64, 1 / 64), 16)
    inputs = {
        "dense": rng.standard_normal((64, 13), np.float32),
        "items": rng.integers(0, 20000, (16, 64 * 3)),
        "offsets": np.cumsum(counts, 1) - counts,
    }
    return exported(Dlrm(), inputs)


class Ranker(nn.Module):
    """Whom one user is shown next: an attention over what was seen, for one request. Truly small."""

    def __init__(self) -> None:
        super().__init__()
        self.items, self.query = nn.Embedding(5000, 32), nn.Linear(32, 32)
        self.score = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, seen: Tensor, offered: Tensor) -> Tensor:
        past, ahead = self.items(seen), self.items(offered)
        weights = torch.softmax(self.query(ahead) @ past.transpose(1, 2), -1)
        return self.score(torch.cat([weights @ past, ahead], -1)).squeeze(-1)


def ranker(rng: np.random.Generator) -> Made:
    given = [
        {"seen": rng.integers(0, 5000, (1, seen)), "offered": rng.integers(0, 5000, (1, offered))}
        for seen, offered in [(30, 50), *drawn(rng, (10, 60), (20, 80))]
    ]
    return exported(Ranker(), given[0], {"seen": (1,), "offered": (1,)}, given[1:])


def tabular(rng: np.random.Generator) -> Made:
    """Numbers put into buckets, their quantiles searched for, each with an embedding; and a net on top."""
    layers = Layers(rng)
    inputs = {"numbers": rng.standard_normal((2048, 24), np.float32) * 2}
    (x,) = taking(inputs)
    edges = np.sort(rng.standard_normal(63)).astype(np.float32)
    buckets = op.bucketize(x, edges, "i32", True)
    embedded = op.gather(layers.weights(64, 8), buckets, 0)
    quantiles = np.sort(rng.standard_normal((24, 255)), axis=1).astype(np.float32)
    found = op.search_sorted(op.constant(quantiles), op.transpose(x, np.array([1, 0])), False)
    ranks = op.divide(op.convert(op.transpose(found, np.array([1, 0])), "f32"), np.float32(255))
    node = op.concat([op.reshape(embedded, np.array([0, -1]), True), ranks], 1)
    for _ in range(3):
        node = layers.dense(node, 256, active=True)
    return Made(ov.Model([layers.dense(node, 2)], [x]), inputs)


class GraphNet(nn.Module):
    """Messages along edges, added up at their ends; and attention that is normalised at each end."""

    def __init__(self) -> None:
        super().__init__()
        self.messages = nn.ModuleList(nn.Linear(128 + 16, 128) for _ in range(3))
        self.updates = nn.ModuleList(nn.Linear(256, 128) for _ in range(3))
        self.weigh = nn.ModuleList(nn.Linear(128, 1) for _ in range(3))
        self.first, self.last = nn.Linear(32, 128), nn.Linear(128, 7)

    def forward(self, nodes: Tensor, edges: Tensor, features: Tensor) -> Tensor:
        x, (source, target) = self.first(nodes), edges.unbind(0)
        for message, update, weigh in zip(self.messages, self.updates, self.weigh, strict=True):
            sent = torch.relu(message(torch.cat([x[source], features], 1)))
            weight = weigh(sent).clamp(-5, 5).exp()
            zeros = torch.zeros(x.shape[0], 1)
            total = zeros.index_add(0, target, weight)
            rows = target.unsqueeze(1).expand(-1, 128)
            found = torch.zeros_like(x).scatter_add(0, rows, sent * (weight / (total[target] + 1e-6)))
            x = torch.relu(update(torch.cat([x, found], 1))) + x
        return self.last(x)


def graph_network(rng: np.random.Generator) -> Made:
    given = [
        {
            "nodes": rng.standard_normal((nodes, 32), np.float32),
            "edges": rng.integers(0, nodes, (2, edges)),
            "features": rng.standard_normal((edges, 16), np.float32),
        }
        for nodes, edges in [(2000, 8000), *drawn(rng, (1000, 2500), (5000, 9000))]
    ]
    return exported(GraphNet(), given[0], {"nodes": (0,), "edges": (1,), "features": (0,)}, given[1:])


class PointNet(nn.Module):
    """Points in pillars: each is given the mean of its pillar, and each pillar the largest features of its points."""

    def __init__(self) -> None:
        super().__init__()
        self.point = nn.Sequential(nn.Linear(7, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.net = nn.Sequential(
            nn.Conv2d(64, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(), nn.Conv2d(128, 18, 1)
        )

    def forward(self, points: Tensor) -> Tensor:
        cells = ((points[:, :2] + 1) * 32).long().clamp(0, 63)
        pillar = cells[:, 0] * 64 + cells[:, 1]
        index = pillar.unsqueeze(1)
        count = torch.zeros(4096, 1).scatter_add(0, index, torch.ones_like(points[:, :1]))
        sums = torch.zeros(4096, 3).scatter_add(0, index.expand(-1, 3), points[:, :3])
        mean = (sums / count.clamp(min=1))[pillar]
        features = self.point(torch.cat([points, points[:, :3] - mean], 1))
        pillars = torch.zeros(4096, 64).scatter_reduce(0, index.expand(-1, 64), features, "amax", include_self=True)
        return self.net(pillars.t().reshape(1, 64, 64, 64))


def point_pillars(rng: np.random.Generator) -> Made:
    given = [
        {"points": rng.uniform(-1, 1, (count, 4)).astype(np.float32)}
        for (count,) in [(20000,), *drawn(rng, (12000, 26000))]
    ]
    return exported(PointNet(), given[0], {"points": (0,)}, given[1:])


class Neighbours(nn.Module):
    """DGCNN: the 16 nearest points of each by TopK of distances, gathered, and the largest of what they say."""

    def __init__(self) -> None:
        super().__init__()
        self.edges = nn.ModuleList([nn.Linear(6, 64), nn.Linear(128, 64)])
        self.score = nn.Linear(128, 40)

    def forward(self, points: Tensor) -> Tensor:
        x, kept = points, []
        for edge in self.edges:
            squares = (x * x).sum(2, keepdim=True)
            distances = squares + squares.transpose(1, 2) - 2 * x @ x.transpose(1, 2)
            near = torch.topk(distances, 16, dim=2, largest=False).indices
            index = near.flatten(1).unsqueeze(2).expand(-1, -1, x.shape[2])
            others = x.gather(1, index).unflatten(1, (x.shape[1], 16))
            own = x.unsqueeze(2).expand_as(others)
            x = torch.relu(edge(torch.cat([others - own, own], 3))).amax(2)
            kept.append(x)
        return self.score(torch.cat(kept, 2).amax(1))


def nearest_points(rng: np.random.Generator) -> Made:
    return exported(Neighbours(), {"points": rng.standard_normal((2, 1024, 3), np.float32)})


def distinct_items(rng: np.random.Generator) -> Made:
    """A session of clicks: its distinct items with their counts, those that matter, and where each had stood."""
    layers = Layers(rng)
    given = [
        {"items": (rng.zipf(1.3, count) % 3000).astype(np.int64)} for (count,) in [(20000,), *drawn(rng, (9000, 26000))]
    ]
    (items,) = taking(given[0], {"items": (0,)})
    unique = op.unique(items, None, True, "i64", "i64")
    counts = op.convert(unique.output(3), "f32")
    table = layers.weights(3000, 64)
    embedded = op.multiply(op.gather(table, unique.output(0), 0), op.unsqueeze(op.log(counts), 1))
    often = op.squeeze(op.non_zero(op.greater(counts, np.float32(1)), "i64"), np.array([0]))
    chosen = layers.dense(op.gather(embedded, often, 0), 64, active=True)
    shape = op.shape_of(embedded)
    back = op.scatter_update(op.broadcast(np.float32(0), shape), often, chosen, np.int64(0))
    each = op.gather(op.add(back, embedded), unique.output(2), 0)
    score = layers.dense(op.relu(each), 8)
    clipped = op.select(op.greater(score, np.float32(0)), score, op.multiply(score, np.float32(0.1)))
    return Made(ov.Model([clipped], [items]), given[0], given[1:])


def strings(rng: np.random.Generator) -> Made:
    """Words by their letters: strings taken apart, letters hashed by threes into a table; and put together again."""
    layers = Layers(rng)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    given = [
        {"words": np.array(["".join(rng.choice(letters, rng.integers(3, 13))) for _ in range(count)])}
        for (count,) in [(2000,), *drawn(rng, (900, 2600))]
    ]
    words = op.parameter(ov.PartialShape([-1]), ov.Type.string, name="words")
    words.output(0).set_names({"words"})
    begins, ends, symbols = op.string_tensor_unpack(words).outputs()
    codes = op.convert(symbols, "i32")
    following = op.roll(codes, np.array([-1]), np.array([0]))
    hashed = op.floor_mod(op.add(op.multiply(codes, np.int32(31)), following), np.int32(4096))
    sums = op.cum_sum(op.gather(layers.weights(4096, 64), hashed, 0), np.int32(0), False, False)
    sums = op.pad(sums, np.array([1, 0]), np.array([0, 0]), "constant", np.float32(0))
    lengths = op.convert(op.subtract(ends, begins), "f32")
    bags = op.subtract(op.gather(sums, ends, np.int64(0)), op.gather(sums, begins, np.int64(0)))
    scores = layers.dense(op.tanh(op.divide(bags, op.unsqueeze(lengths, 1))), 16)
    upper = op.convert(op.subtract(codes, op.constant(np.int32(32))), "u8")
    shouted = op.string_tensor_pack(begins, ends, upper)
    return Made(ov.Model([scores.output(0), shouted.output(0)], [words]), given[0], given[1:])


KINDS: dict[str, Kind] = {
    "sparse_embeddings": sparse_embeddings,
    "dlrm": dlrm,
    "ranker": ranker,
    "tabular": tabular,
    "graph_network": graph_network,
    "point_pillars": point_pillars,
    "nearest_points": nearest_points,
    "distinct_items": distinct_items,
    "strings": strings,
}
