"""Validate and run OpenVINO IR models by the written specification, without OpenVINO.

>>> import irrun
>>> report = irrun.validate("samples/cnn/model.xml")  # everything that is wrong with a model, never an exception
>>> report.ok
True
>>> executor = irrun.GraphExecutor("samples/cnn/model.xml")  # made once, run often; IRError where it cannot be run
>>> executor.inputs
(TensorInfo('image', f32[image.0, 3, 16, 16]),)
>>> outputs = executor.run(executor.random_inputs(7))
>>> outputs["probabilities"].shape
(1, 10)

`read_model`, `validate` and `GraphExecutor` take a path, the bytes of an .xml, or an open file. `Session` has variables
of its own, `Profile` and `Dump` look at a run, `register` and `load_ops` make custom operations known; these are
declared with `irrun.spec`.

`compare` says which layer of a model is wrong first beside a device or another model, and why; `irrun.testing` has
assertions for tests. `inspect` says what a model is and costs, `diff` what differs between two. `build` makes models,
the methods of a `Model` change them, `redeclare` brings their ports up to date, and `write_model` writes them. `sweep`
does some of that with many models, on many inputs and devices.

What goes wrong is an `IRError` (the model), an `InputError` (the arrays), an `ExecutionError` (the data of a run), an
`EngineError` (what computes is not installed) or `SideFailed` (what a model is compared with).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irrun.check.validate import Report as Report
    from irrun.check.validate import validate as validate
    from irrun.diagnostics import Diagnostic as Diagnostic
    from irrun.diagnostics import EngineError as EngineError
    from irrun.diagnostics import ExecutionError as ExecutionError
    from irrun.diagnostics import InputError as InputError
    from irrun.diagnostics import IRError as IRError
    from irrun.ir.graph import Model as Model
    from irrun.ir.reader import read_model as read_model
    from irrun.ir.signature import TensorInfo as TensorInfo
    from irrun.run.executor import GraphExecutor as GraphExecutor
    from irrun.run.profile import Profile as Profile
    from irrun.run.results import Results as Results
    from irrun.run.session import Event as Event
    from irrun.run.session import Session as Session
    from irrun.spec.registry import load_ops as load_ops
    from irrun.spec.registry import register as register
    from irrun.tools.build import build as build
    from irrun.tools.compare.comparison import compare as compare
    from irrun.tools.compare.results import Comparison as Comparison
    from irrun.tools.compare.sides.contract import SideFailed as SideFailed
    from irrun.tools.diff import Difference as Difference
    from irrun.tools.diff import diff as diff
    from irrun.tools.editing import redeclare as redeclare
    from irrun.tools.editing import write_model as write_model
    from irrun.tools.extract.extraction import Extracted as Extracted
    from irrun.tools.extract.extraction import extract as extract
    from irrun.tools.inspect.inspection import Inspection as Inspection
    from irrun.tools.inspect.inspection import inspect as inspect
    from irrun.tools.sweep.sweeping import Sweep as Sweep
    from irrun.tools.sweep.sweeping import sweep as sweep
    from irrun.tools.watch.dump import Dump as Dump

    __version__: str
else:
    from importlib import import_module

    _HOMES = {
        "Comparison": "irrun.tools.compare.results",
        "Diagnostic": "irrun.diagnostics",
        "Difference": "irrun.tools.diff",
        "Dump": "irrun.tools.watch.dump",
        "EngineError": "irrun.diagnostics",
        "Event": "irrun.run.session",
        "ExecutionError": "irrun.diagnostics",
        "Extracted": "irrun.tools.extract.extraction",
        "GraphExecutor": "irrun.run.executor",
        "IRError": "irrun.diagnostics",
        "InputError": "irrun.diagnostics",
        "Inspection": "irrun.tools.inspect.inspection",
        "Model": "irrun.ir.graph",
        "Profile": "irrun.run.profile",
        "Report": "irrun.check.validate",
        "Results": "irrun.run.results",
        "Session": "irrun.run.session",
        "SideFailed": "irrun.tools.compare.sides.contract",
        "Sweep": "irrun.tools.sweep.sweeping",
        "TensorInfo": "irrun.ir.signature",
        "build": "irrun.tools.build",
        "compare": "irrun.tools.compare.comparison",
        "diff": "irrun.tools.diff",
        "extract": "irrun.tools.extract.extraction",
        "inspect": "irrun.tools.inspect.inspection",
        "load_ops": "irrun.spec.registry",
        "read_model": "irrun.ir.reader",
        "redeclare": "irrun.tools.editing",
        "register": "irrun.spec.registry",
        "sweep": "irrun.tools.sweep.sweeping",
        "validate": "irrun.check.validate",
        "write_model": "irrun.tools.editing",
    }

    def __getattr__(name):
        # looked up on first use: `irrun --help` must not wait for numpy
        if name == "__version__":
            from importlib.metadata import version

            return version("irrun")
        if name not in _HOMES:
            raise AttributeError(f"module 'irrun' has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)

    def __dir__():
        return sorted({*globals(), *__all__})


__all__ = [
    "Comparison",
    "Diagnostic",
    "Difference",
    "Dump",
    "EngineError",
    "Event",
    "ExecutionError",
    "Extracted",
    "GraphExecutor",
    "IRError",
    "InputError",
    "Inspection",
    "Model",
    "Profile",
    "Report",
    "Results",
    "Session",
    "SideFailed",
    "Sweep",
    "TensorInfo",
    "__version__",
    "build",
    "compare",
    "diff",
    "extract",
    "inspect",
    "load_ops",
    "read_model",
    "redeclare",
    "register",
    "sweep",
    "validate",
    "write_model",
]
