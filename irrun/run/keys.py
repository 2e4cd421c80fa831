"""Keys of tensors: text that names one tensor of a run and no other, whatever the layers are called.

A key is the name of the layer and the number of its output, `conv1:0`, behind the layers and iterations of the bodies
that it was made in, outermost first: `Loop_12/body[3]/MatMul_4:0`. A layer whose name others of its graph have, too, or
that has none, is followed by `#` and its id: `relu#5:0`.

Within names the characters `%`, `[`, `]`, `#` and `@`, a backslash, and those that are not printed are written as `%`
and two hexadecimal digits for each byte of their UTF-8. So brackets in a key are those of iterations, the part between
two of these ends in `/` and the name of a body, and what stands behind the last colon is the output: keys can be taken
apart again, although names may have `/` and `:` in them. Of a name of more than 1,000 characters the first are written,
then `%~` and the hash of all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from irrun.ir.graph import Graph, Layer
from irrun.records import NamedTuple

MAX_NAME = 1000
"""Characters of a name, written out, that a key has; files of many arrays allow no more than 65,535 bytes in all."""

Path = Sequence[tuple[str, str, int]]
"""The bodies that a tensor is made in, outermost first, as (layer, body, iteration)."""

_ESCAPED = re.compile(r"[%\[\]#@\\\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")
_ITERATION = re.compile(r"\[\d+\]/")
_BODY = re.compile(r"(.*?)/([^/\[\]]*)\[(\d+)\]/", re.DOTALL)
_END = re.compile(r"(.*):(\d+)(?:@step(\d+))?", re.DOTALL)
_BYTES = re.compile(r"(?:%[0-9A-F]{2})+")


class Place(NamedTuple):
    """What a key says. Layers are as they are written in it, but for escapes: the id of a `#5` is the `id`."""

    path: tuple[tuple[str, str, int], ...]
    layer: str
    id: int | None
    port: int
    step: int


def key(layer: Layer, port: int, path: Path, step: int = 1) -> str:
    """The key of a tensor; of a later `step` of the same session with `@step2` behind it."""
    owners: list[Layer] = []
    owner = layer.graph.owner
    while owner is not None:
        owners.insert(0, owner)
        owner = owner.graph.owner
    named = zip(owners, path, strict=False)  # what is computed in the place of a branch is in no body
    bodies = "".join(f"{unique(owner)}/{body}[{iteration}]/" for owner, (_, body, iteration) in named)
    return f"{bodies}{unique(layer)}:{port}{f'@step{step}' if step > 1 else ''}"


def unique(layer: Layer) -> str:
    """The name of a layer as keys have it, which is no other one's in its graph."""
    name = escaped(layer.name)
    return f"{name}#{layer.id}" if not name or layer.name in _repeated(layer.graph) else name


def whenever(key: str) -> str:
    """A key, or a part of one, whatever the iterations are: `Loop_12/body/MatMul_4:0`."""
    return _ITERATION.sub("/", key)


def placed(layer: Layer) -> str:
    """The name of a layer behind the bodies that it is in, whatever the iteration is: `Loop_12/body/MatMul_4`."""
    owner = layer.graph.owner
    if owner is None:
        return unique(layer)
    tag = next(tag for tag, body in owner.bodies.items() if body.graph is layer.graph)
    return f"{placed(owner)}/{tag}/{unique(layer)}"


def escaped(name: str) -> str:
    """A name as a part of a key: of characters that keys have, and no longer than MAX_NAME but for a digest."""
    written = _ESCAPED.sub(_as_bytes, name)
    if len(written) <= MAX_NAME:
        return written
    from hashlib import blake2b  # it loads OpenSSL, and hardly any name is so long

    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{written[:MAX_NAME]}%~{digest}"


def place(key: str) -> Place | None:
    """What a key says; None for text that is none."""
    path: list[tuple[str, str, int]] = []
    begin = 0
    while (body := _BODY.match(key, begin)) is not None:
        path.append((_plain(body[1]), body[2], int(body[3])))
        begin = body.end()
    end = _END.fullmatch(key, begin)
    if end is None:
        return None
    name, _, id = end[1].partition("#")
    return Place(
        tuple(path), _plain(name), int(id) if id.isdecimal() else None, int(end[2]), int(end[3]) if end[3] else 1
    )


def _plain(name: str) -> str:
    name = name.partition("#")[0]
    return _BYTES.sub(lambda found: bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "surrogatepass"), name)


def _as_bytes(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass"))


def _repeated(graph: Graph) -> frozenset[str]:
    """The names that several layers of a graph have."""
    found = _REPEATED.get(graph)
    if found is None:
        counts = Counter(layer.name for layer in graph.layers)
        found = _REPEATED[graph] = frozenset(name for name, count in counts.items() if count > 1)
    return found


_REPEATED: WeakKeyDictionary[Graph, frozenset[str]] = WeakKeyDictionary()
"""What is found of a graph the first time, as long as there is that."""
