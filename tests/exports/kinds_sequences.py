"""Networks for speech, language and time series: recurrence, loops, branches, search, and kinds of attention."""

from __future__ import annotations

import numpy as np
import openvino as ov
import torch
import transformers as hf
from export import Fields, tokens, translation
from kinds_parts import Kind, Layers, Made, drawn, exported, settled, taking
from openvino import opset16 as op
from torch import Tensor, nn
from torch.nn import functional

SMALL = {"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 4, "num_attention_heads": 6}


def sound(rng: np.random.Generator, samples: int, batch: int = 1) -> np.ndarray:
    """Tones with noise."""
    time = np.arange(samples) / 16000
    tones = sum(np.sin(2 * np.pi * rng.uniform(80, 3000, (batch, 1)) * time) for _ in range(5))
    return (0.1 * tones + 0.02 * rng.standard_normal((batch, samples))).astype(np.float32)


def bert_any_length(rng: np.random.Generator) -> Made:
    model = hf.BertForSequenceClassification(hf.BertConfig(**SMALL, num_labels=5))
    sizes = [(1, 48), *drawn(rng, (1, 3), (16, 128))]
    given = [tokens(30522, *size, segments=True)(rng) for size in sizes]
    return exported(Fields(model, given[0], ("logits",)), given[0], dict.fromkeys(given[0], (0, 1)), given[1:])


def bert_bf16(rng: np.random.Generator) -> Made:
    """Weights and activations in bf16."""
    model = hf.BertModel(hf.BertConfig(**SMALL)).to(torch.bfloat16)
    inputs = tokens(30522, 2, 64)(rng)
    return exported(Fields(model, inputs, ("last_hidden_state",)), inputs)


def t5_any_length(rng: np.random.Generator) -> Made:
    """An encoder and a decoder."""
    sizes = {"d_model": 384, "d_ff": 1024, "num_layers": 4, "num_heads": 6, "d_kv": 64}
    model = hf.T5ForConditionalGeneration(hf.T5Config(**sizes, use_cache=False))
    given = [translation(32128, *size)(rng) for size in [(1, 40, 24), *drawn(rng, (1, 2), (16, 96), (8, 48))]]
    return exported(Fields(model, given[0], ("logits",)), given[0], dict.fromkeys(given[0], (0, 1)), given[1:])


def wav2vec2(rng: np.random.Generator) -> Made:
    """Speech to letters, of any duration: 1D convolutions, then a transformer."""
    config = hf.Wav2Vec2Config(**SMALL, conv_dim=(256,) * 7, num_conv_pos_embeddings=64, vocab_size=32)
    given = [{"input_values": sound(rng, samples)} for (samples,) in [(32000,), *drawn(rng, (16000, 40000))]]
    model = hf.Wav2Vec2ForCTC(config)
    return exported(Fields(model, given[0], ("logits",)), given[0], {"input_values": (1,)}, given[1:])


def conformer(rng: np.random.Generator) -> Made:
    """Convolution and relative attention, block by block."""
    config = hf.Wav2Vec2ConformerConfig(
        **SMALL, conv_dim=(128,) * 7, vocab_size=32, position_embeddings_type="relative", max_source_positions=500
    )
    inputs = {"input_values": sound(rng, 32000)}
    return exported(Fields(hf.Wav2Vec2ConformerForCTC(config), inputs, ("logits",)), inputs)


class Forecaster(nn.Module):
    """PatchTST: patches of many series that are normalised, each a sequence of its own."""

    def __init__(self, length: int = 336, ahead: int = 96) -> None:
        super().__init__()
        places = torch.arange(0, length - 15, 8)[:, None] + torch.arange(16)
        self.register_buffer("places", places)
        self.embed, self.positions = nn.Linear(16, 128), nn.Parameter(torch.randn(len(places), 128) / 10)
        layer = nn.TransformerEncoderLayer(128, 8, 512, activation="gelu", batch_first=True)
        self.encode = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.ahead = nn.Linear(len(places) * 128, ahead)

    def forward(self, past: Tensor) -> Tensor:
        mean, deviation = past.mean(1, keepdim=True), past.std(1, keepdim=True) + 1e-5
        series = ((past - mean) / deviation).transpose(1, 2).flatten(0, 1)
        x = self.encode(self.embed(series[:, self.places]) + self.positions)
        found = self.ahead(x.flatten(1)).unflatten(0, (past.shape[0], past.shape[2])).transpose(1, 2)
        return found * deviation + mean


def time_series(rng: np.random.Generator) -> Made:
    given = [
        {"past": np.cumsum(rng.standard_normal((1, 336, n), np.float32), axis=1)}
        for (n,) in [(21,), *drawn(rng, (5, 40))]
    ]
    return exported(Forecaster(), given[0], {"past": (2,)}, given[1:])


class Experts(nn.Module):
    """Two of eight experts for each token, as transformers writes it: those that nobody chose are passed over."""

    def __init__(self, size: int, count: int = 8) -> None:
        super().__init__()
        self.gate = nn.Linear(size, count, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(size, 2 * size), nn.SiLU(), nn.Linear(2 * size, size)) for _ in range(count)
        )

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        weights, chosen = torch.topk(torch.softmax(self.gate(flat), 1), 2, dim=1)
        weights = weights / weights.sum(1, keepdim=True)
        mask = functional.one_hot(chosen, len(self.experts)).permute(2, 1, 0)
        result = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            place, rows = torch.where(mask[number])
            result = result.index_add(0, rows, expert(flat[rows]) * weights[rows, place, None])
        return result.view(x.shape)


class MixtureOfExperts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(8000, 256)
        self.attention = nn.ModuleList(nn.MultiheadAttention(256, 4, batch_first=True) for _ in range(4))
        self.norms = nn.ModuleList(nn.LayerNorm(256) for _ in range(8))
        self.experts = nn.ModuleList(Experts(256) for _ in range(4))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        for number, experts in enumerate(self.experts):
            y = self.norms[2 * number](x)
            x = x + self.attention[number](y, y, y, need_weights=False)[0]
            x = x + experts(self.norms[2 * number + 1](x))
        return x


def mixture_of_experts(rng: np.random.Generator) -> Made:
    given = [{"ids": rng.integers(0, 8000, (1, size))} for (size,) in [(64,), *drawn(rng, (24, 100))]]
    return exported(MixtureOfExperts(), given[0], {"ids": (1,)}, given[1:])


class Listener(nn.Module):
    """What a voice activity detector does at one rate: a spectrum by convolution, an encoder, one step of an LSTM."""

    def __init__(self, window: int) -> None:
        super().__init__()
        bins = window // 2 + 1
        self.spectrum = nn.Conv1d(1, 2 * bins, window, window // 2, bias=False)
        plan = [(bins, 128, 1), (128, 64, 2), (64, 64, 2), (64, 128, 1)]
        self.encoder = nn.Sequential(
            *(part for own, size, step in plan for part in (nn.Conv1d(own, size, 3, step, 1), nn.ReLU()))
        )
        self.gates = nn.Linear(256, 512)
        self.decoder = nn.Sequential(nn.ReLU(), nn.Conv1d(128, 1, 1), nn.Sigmoid())
        self.bins, self.pad = bins, window // 4

    def forward(self, audio: Tensor, state: Tensor) -> Tensor:
        padded = functional.pad(audio.unsqueeze(1), [0, self.pad], mode="reflect")
        parts = self.spectrum(padded)
        power = torch.sqrt(parts[:, : self.bins] ** 2 + parts[:, self.bins :] ** 2)
        features = self.encoder(power)[:, :, -1]
        i, f, g, o = self.gates(torch.cat([features, state[0]], 1)).chunk(4, 1)
        c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return torch.cat([self.decoder(h.unsqueeze(-1)).mean(2), h, c], 1)


class VoiceActivity(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = Listener(256), Listener(128)

    def forward(self, audio: Tensor, state: Tensor, rate: Tensor) -> tuple[Tensor, Tensor]:
        if bool(rate == 16000):  # noqa: SIM108, the script has an If for it
            found = self.wide(audio, state)
        else:
            found = self.narrow(audio, state)
        return found[:, :1], torch.stack([found[:, 1:129], found[:, 129:]])


def voice_activity(rng: np.random.Generator) -> Made:
    """Silero's form: the sampling rate decides which of two nets listens to 32 ms of sound."""
    state = rng.standard_normal((2, 1, 128)).astype(np.float32) * np.float32(0.1)
    given = [
        {"audio": sound(rng, samples), "state": state, "rate": np.array(rate, np.int64)}
        for samples, rate in ((576, 16000), (288, 8000))
    ]
    scripted = torch.jit.script(VoiceActivity().eval())
    return exported(scripted, given[0], {"audio": (1,)}, given[1:])


class Captioner(nn.Module):
    """Greedy decoding with attention over a memory, until all sequences have ended."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.gates, self.fresh = nn.Embedding(4000, 256), nn.Linear(768, 512), nn.Linear(768, 256)
        self.query, self.score = nn.Linear(256, 256), nn.Linear(256, 4000)

    def forward(self, memory: Tensor, limit: int) -> Tensor:
        state = torch.tanh(memory.mean(1))
        token = torch.zeros([memory.shape[0]], dtype=torch.long)
        found = token.unsqueeze(1)
        done = token > 0
        step = 0
        while step < limit and not bool(done.all()):
            weights = torch.softmax(torch.matmul(memory, self.query(state).unsqueeze(2)).squeeze(2) / 16.0, 1)
            context = (memory * weights.unsqueeze(2)).sum(1)
            seen = torch.cat([self.embed(token), context], 1)
            reset, kept = torch.sigmoid(self.gates(torch.cat([seen, state], 1))).chunk(2, 1)
            fresh = torch.tanh(self.fresh(torch.cat([seen, reset * state], 1)))
            state = kept * state + (1 - kept) * fresh
            token = self.score(state).argmax(1)
            done = torch.logical_or(done, token == 1)
            found = torch.cat([found, token.unsqueeze(1)], 1)
            step += 1
        return found


def scripted_decoder(rng: np.random.Generator) -> Made:
    inputs = {"memory": rng.standard_normal((2, 49, 256), np.float32), "limit": np.array(32, np.int64)}
    return exported(torch.jit.script(Captioner().eval()), inputs)


class Tree(nn.Module):
    """A stack machine of a scripted model: a loop over steps, each of which takes one of two branches."""

    def __init__(self) -> None:
        super().__init__()
        self.combine, self.read = nn.Linear(256, 128), nn.Linear(64, 128)

    def forward(self, words: Tensor, order: Tensor) -> Tensor:
        total = torch.zeros([1, 128])
        for number in range(order.shape[0]):
            if bool(order[number] > 0):
                total = torch.tanh(self.combine(torch.cat([total, self.read(words[number : number + 1])], 1)))
            else:
                total = torch.relu(total * 0.9 + self.read(words[number : number + 1]))
        return total


def scripted_branches(rng: np.random.Generator) -> Made:
    inputs = {"words": rng.standard_normal((64, 64), np.float32), "order": rng.integers(0, 2, 64)}
    return exported(torch.jit.script(Tree().eval()), inputs)


def while_loop(rng: np.random.Generator) -> Made:
    """A deep equilibrium: a layer applied until its state hardly changes, which the data decides."""
    layers = Layers(rng)
    inputs = {"x": rng.standard_normal((8, 256), np.float32)}
    (x,) = taking(inputs)
    state, given = (op.parameter([8, 256], np.float32) for _ in range(2))
    mixed = op.matmul(state, layers.weights(256, 256, terms=256) * np.float32(0.9), False, True)
    after = op.tanh(op.add(mixed, given))
    moved = op.reduce_max(op.abs(op.subtract(after, state)), np.array([0, 1]), False)
    going = op.greater(moved, np.float32(1e-4))
    body = ov.Model([op.result(going), op.result(after)], [state, given])
    loop = op.loop(op.constant(np.int64(200)).output(0), op.constant(True).output(0))
    loop.set_function(body)
    loop.set_special_body_ports([-1, 0])
    loop.set_invariant_input(given, layers.dense(x, 256).output(0))
    loop.set_merged_input(state, op.constant(np.zeros((8, 256), np.float32)).output(0), body.results[1].output(0))
    found = loop.get_iter_value(body.results[1].output(0), -1)
    return Made(ov.Model([layers.dense(found.get_node(), 10)], [x]), inputs)


def lstm_iterator(rng: np.random.Generator) -> Made:
    """Two layers of LSTM as TensorIterators, as old converters write them, one of them backwards."""
    layers = Layers(rng)
    inputs = {"features": rng.standard_normal((100, 1, 128), np.float32)}
    (x,) = taking(inputs)
    node = x.output(0)
    for step in (1, -1):
        own = node.partial_shape[2].get_length()
        row, h, c = (op.parameter(shape, np.float32) for shape in ([1, 1, own], [1, 256], [1, 256]))
        gates = layers.weights(1024, own, terms=own), layers.weights(1024, 256, terms=256), layers.weights(1024)
        cell = op.lstm_cell(op.squeeze(row, 0), h, c, *gates, 256)
        results = [op.result(op.unsqueeze(cell.output(0), 0)), op.result(cell.output(0)), op.result(cell.output(1))]
        iterator = op.tensor_iterator()
        iterator.set_body(ov.Model(results, [row, h, c]))
        first, last = (0, -1) if step == 1 else (-1, 0)
        iterator.set_sliced_input(row, node, first, step, 1, last, 0)
        for port, result in zip((h, c), results[1:], strict=True):
            zeros = op.constant(np.zeros((1, 256), np.float32))
            iterator.set_merged_input(port, zeros.output(0), result.output(0))
        node = iterator.get_concatenated_slices(results[0].output(0), first, step, 1, last, 0)
    return Made(ov.Model([op.softmax(layers.dense(node.get_node(), 40), 2)], [x]), inputs)


def beam_search(rng: np.random.Generator) -> Made:
    """A translation by 4 beams in a Loop: GRU cells, the best of all continuations, and states that follow them."""
    layers, beams, size, vocabulary, steps = Layers(rng), 4, 256, 4000, 24
    inputs = {"source": rng.standard_normal((1, 20, size), np.float32)}
    (source,) = taking(inputs)
    start = op.broadcast(op.tanh(op.reduce_mean(source, np.array([1]), False)), np.array([beams, size]))
    number = op.parameter([], np.int64)
    state, scores = op.parameter([beams, size], np.float32), op.parameter([beams, 1], np.float32)
    last, found = op.parameter([beams], np.int64), op.parameter([beams, -1], np.int64)

    embedded = op.gather(layers.weights(vocabulary, size), last, 0)
    gates = layers.weights(3 * size, size, terms=size), layers.weights(3 * size, size, terms=size)
    after = op.gru_cell(embedded, state, *gates, layers.weights(3 * size) * np.float32(0.1), size)
    chances = op.add(op.log_softmax(layers.dense(after, vocabulary), 1), scores)
    best = op.topk(
        op.reshape(chances, np.array([-1]), False), np.int64(beams), 0, "max", "value", index_element_type="i64"
    )
    beam = op.divide(best.output(1), np.int64(vocabulary))
    word = op.floor_mod(best.output(1), np.int64(vocabulary))
    longer = op.concat([op.gather(found, beam, 0), op.unsqueeze(word, 1)], 1)
    ended = op.reduce_logical_and(op.equal(word, np.int64(1)), np.array([0]), False)
    going = op.logical_and(op.logical_not(ended), op.less(number, np.int64(steps - 1)))
    nodes = [going, op.gather(after, beam, 0), op.unsqueeze(best.output(0), 1), word, longer]
    results = [op.result(node) for node in nodes]
    body = ov.Model(results, [number, state, scores, last, found])

    loop = op.loop(op.constant(np.int64(steps)).output(0), op.constant(True).output(0))
    loop.set_function(body)
    loop.set_special_body_ports([0, 0])
    first = np.array([[0], [-1e9], [-1e9], [-1e9]], np.float32)
    begins = [
        start,
        op.constant(first),
        op.constant(np.zeros(beams, np.int64)),
        op.constant(np.zeros((beams, 1), np.int64)),
    ]
    for port, begin, result in zip((state, scores, last, found), begins, results[1:], strict=True):
        loop.set_merged_input(port, begin.output(0), result.output(0))
    outputs = [loop.get_iter_value(results[place].output(0), -1) for place in (4, 2)]
    return Made(ov.Model(outputs, [source]), inputs)


def rnnt_joint(rng: np.random.Generator) -> Made:
    """The joint of a transducer over all frames and all letters so far; and its prediction network."""

    class Joint(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.predict = nn.Embedding(1024, 320), nn.LSTM(320, 320, batch_first=True)
            self.frames, self.letters, self.score = nn.Linear(512, 320), nn.Linear(320, 320), nn.Linear(320, 1025)

        def forward(self, encoded: Tensor, ids: Tensor) -> Tensor:
            predicted = self.letters(self.predict(self.embed(ids))[0])
            mixed = torch.tanh(self.frames(encoded).unsqueeze(2) + predicted.unsqueeze(1))
            return torch.log_softmax(self.score(mixed), -1)

    sizes = [(50, 20), *drawn(rng, (30, 70), (6, 30))]
    given = [
        {"encoded": rng.standard_normal((1, frames, 512), np.float32), "ids": rng.integers(0, 1024, (1, letters))}
        for frames, letters in sizes
    ]
    return exported(Joint(), given[0], {"encoded": (1,), "ids": (1,)}, given[1:])


class Acoustic(nn.Module):
    """Bidirectional recurrence over frames, as speech models of some years ago."""

    def __init__(self, cell: type[nn.RNNBase]) -> None:
        super().__init__()
        self.front = nn.Sequential(nn.Conv2d(1, 32, 3, (1, 2), 1), nn.BatchNorm2d(32), nn.Hardtanh(0, 20))
        self.layers = cell(32 * 20, 320, num_layers=2, batch_first=True, bidirectional=True)
        self.score = nn.Linear(640, 29)

    def forward(self, features: Tensor) -> Tensor:
        x = self.front(features.unsqueeze(1)).permute(0, 2, 1, 3).flatten(2)
        return torch.log_softmax(self.score(self.layers(x)[0]), 2)


def speech(rng: np.random.Generator, cell: type[nn.RNNBase]) -> Made:
    given = [
        {"features": rng.standard_normal((1, frames, 40), np.float32)} for (frames,) in [(120,), *drawn(rng, (50, 160))]
    ]
    module = settled(Acoustic(cell), torch.from_numpy(given[0]["features"]))
    return exported(module, given[0], {"features": (1,)}, given[1:])


def ctc_decoder(rng: np.random.Generator) -> Made:
    """An acoustic net in channels last order, greedy decoding, and the loss of what was said."""
    layers, frames, letters = Layers(rng), 200, 40
    inputs = {
        "features": rng.standard_normal((4, frames, 80), np.float32),
        "lengths": np.array([200, 180, 150, 99], np.int32),
        "labels": rng.integers(0, letters - 1, (4, frames)).astype(np.int32),
        "label_lengths": np.array([30, 40, 25, 12], np.int32),
    }
    features, lengths, labels, label_lengths = taking(inputs)
    node = features
    for _ in range(3):
        node = layers.dense(op.concat([node, op.roll(node, np.array([1]), np.array([1]))], 2), 384, active=True)
    logits = layers.dense(node, letters)
    decoded = op.ctc_greedy_decoder_seq_len(logits, lengths, np.int32(letters - 1))
    loss = op.ctc_loss(logits, lengths, labels, label_lengths, np.int32(letters - 1))
    outputs = [decoded.output(0), decoded.output(1), loss.output(0)]
    return Made(ov.Model(outputs, [features, lengths, labels, label_lengths]), inputs)


def reverse_sequence(rng: np.random.Generator) -> Made:
    """Both directions of a recurrence over sequences of unlike lengths, as frameworks without masks write it."""
    layers, inputs = Layers(rng), {
        "ids": rng.integers(0, 5000, (8, 60)),
        "lengths": rng.integers(10, 61, 8).astype(np.int32),
    }  # fmt: skip
    ids, lengths = taking(inputs)
    embedded = op.gather(layers.weights(5000, 128), ids, 0)
    full = op.constant(np.full(8, 60, np.int32))
    states = []
    for back in (False, True):
        x = op.reverse_sequence(embedded, lengths, 0, 1) if back else embedded
        gates = layers.weights(1, 384, 128, terms=128), layers.weights(1, 384, 128, terms=128), layers.weights(1, 384)
        zeros = op.constant(np.zeros((8, 1, 128), np.float32))
        steps = op.gru_sequence(x, zeros, full, *gates, 128, "forward")
        y = op.squeeze(steps.output(0), np.array([1]))
        states.append(op.reverse_sequence(y, lengths, 0, 1) if back else y)
    both = op.concat(states, 2)
    positions = op.range(np.int32(0), np.int32(60), np.int32(1), "i32")
    mask = op.convert(op.less(op.unsqueeze(positions, 0), op.unsqueeze(lengths, 1)), "f32")
    pooled = op.reduce_max(op.multiply(both, op.unsqueeze(mask, 2)), np.array([1]), False)
    return Made(ov.Model([layers.dense(pooled, 20)], [ids, lengths]), inputs)


class LinearAttention(nn.Module):
    """Attention as cumulative sums of keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.ModuleList(nn.Linear(256, 768) for _ in range(3))
        self.out = nn.ModuleList(nn.Linear(256, 256) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        for qkv, out in zip(self.qkv, self.out, strict=True):
            q, k, v = (part.unflatten(2, (8, 32)) for part in qkv(x).chunk(3, 2))
            q, k = functional.elu(q) + 1, functional.elu(k) + 1
            sums = torch.cumsum(k.unsqueeze(4) * v.unsqueeze(3), 1)
            found = (q.unsqueeze(3) @ sums).squeeze(3) / (q * torch.cumsum(k, 1)).sum(3, keepdim=True)
            x = x + out(found.flatten(2))
        return x


def linear_attention(rng: np.random.Generator) -> Made:
    given = [{"x": rng.standard_normal((1, size, 256), np.float32)} for (size,) in [(128,), *drawn(rng, (50, 200))]]
    return exported(LinearAttention(), given[0], {"x": (1,)}, given[1:])


class EinsumAttention(nn.Module):
    """Attention with relative positions, written with einsum."""

    def __init__(self) -> None:
        super().__init__()
        self.projections = nn.ParameterList(nn.Parameter(torch.randn(4, 256, 8, 32) / 16) for _ in range(4))
        self.positions = nn.Parameter(torch.randn(128, 128, 32) / 6)

    def forward(self, x: Tensor) -> Tensor:
        for weights in self.projections:
            q, k, v = (torch.einsum("btd,dhe->bhte", x, weights[place]) for place in range(3))
            scores = torch.einsum("bhqe,bhke->bhqk", q, k) + torch.einsum("bhqe,qke->bhqk", q, self.positions)
            found = torch.einsum("bhqk,bhke->bqhe", torch.softmax(scores / 6, -1), v)
            x = functional.layer_norm(x + torch.einsum("bqhe,dhe->bqd", found, weights[3]), [256])
        return x


def einsum_attention(rng: np.random.Generator) -> Made:
    return exported(EinsumAttention(), {"x": rng.standard_normal((2, 128, 256), np.float32)})


def keyword_spotting(rng: np.random.Generator) -> Made:
    """A spectrogram by STFT, its mel bands, and a small net."""
    layers, inputs = Layers(rng), {"audio": sound(rng, 16000 * 4)}
    (audio,) = taking(inputs)
    window = op.constant(np.hanning(512).astype(np.float32))
    spectrum = op.stft(audio, window, op.constant(np.int32(512)), op.constant(np.int32(160)), True)
    power = op.reduce_sum(op.multiply(spectrum, spectrum), np.array([-1]), False)
    mel = np.maximum(0, 1 - np.abs(np.linspace(0, 81, 257)[:, None] - np.arange(1, 81)) / 2).astype(np.float32)
    bands = op.log(op.add(op.matmul(power, mel, True, False), np.float32(1e-5)))
    x = op.unsqueeze(op.transpose(bands, np.array([0, 2, 1])), 1)
    x = op.mvn(x, np.array([2, 3]), True, 1e-5, "inside_sqrt")
    for channels, stride in ((32, 2), (64, 2), (128, 2), (128, 1)):
        x = layers.separable(x, channels, stride) if channels > 32 else layers.convolution(x, channels, 3, stride)
    return Made(ov.Model([layers.dense(op.reduce_mean(x, np.array([2, 3]), False), 35)], [audio]), inputs)


def fourier_mixing(rng: np.random.Generator) -> Made:
    """FNet: the real part of a DFT over tokens and features in place of attention."""
    layers = Layers(rng)
    given = [{"x": rng.standard_normal((1, size, 256), np.float32)} for (size,) in [(128,), *drawn(rng, (50, 200))]]
    (x,) = taking(given[0], {"x": (1,)})
    node = x
    for _ in range(4):
        pairs = op.concat([op.unsqueeze(node, -1), op.multiply(op.unsqueeze(node, -1), np.float32(0))], -1)
        mixed = op.gather(op.dft(pairs, np.array([1, 2])), np.int64(0), np.int64(-1))
        node = op.mvn(op.add(node, mixed), np.array([2]), True, 1e-5, "inside_sqrt")
        node = op.add(node, layers.dense(op.gelu(layers.dense(node, 1024), "erf"), 256))
    return Made(ov.Model([node], [x]), given[0], given[1:])


KINDS: dict[str, Kind] = {
    "bert_any_length": bert_any_length,
    "bert_bf16": bert_bf16,
    "t5_any_length": t5_any_length,
    "wav2vec2": wav2vec2,
    "conformer": conformer,
    "time_series": time_series,
    "mixture_of_experts": mixture_of_experts,
    "voice_activity": voice_activity,
    "scripted_decoder": scripted_decoder,
    "scripted_branches": scripted_branches,
    "while_loop": while_loop,
    "lstm_iterator": lstm_iterator,
    "beam_search": beam_search,
    "rnnt_joint": rnnt_joint,
    "speech_gru": lambda rng: speech(rng, nn.GRU),
    "speech_lstm": lambda rng: speech(rng, nn.LSTM),
    "ctc_decoder": ctc_decoder,
    "reverse_sequence": reverse_sequence,
    "linear_attention": linear_attention,
    "einsum_attention": einsum_attention,
    "keyword_spotting": keyword_spotting,
    "fourier_mixing": fourier_mixing,
}
