"""What an edited model needs the op library for: what its ports declare, and whether it is valid once it is written."""

from __future__ import annotations

from typing import Literal

from irrun.check.infer import infer
from irrun.check.validate import validate
from irrun.diagnostics import IRError
from irrun.ir import writer
from irrun.ir.graph import Model
from irrun.spec.op import Tensor


def redeclare(model: Model) -> None:
    """Let the ports of a model declare the types and sizes that its layers have, by inference.

    What is not known is left as it is declared. Raises IRError where layers break the rules of their ops.

    >>> import irrun
    >>> model = irrun.read_model("samples/cnn/model.xml")
    >>> model.set_attribute(model.graph.parameters[0], "shape", (4, 3, 16, 16))
    >>> irrun.redeclare(model)
    >>> model.outputs
    (TensorInfo('probabilities', f32[4, 10]),)
    """
    inference = infer(model.graph, model.weights)
    errors = [found for found in inference.diagnostics if found.severity == "error"]
    if errors:
        raise IRError(errors)
    for layer in model.graph.walk():
        for value in layer.outputs:
            tensor = inference.tensor(value)
            for port in (value.port, *(reader.input_ports[number] for reader, number in value.consumers)):
                if tensor.type != "dynamic":
                    port.precision = tensor.type
                if tensor.shape is not None:
                    port.dims = declared(tensor)
    model.edited = True


def write_model(
    model: Model, file: writer.Target, weights: writer.Target | Literal["link"] | None = None, *, check: bool = True
) -> None:
    """Write a model as an .xml and its constants as a .bin, which goes beside it unless given.

    Both are paths, or files that are open for writing bytes. Two paths take the place of what was there together, or
    not at all. With "link" no .bin is written: the .xml is to go with the one that the model was read with, and refers
    to the same bytes of it. What irrun gives no meaning to stays as it was read.

    A model that was built or changed is validated before, as a whole: from one valid model to the next there may be
    several changes. Without `check` it is written whatever is wrong with it, such as with one that was read so.

    Raises IRError where a changed model has errors, or constants cannot be read any more, ValueError where the model
    cannot be written, and OSError; nothing is written then, but to open files, what went before.

    >>> import irrun
    >>> model = irrun.read_model("samples/cnn/model.xml")
    >>> model.set_attribute(model.layer("MatMul_61"), "transpose_b", True)
    >>> try:
    ...     irrun.write_model(model, "changed.xml")
    ... except irrun.IRError as error:
    ...     print(error.diagnostics[0].code)
    E401
    """
    if check and model.edited:
        errors = validate(model, searched=0).errors
        if errors:
            refusal = IRError(errors)
            refusal.add_note("nothing was written; `check=False` writes a model whatever is wrong with it")
            raise refusal
    writer.write_model(model, file, weights)


def declared(tensor: Tensor) -> tuple[int, ...]:
    """The sizes of a tensor as a port has them: -1 where unknown, none where its rank is."""
    return tuple(size if isinstance(size, int) else -1 for size in tensor.shape or ())
