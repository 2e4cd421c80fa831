"""A case layer by layer, by the ops' own kernels: the arrays of all tensors, and what rounding makes of them."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from differential.graph import Array, Case, Graph, Layer, op_of, save
from irrun.spec.dtypes import element_type
from irrun.spec.op import Tensor

NUMBER_OF_NAN = ("Clamp", "Exp", "FakeQuantize", "HSigmoid", "Maximum", "Minimum", "ReLU", "Sigmoid")
"""Behind a convolution or a product, oneDNN makes a number of NaN with them, as the README says."""

NAN_OF_INFINITY = ("Gelu",)
"""And NaN of infinity with these."""

PRODUCTS = ("Convolution", "ConvolutionBackpropData", "GroupConvolution", "GroupConvolutionBackpropData", "MatMul")


def computed(layer: Layer, arrays: Sequence[Array | None]) -> list[Array]:
    """The outputs of a layer. Raises Violation where the inputs break a rule."""
    if layer.array is not None:
        return [layer.array]
    if layer.bodies:
        return _by_a_model(layer, arrays)
    op, _ = op_of(layer.name)
    given = {attr.name: attr for attr in op.attrs}
    attrs = op.defaults | {given[key].keyword: given[key].parse(text) for key, text in layer.attrs.items()}
    tensors = [None if array is None else Tensor.of(array) for array in arrays]
    inferred = op.infer(tensors, attrs)
    context = {"types": inferred.types} if "types" in op.context else {}
    with np.errstate(all="ignore"):
        results = op.kernel(*arrays, **attrs, **context)
    return [np.asarray(result) for result in (results if isinstance(results, tuple | list) else (results,))]


def _by_a_model(layer: Layer, arrays: Sequence[Array | None]) -> list[Array]:
    """What a layer with bodies gives, as a model of its own."""
    import irrun

    graph, feed = Graph(), {}
    inputs: list[Any] = []
    for number, array in enumerate(arrays):
        assert array is not None
        feed[f"p{number}"] = array
        inputs.append((graph.add(parameter(f"p{number}", array)), 0))
    inner = graph.add(Layer(layer.name, inputs, dict(layer.attrs), layer.outputs, bodies=layer.bodies))
    for port in range(len(layer.outputs)):
        graph.add(Layer("Result-1", [(inner, port)]))
    with tempfile.TemporaryDirectory() as folder:
        executor = irrun.GraphExecutor(save(Case(graph, [feed]), Path(folder)), engine="reference")
        return list(executor.run(feed).values())


def parameter(name: str, array: Array, dims: Sequence[int] | None = None, shape: str | None = None) -> Layer:
    """An input of the type of `array`; -1 in `dims` is an unknown size. `shape` is what is declared instead."""
    type, sizes = element_type(array.dtype), tuple(array.shape if dims is None else dims)
    if shape is None:
        shape = ",".join("?" if size < 0 else str(size) for size in sizes)
    attrs = {"shape": shape, "element_type": type}
    return Layer("Parameter-1", [], attrs, [(type, sizes)], label=name)


def evaluated(case: Case, feed: dict[str, Array]) -> list[list[Array]]:
    """The outputs of all layers of a stateless case. Raises Violation, or KeyError where a value is missing."""
    values: list[list[Array]] = []
    for layer in case.graph.layers:
        if layer.type == "Parameter":
            values.append([feed[layer.label]])
        elif layer.type == "Result":
            values.append([])
        elif layer.type in ("ReadValue", "Assign"):
            raise KeyError(layer.type)
        else:
            arrays = [None if ref is None else values[ref[0]][ref[1]] for ref in layer.inputs]
            values.append(computed(layer, arrays))
    return values


def excepted(case: Case) -> list[bool]:
    """For each Result whether a NaN on the way to it may become a number, or an infinity NaN."""
    count = len(case.graph.of_type("Result"))
    types = {layer.type for layer in case.graph.walk()}
    if types.isdisjoint(PRODUCTS) or types.isdisjoint((*NUMBER_OF_NAN, *NAN_OF_INFINITY)):
        return [False] * count
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runs = [evaluated(case, feed) for feed in case.feeds]
    except Exception:
        return [True] * count
    layers = case.graph.layers
    behind: list[bool] = []
    doubtful: list[bool] = []
    results = []
    for layer in layers:
        refs = [ref for ref in layer.inputs if ref is not None]
        found = [run[number][port] for run in runs for number, port in refs if run[number][port].dtype.kind == "f"]
        nan = any(bool(np.isnan(array).any()) for array in found)
        strange = not all(bool(np.isfinite(array).all()) for array in found)
        inside = {inner.type for body in layer.bodies.values() for inner in body.graph.walk()}
        product = any(behind[number] for number, _ in refs)
        own = product and ((nan and layer.type in NUMBER_OF_NAN) or (strange and layer.type in NAN_OF_INFINITY))
        own = own or (strange and not inside.isdisjoint((*NUMBER_OF_NAN, *NAN_OF_INFINITY)))
        behind.append(product or layer.type in PRODUCTS or bool(inside & {*PRODUCTS}))
        doubtful.append(own or any(doubtful[number] for number, _ in refs))
        if layer.type == "Result":
            results.append(doubtful[-1])
    return results
