"""Edits of a model, one after the other: a module for each group of verbs, and the table of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from irrun.diagnostics import IRError
from irrun.ir.graph import Model
from irrun.records import dataclass
from irrun.tools.edit.cleaning import dedup, fold, strip
from irrun.tools.edit.cutting import add_output, cut_from, cut_to
from irrun.tools.edit.history import History
from irrun.tools.edit.lowering import lower
from irrun.tools.edit.merging import append
from irrun.tools.edit.naming import precise, rename
from irrun.tools.edit.preprocessing import preprocess
from irrun.tools.edit.shapes import reshape
from irrun.tools.edit.types import weights
from irrun.tools.editing import redeclare

PREPROCESSING = ("layout", "input-type", "reverse-channels", "mean", "scale")
"""Verbs that make one edit where they follow each other, in the order in which the data go through them."""


@dataclass(frozen=True, slots=True)
class Step:
    """A verb, and what it is given: texts as on the command line."""

    verb: str
    given: str = ""

    def __str__(self) -> str:
        return f"--{self.verb} {self.given}".rstrip()


VERBS: Mapping[str, Callable[[Model, Sequence[str]], None]] = {
    "reshape": reshape,
    "target": lower,
    "weights": weights,
    "cut-from": cut_from,
    "cut-to": cut_to,
    "add-output": add_output,
    "rename": rename,
    "precise": precise,
    "strip": strip,
    "dedup": dedup,
    "fold": fold,
}
"""What each verb does with all that it is given at a time. They raise ValueError or IRError, as do those that tell what
they have done: preprocessing, and `append`."""


class EditError(ValueError):
    """A step cannot be made; its message begins with the step."""


def edit(model: Model, steps: Iterable[Step]) -> History:
    """Edit a model by steps, in order; equal verbs that follow each other are one edit.

    Types and sizes of ports are brought up to date after each. Returns what the tensors were before, and what is done
    now with data before they are what the model took. Raises EditError where a step names what is not there or cannot
    be made, IRError where the model breaks a rule then.

    >>> import irrun
    >>> model = irrun.read_model("samples/cnn/model.xml")
    >>> _ = edit(model, [Step("reshape", "image=1,3,16,16"), Step("cut-to", "Relu_56")])
    >>> model.inputs, model.outputs
    ((TensorInfo('image', f32[1, 3, 16, 16]),), (TensorInfo('Relu_56', f32[1, 16, 8, 8]),))
    """
    history = History.of(model)
    for verb, listed in groupby(steps, lambda step: "preprocess" if step.verb in PREPROCESSING else step.verb):
        group, names = list(listed), history.names(model)
        given = [step.given for step in group]
        try:
            if verb == "preprocess":
                history.preprocessings += preprocess(model, [(step.verb, step.given) for step in group])
            elif verb == "append":
                for text in given:
                    history.join(append(model, text))
                    history.follow(model, names)
            else:
                VERBS[verb](model, given)
            history.follow(model, names)
            redeclare(model)
        except IRError as error:
            path = str(model.path)
            raise IRError(
                history.placed(found if found.file else replace(found, file=path) for found in error.diagnostics)
            ) from None
        except ValueError as error:
            raise EditError(f"{', '.join(map(str, group))}: {error}") from None
    return history
