"""A model as text, a line for each layer, whose order and names only the model decides: what `git diff` can show."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from irrun.check.render.text import one_line
from irrun.diagnostics import IRError
from irrun.ir.collector import collector_paused
from irrun.ir.graph import Model
from irrun.ir.reader import read
from irrun.ir.signature import names_of, names_of_results
from irrun.ir.sources import Source, opened
from irrun.spec.attributes import REQUIRED
from irrun.tools.diff.constants import CHUNK, Constants
from irrun.tools.diff.view import Node, View, entry_text, runtime_info, view_of
from irrun.tools.diff.wording import port_name

INLINE = 8
"""Elements of a constant that are written out where it is read."""

_NUMBERED = re.compile(r"[A-Za-z]*_?\d+")
"""Names that converters count out: another export has other numbers."""

_PLAIN = re.compile(r"[^\W\d][\w.:/~-]*")
"""Names that need no quotes."""

_MISSING = ("E501", "E503")


def print_model(
    source: Model | Source, weights: Source | None = None, *, without_weights: bool = False, names: bool = False
) -> str:
    """A model as text, which ends with a line break.

    Constants of a few elements are written out, of others there is a hash and what they are like, where the weights are
    there; with `without_weights` nobody looks for them. With `names`, layers have their own names, else those that
    converters have counted out are replaced by what stays the same.

    Raises IRError where the model has errors of form; weights that are missing are none.
    """
    with collector_paused():
        if isinstance(source, Model):
            model = source
        else:
            path, content = opened(source, "model")
            given = b"" if without_weights and weights is None else weights
            found, problems = read(Path(path), given, content)
            errors = [problem for problem in problems if problem.severity == "error" and problem.code not in _MISSING]
            if errors or found is None:
                raise IRError(errors)
            model = found
        constants = Constants(model)
        lines = _Printer(model, constants, names, not without_weights).lines()
        return "".join(f"{one_line(line)}\n" for line in lines)


class _Printer:
    """Writes down the graphs of one model."""

    def __init__(self, model: Model, constants: Constants, own_names: bool, values: bool) -> None:
        self._model, self._constants, self._own_names, self._values = model, constants, own_names, values
        self._names: dict[Node, str] = {}
        self._found: dict[Node, str] = {}

    def lines(self) -> Iterator[str]:
        view = view_of(self._model.graph)
        yield f"model {_quoted(self._model.name)}, IR {self._model.version}"
        yield from self._graph(view, "")
        for name, value in runtime_info(self._model.graph.rt_info).items():
            yield f"rt_info {name} = {_quoted(value)}"

    def _graph(self, view: View, indent: str) -> Iterator[str]:
        self._name(view)
        outputs: dict[Any, tuple[str, ...]] = {}
        if not indent:
            outputs = dict(zip(view.graph.results, names_of_results(view.graph), strict=True))
            for number, node in enumerate(view.parameters):
                names = self._shown(names_of(node.layer))
                yield f"input {number} {' '.join(map(_quoted, names))} = {self._line(node)}"
        for node in view.nodes:
            if node.layer.type == "Parameter" and not indent:
                continue
            if node.is_const and self._inline(node):
                continue
            if node.layer.type == "Result" and not indent:
                continue
            yield f"{indent}{self._names[node]} = {self._line(node)}"
            for tag, body in sorted(node.bodies.items()):
                yield f"{indent}  {tag}:"
                yield from self._graph(body, f"{indent}    ")
        if not indent:
            for number, node in enumerate(view.results):
                known = outputs[node.layer]
                named = " ".join(map(_quoted, self._shown(known[:-1] or known)))
                yield f"output {number} {named} = {self._line(node)}"

    def _shown(self, names: tuple[str, ...]) -> list[str]:
        """The names of an input or output without those that were only counted out, where it has others."""
        good = [name for name in names if self._own_names or not _NUMBERED.fullmatch(name)]
        return good or list(names[:1])

    def _line(self, node: Node) -> str:
        if node.is_const:
            return f"Const {self._constant(node)}"
        inputs = ", ".join(self._input(node, number) for number in range(len(node.inputs)))
        defaults = {attr.name: attr.default for attr in node.found.attrs} if node.found else {}
        given = "".join(
            f" {name}={_value(value)}"
            for name, value in node.attributes.items()
            if not (name in defaults and defaults[name] is not REQUIRED and _same(value, defaults[name]))
            and not (node.layer.type in ("Parameter", "Result") and name in ("element_type", "output_names"))
        )
        mapped = f" <{entry_text(node)}>" if node.entry else ""
        ports = ", ".join(self._port(node, value.index) for value in node.layer.outputs)
        marks = "".join(
            f" {{{name}{f': {value}' if value else ''}}}" for name, value in runtime_info(node.layer.rt_info).items()
        )
        arrow = f" -> {ports}" if ports else ""
        return f"{node.op}({inputs}){mapped}{given}{arrow}{marks}"

    def _port(self, node: Node, index: int) -> str:
        port = node.layer.outputs[index].port
        sizes = ",".join("?" if size < 0 else str(size) for size in port.dims)
        return f"{port.precision or 'dynamic'}[{sizes}]"

    def _input(self, node: Node, number: int) -> str:
        source = node.inputs[number]
        if source is None:
            return "-"
        producer, output = source
        if producer.is_const and self._inline(producer):
            return self._constant(producer)
        return self._names[producer] + (f":{output}" if len(producer.layer.outputs) > 1 else "")

    def _inline(self, node: Node) -> bool:
        """Whether a constant is written where it is read: a small one, without anything else to be said of it."""
        elements = math.prod(node.layer.outputs[0].port.dims) if node.layer.outputs else 0
        return elements <= INLINE and any(node.readers) and node.layer.rt_info is None

    def _constant(self, node: Node) -> str:
        """The type and shape of a constant, and its values, or a hash and what they are like."""
        if node not in self._found:
            self._found[node] = self._described(node)
        return self._found[node]

    def _described(self, node: Node) -> str:
        blob = self._constants.blob(node.layer)
        if blob is None:
            return self._port(node, 0) if node.layer.outputs else "?"
        kind = f"{blob.element_type}[{','.join(map(str, blob.shape))}]"
        if not self._values or not self._constants.compared(node.layer):
            return kind
        if blob.elements <= INLINE:
            array = self._constants.values(node.layer)
            values = [_number(value) for value in array.ravel().tolist()]
            listed = values[0] if array.ndim == 0 and values else f"[{','.join(values)}]"
            return f"{blob.element_type} {listed}" if array.ndim < 2 else f"{kind} {listed}"
        if blob.element_type == "string":
            array = self._constants.values(node.layer)
            digest = blake2b("\0".join(array.ravel().tolist()).encode(), digest_size=6).hexdigest()
            return f"{kind} #{digest}"
        digest, figures = self._looked_through(node)
        return f"{kind} #{digest} {figures}"

    def _looked_through(self, node: Node) -> tuple[str, str]:
        """A hash of the bytes of a constant, and its mean, deviation and bounds."""
        hashed = blake2b(digest_size=6)
        total = squares = 0.0
        count = 0
        low, high = math.inf, -math.inf
        for raw, elements in self._constants.pieces(node.layer):
            hashed.update(raw.data)
            array = self._constants.decoded(node.layer, raw, elements)
            for start in range(0, elements, CHUNK):
                piece = array[start : start + CHUNK].astype(np.float64)
                finite = piece[np.isfinite(piece)]
                if finite.size:
                    count += finite.size
                    total += float(finite.sum())
                    squares += float(np.square(finite).sum())
                    low, high = min(low, float(finite.min())), max(high, float(finite.max()))
        if not count:
            return hashed.hexdigest(), "not finite"
        mean = total / count
        spread = math.sqrt(max(squares / count - mean * mean, 0.0))
        return hashed.hexdigest(), f"mean {mean:.3g} std {spread:.3g} min {low:.3g} max {high:.3g}"

    def _name(self, view: View) -> None:
        """Give each node of a graph a name that no other one has."""
        counts: dict[str, int] = {}
        for node in view.nodes:
            counts[node.layer.name] = counts.get(node.layer.name, 0) + 1
        taken: dict[str, int] = {}
        anchor = ""
        for node in view.nodes:
            own = node.layer.name
            if node.layer.type == "Parameter" and view.graph.owner is None:
                own = names_of(node.layer)[0]
            good = bool(own) and counts.get(own, 1) == 1 and (self._own_names or not _NUMBERED.fullmatch(own))
            if good and own not in taken:
                name = own
                anchor = anchor if node.is_const else own
            elif node.is_const:
                continue
            else:
                name = _free(f"{anchor}~{node.type}" if anchor else node.type, taken)
            taken[name] = 1
            self._names[node] = _quoted(name)
        for node in view.nodes:
            if node not in self._names:
                name = _free(self._role(node), taken)
                taken[name] = 1
                self._names[node] = _quoted(name)

    def _role(self, node: Node) -> str:
        """What a constant is called by what reads it first."""
        readers = [(reader.number, number, reader) for listed in node.readers for reader, number in listed]
        readers = [item for item in readers if item[2] in self._names]
        if not readers:
            return "constant"
        _, number, reader = min(readers, key=lambda item: item[:2])
        name = self._names[reader]
        bare = json.loads(name) if name.startswith('"') else name
        return f"{bare}.{port_name(reader.found, number).strip('`').replace(' ', '')}"


def _free(name: str, taken: dict[str, int]) -> str:
    """The name, or with a number behind it where it is `taken`; that has the last number of each."""
    found = name
    while found in taken:
        taken[name] += 1
        found = f"{name}~{taken[name]}"
    return found


def _same(value: Any, default: Any) -> bool:
    if isinstance(default, int | float) and not isinstance(default, bool):
        return isinstance(value, int | float) and float(np.float32(value)) == float(np.float32(default))
    return bool(value == (tuple(default) if isinstance(default, list) else default))


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{','.join(map(_value, value))}]"
    if value is None:
        return "none"
    if isinstance(value, float):
        return _number(value)
    return _quoted(str(value)) if isinstance(value, str) and not re.fullmatch(r"[\w.,?+-]+", value) else str(value)


def _number(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else f"{float(value):.7g}"


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)
