"""irrun: validate and run OpenVINO IR models by the written specification."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irrun.check.validate import Report, validate
    from irrun.diagnostics import Diagnostic, ExecutionError, InputError, IRError
    from irrun.ir.reader import read_model
    from irrun.run.executor import GraphExecutor

__all__ = [
    "Diagnostic",
    "ExecutionError",
    "GraphExecutor",
    "IRError",
    "InputError",
    "Report",
    "read_model",
    "validate",
]

_HOMES = {
    "GraphExecutor": "irrun.run.executor",
    "Report": "irrun.check.validate",
    "read_model": "irrun.ir.reader",
    "validate": "irrun.check.validate",
}


def __getattr__(name: str) -> Any:
    # looked up on first use: `irrun --help` must not wait for numpy
    if name not in __all__:
        raise AttributeError(f"module 'irrun' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "irrun.diagnostics")), name)
