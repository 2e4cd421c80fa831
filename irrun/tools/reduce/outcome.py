"""What a check says of a model, and when two of them fail in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

from irrun.records import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a model `fails`, and how: parts of a signature by what they are, such as its exit or the cause.

    `detail` is for people; `hints` are names of layers that may be at fault.
    """

    fails: bool
    signature: Mapping[str, str] = field(default_factory=dict)
    detail: str = ""
    hints: tuple[str, ...] = ()

    def like(self, other: Outcome) -> bool:
        """Whether this is the failure that the other one is."""
        return self.fails and other.fails and dict(self.signature) == dict(other.signature)

    @property
    def kind(self) -> str:
        """The signature in a line."""
        return ", ".join(f"{name} {text}" for name, text in self.signature.items()) or "failure"

    def to_dict(self) -> dict[str, Any]:
        return {"fails": self.fails, "signature": dict(self.signature), "detail": self.detail, "hints": self.hints}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Outcome:
        """What `to_dict` gave. Raises ValueError for anything else."""
        try:
            signature = {str(name): str(text) for name, text in given["signature"].items()}
            hints = tuple(map(str, given.get("hints", ())))
            return cls(bool(given["fails"]), signature, str(given.get("detail", "")), hints)
        except (KeyError, AttributeError, TypeError) as error:
            raise ValueError(f"it is no outcome of a check: {error}") from None


FINE = Outcome(fails=False)
"""Of a model that does not fail."""

NOT_MADE = {"check": "not made"}
"""The signature of a model that does not fail because its check cannot be made; the detail says why."""


class Check(Protocol):
    """Tries a model on inputs, in a process that may crash or hang. It raises nothing for these."""

    @property
    def description(self) -> str:
        """What is checked, so that the same words mean the same check."""
        ...

    def shown_by(self, running: bool) -> str:
        """The command of the shell that shows the failure in the folder of the smallest model, which has inputs where
        it is `running`."""
        ...

    def __call__(self, model: Path, inputs: Path) -> Outcome: ...

    def close(self) -> None: ...
