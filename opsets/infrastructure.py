"""Infrastructure ops: inputs, constants and results of a model, its state, and loops."""

from __future__ import annotations

from typing import Any

from irrun.spec import (
    ANY,
    ELEMENT_TYPE,
    INT,
    SHAPE,
    STRINGS,
    Array,
    Attr,
    Dim,
    Input,
    Node,
    Output,
    Tensor,
    op,
    shape_text,
)


@op(
    "Parameter-1",
    outputs=[Output("output", "element_type", "...")],
    attrs=[Attr("shape", SHAPE), Attr("element_type", ELEMENT_TYPE)],
    opsets=frozenset(range(1, 18)),
    pure=False,
)
def parameter(*, shape: Any, element_type: str) -> Any:
    """An input of the model, which the caller of the run gives.

    Deviation: the page allows sizes only; files also have unknown ones (`?`, `1..8`) and unknown ranks (`...`).

    Source: infrastructure/parameter-1.rst
    """
    raise NotImplementedError("a Parameter has no kernel: its value is an input of the run")


@parameter.shapes
def _(node: Node) -> list[Tensor]:
    return [Tensor(node.attrs["element_type"], node.attrs["shape"])]


@op(
    "Constant-1",
    outputs=[Output("output", "element_type", "...")],
    attrs=[
        Attr("element_type", ELEMENT_TYPE),
        Attr("shape", SHAPE),
        Attr("offset", INT, least=0),
        Attr("size", INT, least=0),
    ],
    pure=False,
)
def constant(*, element_type: str, shape: Any, offset: int, size: int) -> Any:
    """A tensor that lies in the weights file, `size` bytes long from byte `offset` on. Its IR type is `Const`.

    Deviation: size may be 0, where the shape has no elements.
    Constraints:
        C1: every dimension of shape is known.

    Source: infrastructure/constant-1.rst
    """
    raise NotImplementedError("a Constant has no kernel: its value lies in the weights file")


@constant.shapes
def _(node: Node) -> list[Tensor]:
    shape = node.attrs["shape"]
    if shape is None or any(isinstance(size, Dim) for size in shape):
        node.fail("C1", f"`shape` is {shape_text(shape)}, expected a size for every dimension")
    return [Tensor(node.attrs["element_type"], shape)]


@op(
    "Result-1",
    types={"T": ANY},
    inputs=[Input("input", "T", "...")],
    attrs=[Attr("output_names", STRINGS, ())],
    symbolic=True,
    view_of="input",
)
def result(input: Array, *, output_names: tuple[str, ...]) -> Any:
    """An output of the model. `output_names` is not in the specification, but files have it.

    Source: infrastructure/result-1.rst

    >>> op(np.array([1, 2])).tolist()
    [1, 2]
    """
    return input


@result.shapes
def _(node: Node) -> list[Tensor]:
    return [node.inputs["input"]]
