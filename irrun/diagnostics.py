"""What irrun has to say about a model: diagnostics, and the exceptions that carry them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from irrun.records import NamedTuple, dataclass

MAX_ALIKE = 2000
"""Diagnostics of one code that are listed; a file may be broken in a million places."""

FIRST = "first"
SECOND = "second"
"""The remedies of an attribute that is given twice: which of the two stays."""

LONGEST_TEXT = 2000
"""Characters of a message or a help; names and values in them may be of any length."""

LONGEST_NAME = 300
"""Characters of the name of a layer in a message."""


def clipped(text: str, most: int) -> str:
    """`text`, without its middle where it is longer than `most` characters."""
    return (
        text if len(text) <= most else f"{text[: most // 2]}[... {len(text) - most} characters ...]{text[-most // 2 :]}"
    )


def counted(count: int, noun: str) -> str:
    """`1 layer`, `2,000 layers`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


@dataclass(frozen=True, slots=True)
class Span:
    """A spot in the .xml file; line and column count from 1, and `length` is in characters."""

    line: int
    column: int
    length: int = 1


NOWHERE = Span(0, 0, 0)
"""The place of what is in no file, such as a layer that was added; diagnostics have none then."""


@dataclass(frozen=True, slots=True)
class Note:
    """A fact beside a diagnostic, such as where a shape comes from; `input` is that of the layer that it is about."""

    message: str
    span: Span | None = None
    input: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", clipped(self.message, LONGEST_TEXT))
        object.__setattr__(self, "span", None if self.span == NOWHERE else self.span)


@dataclass(frozen=True, slots=True)
class LayerName:
    """Which layer a diagnostic is about; ids are unique within one graph."""

    id: int
    name: str
    type: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", clipped(self.name, LONGEST_NAME))
        object.__setattr__(self, "type", clipped(self.type, LONGEST_NAME))

    def __str__(self) -> str:
        return f"{self.id} `{self.name}` ({self.type})"


class Replacement(NamedTuple):
    """New text for the bytes from `start` to `end` of the .xml, as it is in UTF-8; `at` and `until` are their lines and
    columns. It is an insertion where both are the same."""

    start: int
    end: int
    text: str
    at: tuple[int, int]
    until: tuple[int, int]


class Fix(NamedTuple):
    """What mends a diagnostic, all of its replacements together.

    It is `safe` where the file leaves no other reading, or where nothing reads what changes; otherwise it is a guess,
    or changes what a model computes that OpenVINO loads as it is.
    """

    title: str
    replacements: tuple[Replacement, ...]
    safe: bool = True


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is wrong with a model.

    `code` is a key of `irrun.check.codes.CODES`: E... is an error, W... a warning, I... an info, which is of no
    consequence; of what a comparison finds, N2... is an error, N3... a warning, N1... says what explains it; T... is an
    error for the release that was asked about. `label` is the constraint of the op that is broken (C1, C2, ...), and
    `file` the file that `span` lies in. `fixes` are found on request, by `irrun.check.fixes`, the likeliest first. It
    stands for a `number` of such, which is more than 1 where the others are not listed. An error that a run was told to
    pass over is `ignored`, and no more than a warning. `remedy` is a word for what mends it, where a code has
    several, which is what fixes go by.
    """

    code: str
    message: str
    span: Span | None = None
    layer: LayerName | None = None
    help: str | None = None
    notes: tuple[Note, ...] = field(default=())
    label: str | None = None
    file: str | None = None
    fixes: tuple[Fix, ...] = field(default=())
    number: int = 1
    ignored: bool = False
    remedy: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", clipped(self.message, LONGEST_TEXT))
        object.__setattr__(self, "span", None if self.span == NOWHERE else self.span)
        if self.help is not None:
            object.__setattr__(self, "help", clipped(self.help, LONGEST_TEXT))

    @property
    def severity(self) -> str:
        if self.ignored:
            return "warning"
        if self.code.startswith(("E", "N2", "T")):
            return "error"
        return "warning" if self.code.startswith(("W", "N3")) else "info"

    @property
    def line(self) -> int | None:
        return self.span.line if self.span else None

    @property
    def column(self) -> int | None:
        return self.span.column if self.span else None

    @property
    def end_column(self) -> int | None:
        """The column behind the last character, on the same line."""
        return self.span.column + self.span.length if self.span else None

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return f"{where + ': ' if where else ''}{self.severity}[{self.code}]: {self.message}"


def retold(found: Iterable[Diagnostic], told: Mapping[int, Diagnostic | None]) -> list[Diagnostic]:
    """What is found, with what is told instead of some, by their identity; None where that is nothing."""
    said = (told.get(id(each), each) for each in found)
    return [each for each in said if each is not None]


def limited(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The diagnostics; of a code that is found again and again, the first ones and how many more there are."""
    counts: Counter[str] = Counter()
    listed = []
    for diagnostic in found:
        counts[diagnostic.code] += 1
        if counts[diagnostic.code] <= MAX_ALIKE:
            listed.append(diagnostic)
    more = {code: count - MAX_ALIKE for code, count in counts.items() if count > MAX_ALIKE}
    return listed + [
        Diagnostic(code, f"{count:,} more like these are not listed", number=count) for code, count in more.items()
    ]


def _lines(diagnostic: Diagnostic) -> Iterator[str]:
    """A diagnostic for people who have no source at hand."""
    yield str(diagnostic)
    if diagnostic.layer is not None:
        yield f"  note: in layer {diagnostic.layer}"
    for note in diagnostic.notes:
        yield f"  note: {note.message}{f' at line {note.span.line}' if note.span else ''}"
    if diagnostic.help is not None:
        yield f"  help: {diagnostic.help}"


class EngineError(Exception):
    """An engine that was asked for is not there."""


class IRError(Exception):
    """A model cannot be read, checked or run; `diagnostics` says why, and its text says it with notes and help."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__("\n".join(line for diagnostic in diagnostics for line in _lines(diagnostic)))
        self.diagnostics = list(diagnostics)

    def __reduce__(self) -> tuple[type[IRError], tuple[list[Diagnostic]]]:
        return type(self), (self.diagnostics,)  # exceptions are made again of their text otherwise


class InputError(ValueError):
    """The arrays given to a run do not fit the model's inputs; `problems` is all that is wrong with them."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(self.problems)


class ExecutionError(IRError):
    """A layer failed while the model ran: its data break a constraint."""
