"""Decoders: how a language model that keeps a cache is called, as its inputs and outputs are named by exporters.

The cache lives in variables of the model, or is an input (`past...`) that an output (`present...`) gives anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from irrun.check.infer import Inference
from irrun.diagnostics import Diagnostic, InputError, IRError
from irrun.ir.graph import Layer, Model
from irrun.ir.signature import names_of, names_of_inputs
from irrun.records import NamedTuple
from irrun.run.inputs import exactly
from irrun.run.memory import as_text
from irrun.spec.dims import Dim
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array, Tensor
from irrun.spec.patterns import shape_text
from irrun.spec.traits import Lookup

if TYPE_CHECKING:
    from irrun.run.executor import GraphExecutor

_RANKS = {"input_ids": 2, "attention_mask": 2, "position_ids": 2, "cache_position": 1, "beam_idx": 1}
"""What is made of the tokens: [batch, length], [batch, past + length], [batch, length], [length] and [batch]."""

_PREFIXED = ("input_ids", "attention_mask")
"""These are the decoder's where the model has an encoder too: `decoder_input_ids`."""

_PRESENT = (("past_key_values", "present"), ("past_key_values", "present_key_values"), ("past", "present"))
"""How the name of a cache that is an input becomes that of the output with its next value."""

_DIGITS = 4
"""Of the length of a convolutional state, at most."""

_HELP = "`irrun generate` runs decoders that keep a cache, in variables or as inputs; `irrun execute` runs any model"


class Decoder(NamedTuple):
    """How a language model is called.

    `made` maps the keys of `_RANKS` to the names of the inputs that the model has of these, and `inputs` all names to
    what is known of them. `caches` maps each input that is a cache to the output with its next value; `logits` is the
    output [batch, length, vocabulary]. `vocabulary` and `positions` are how many rows the tables have that tokens and
    positions are looked up in, None where that is unknown or there is no table. `window` is the length of the
    convolutional states that `cache_position` fills. `recurrent` says that the cache does not grow, so that the mask of
    a step is for its own tokens only.
    """

    made: dict[str, str]
    inputs: dict[str, Tensor]
    caches: dict[str, str]
    logits: str
    vocabulary: int | None
    positions: int | None
    window: int | None
    recurrent: bool

    def empty_caches(self, batch: int, most: int) -> dict[str, Array]:
        """What the inputs that are caches are before the first token: nothing, or zeros where their sizes are fixed.

        The batch is the first axis, of keys and values in one array, [2, batch, heads, length, size], the second one.
        Raises InputError where they take more than `most` bytes together.
        """
        empty, total = {}, 0
        for name in self.caches:
            shape = [size if isinstance(size, int) else 0 for size in self.inputs[name].shape or (0,)]
            shape[1 if len(shape) == 5 and shape[0] == 2 else 0] = batch
            dtype = numpy_dtype(self.inputs[name].type)
            total += prod(shape) * dtype.itemsize
            if total > most:
                raise InputError(
                    f"the caches take {as_text(total)} up to `{name}`, more than the limit of {as_text(most)}"
                )
            empty[name] = np.zeros(shape, dtype)
        return empty

    def step(self, ids: Array, mask: Array) -> dict[str, Array]:
        """The inputs that are made of the tokens `ids` [batch, length].

        They are the last ones of those that `mask` [batch, past + length] has a 1 for, and for padding a 0.
        Raises InputError where an input is of a type that cannot hold them.
        """
        (batch, length), total = ids.shape, mask.shape[1]
        arrays = {
            "input_ids": ids,
            "attention_mask": mask[:, -length:] if self.recurrent else mask,
            "position_ids": np.maximum(mask.cumsum(1) - 1, 0)[:, -length:],
            "cache_position": np.arange(total - length, total),
            "beam_idx": np.arange(batch),
        }
        if self.window is not None and length == total:  # the first step fills the states whole
            arrays["cache_position"] = np.arange(self.window)
        return {name: exactly(name, arrays[key], self.inputs[name].type) for key, name in self.made.items()}

    def last_logits(self, results: Mapping[str, Array], batch: int, model: Model) -> Array:
        """The logits [batch, vocabulary] of the next tokens. Raises IRError (E605) where a run gave something else."""
        logits = results[self.logits]
        if logits.ndim != 3 or len(logits) != batch or not logits.size:
            found = shape_text(logits.shape)
            raise _unfit(model, f"the output `{self.logits}` has shape {found}, expected [{batch}, length, vocabulary]")
        last: Array = logits[:, -1]
        return last


def read_decoder(executor: GraphExecutor, given: Iterable[str]) -> Decoder:
    """How `executor`'s model is called, with arrays for the inputs `given` besides.

    Raises IRError (E605) where it is no language model with a cache, InputError where `given` has what tokens make.
    """
    inference, model = executor.report.inference, executor.model
    assert inference is not None
    names = zip(model.graph.parameters, names_of_inputs(model.graph), strict=True)
    layers = {name: layer for layer, listed in names for name in listed}
    inputs = {names_of(layer)[0]: inference.nodes[layer].outputs[0] for layer in model.graph.parameters}
    prefix = "decoder_" if "decoder_input_ids" in layers else ""
    sought = {key: prefix + key if key in _PREFIXED else key for key in _RANKS}
    made = {key: names_of(layers[name])[0] for key, name in sought.items() if name in layers}
    if "input_ids" not in made:
        listing = ", ".join(f"`{name}`" for name in inputs) or "none"
        raise _unfit(model, f"not a language model: there is no `input_ids` among its inputs, which are {listing}")
    for key, name in made.items():
        shape = inputs[name].shape
        if shape is not None and len(shape) != _RANKS[key]:
            raise _unfit(
                model, f"`{name}` has shape {shape_text(shape, names=False)}, expected a rank of {_RANKS[key]}"
            )
    others = {names_of(layers[name])[0] if name in layers else name for name in given}
    for name in others.intersection(made.values()):
        raise InputError(f"input `{name}` is made of the tokens, and cannot be given")
    outputs = _output_keys(executor)
    caches = {name: _present(model, name, outputs) for name in inputs if "past" in name and name not in others}
    for name in (*made.values(), *caches):
        if inputs[name].type in ("dynamic", "string"):
            raise _unfit(model, f"`{name}` is of the type {inputs[name].type}, expected one of numbers")
    variables: dict[str, str] = {}
    for layer in model.graph.layers:
        if "variable_id" in layer.attributes:  # only those that read one have its shape
            name, shown = layer.attributes["variable_id"], layer.attributes.get("variable_shape", "")
            variables[name] = variables.get(name) or shown
    if not caches and not variables:
        raise _unfit(model, "a model without a cache: it has neither variables nor inputs such as `past_key_values...`")
    states = [*variables, *caches]
    lengths = [shown.rpartition(",")[2].strip() for name, shown in variables.items() if "conv" in name]
    lengths += [str((inputs[name].shape or ("",))[-1]) for name in caches if "conv" in name]
    return Decoder(
        made,
        inputs,
        caches,
        _logits(executor, inference, outputs, set(caches.values())),
        _rows(layers[sought["input_ids"]], inference),
        _rows(layers["position_ids"], inference) if "position_ids" in made else None,
        next((int(length) for length in lengths if length.isdecimal() and len(length) <= _DIGITS), None),
        all("conv" in name or "ssm" in name for name in states),
    )


def _unfit(model: Model, message: str) -> IRError:
    return IRError([Diagnostic("E605", message, help=_HELP, file=str(model.path))])


def _output_keys(executor: GraphExecutor) -> dict[str, str]:
    """What a run calls the output that goes by a name."""
    keys: dict[str, str] = {}
    for output, layer in zip(executor.outputs, executor.model.graph.results, strict=True):
        (source,) = layer.inputs
        assert source is not None
        for name in (*output.names, source.layer.name):
            keys.setdefault(name, output.name)
    return keys


def _present(model: Model, name: str, outputs: Mapping[str, str]) -> str:
    """The output with the next value of the cache that the input `name` is."""
    candidates = [name.replace(past, present) for past, present in _PRESENT if past in name]
    for candidate in candidates:
        if candidate in outputs:
            return outputs[candidate]
    message = f"the input `{name}` seems to be a cache, but there is no output `{candidates[0]}` with its next value"
    raise _unfit(model, message)


def _logits(executor: GraphExecutor, inference: Inference, outputs: Mapping[str, str], caches: set[str]) -> str:
    """The output called `logits`, or the only one that is no cache."""
    names = [output.name for output in executor.outputs]
    rest = [key for key in names if key not in caches]
    if "logits" not in outputs and len(rest) != 1:
        listing = ", ".join(f"`{key}`" for key in rest) or "only caches"
        raise _unfit(executor.model, f"there is no `logits` among the outputs, which are {listing}")
    key = outputs.get("logits", rest[0])
    tensor = inference.tensor(executor.model.graph.results[names.index(key)].inputs[0])
    if tensor.type == "string":
        raise _unfit(executor.model, f"the output `{key}` is of the type string, expected one of numbers")
    if tensor.rank not in (None, 3):
        found = shape_text(tensor.shape, names=False)
        raise _unfit(executor.model, f"the output `{key}` has shape {found}, expected [batch, length, vocabulary]")
    return key


def _rows(parameter: Layer, inference: Inference) -> int | None:
    """How many rows the tables have that its values are looked up in: the least, or None where none is known."""
    sizes, pending = [], [*parameter.outputs]
    while pending:
        for layer, number in pending.pop().consumers:
            node = inference.nodes.get(layer)
            if node is None or number >= len(node.op.inputs):
                continue
            port, lookup = node.op.inputs[number].name, node.op.trait(Lookup)
            if lookup is not None and port == lookup.indices:
                ports = [port.name for port in node.op.inputs]
                table, axis = (
                    inference.tensor(layer.inputs[ports.index(name)]) for name in (lookup.table, lookup.axis)
                )
                if table.shape is not None and axis.known and axis.value is not None:
                    size = table.shape[int(axis.value.item())]
                    sizes += [] if isinstance(size, Dim) else [size]
            elif port == node.op.view_of:
                pending += layer.outputs
    return min(sizes, default=None)
