"""What a sweep says of each task, a row each, and the table that rows are as Parquet and as lines of JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, field
from typing import Any

from irrun.records import dataclass

SCHEMA = 1
"""Raised when a column changes its meaning or goes; new ones may come at any time."""

OK, ERROR, DIFFERS, FAILED, CRASHED, TIMED_OUT, NOT_DONE = STATUSES = (
    "ok",
    "error",
    "differs",
    "failed",
    "crashed",
    "timed out",
    "not done",
)
"""`error`: the model or its inputs are at fault; `differs`: from the other side; `failed`: the other side did;
`crashed`, `timed out`: the process of the task did not live to tell; `not done`: a worker has not got what it takes."""

AT_FAULT = (ERROR, DIFFERS)
"""What is a finding about a model."""

Place = tuple[str, str, str, str]
"""What there is one row of: do, model, inputs and device."""


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one task.

    `model` and `inputs` are paths as they were given (or `random 7`), `device` the other side of a comparison or the
    engine of a run; what does not concern a task is empty. `code` is that of the first diagnostic, `cause` that of a
    difference, such as "N203". `seconds` is what the task took, with what had to be prepared for it. `key` is a hash of
    content: of the model, the inputs, all options and `versions`. `metrics` are finite numbers by name.
    """

    model: str
    inputs: str
    device: str
    do: str
    status: str
    reason: str = ""
    code: str = ""
    cause: str = ""
    seconds: float = 0.0
    metrics: Mapping[str, float] = field(default_factory=dict)
    key: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> Place:
        return self.do, self.model, self.inputs, self.device

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, given: Any) -> Row:
        """What `to_dict` gave; entries that are not known here are left aside. Raises ValueError for anything else."""
        try:
            texts = {name: given[name] for name in ("model", "inputs", "device", "do", "status", "key")}
            texts |= {name: given.get(name, "") for name in ("reason", "code", "cause")}
            if not all(isinstance(text, str) for text in texts.values()):
                raise ValueError("a text is missing")
            if texts["status"] not in STATUSES:
                raise ValueError(f"there is no status `{texts['status'][:50]}`")
            metrics = {str(name): float(number) for name, number in dict(given["metrics"]).items()}
            versions = {str(name): str(version) for name, version in dict(given["versions"]).items()}
            seconds = float(given["seconds"])
            if not all(map(math.isfinite, (seconds, *metrics.values()))):
                raise ValueError("a number is not finite")
            return cls(**texts, seconds=seconds, metrics=metrics, versions=versions)
        except (AttributeError, KeyError, OverflowError, TypeError) as error:
            raise ValueError(f"it is no row of a sweep: {error}") from None


def to_parquet(rows: Iterable[Row]) -> bytes:
    """The rows as the content of a Parquet file: texts, a double, and maps for `metrics` and `versions`.

    Raises ModuleNotFoundError where pyarrow is not installed.
    """
    import pyarrow
    import pyarrow.parquet

    text = pyarrow.string()
    types = dict.fromkeys(("model", "inputs", "device", "do", "status", "reason", "code", "cause"), text)
    types |= {"seconds": pyarrow.float64(), "metrics": pyarrow.map_(text, pyarrow.float64())}
    types |= {"key": text, "versions": pyarrow.map_(text, text)}
    schema = pyarrow.schema(list(types.items()), metadata={"irrun-sweep": str(SCHEMA)})
    lines = [row.to_dict() for row in rows]
    columns = {
        name: [
            list(line[name].items()) if name in ("metrics", "versions") else _encodable(line[name]) for line in lines
        ]
        for name in types
    }
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(columns, schema=schema), sink)
    return bytes(sink.getvalue())


def from_parquet(content: bytes) -> list[Row]:
    """The rows that `to_parquet` made a file of. Raises ValueError for anything else."""
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(pyarrow.BufferReader(content))
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"it is no Parquet file: {str(error).splitlines()[0]}") from None
    return [Row.from_dict(line) for line in table.to_pylist()]


def _encodable(value: Any) -> Any:
    """Names of files may have bytes that are no text."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
