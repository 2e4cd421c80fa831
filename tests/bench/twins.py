"""Exports ONNX twins of the models of tests/exports/export.py: the same seeded weights, beside the IR of each.

    python tests/bench/twins.py OUT_DIR [NAME...]

writes OUT_DIR/NAME/NAME.onnx for the named architectures or for all; one that torch cannot export is named, with the
reason, and left out. It needs what export.py needs, and onnx.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "exports"))

import torch
from export import ARCHITECTURES, make

OPSETS = (20, 17)
"""The newest that the exporter knows, where Gelu is one node; the oldest where LayerNormalization is."""


def export_onnx(name: str, folder: Path) -> None:
    """Write NAME.onnx, with sizes as in `inputs.npz`. Raises what the exporter raises for the last of `OPSETS`."""
    module, inputs = make(ARCHITECTURES[name])
    path = folder / f"{name}.onnx"
    folder.mkdir(parents=True, exist_ok=True)
    for opset in OPSETS:
        try:
            with torch.no_grad():
                torch.onnx.export(
                    module,
                    tuple(map(torch.from_numpy, inputs.values())),
                    path,
                    input_names=list(inputs),
                    opset_version=opset,
                    dynamo=False,  # the exporter that needs no further package
                )
            return
        except Exception:
            path.unlink(missing_ok=True)
            if opset == OPSETS[-1]:
                raise


def main() -> int:
    parser = argparse.ArgumentParser(description="Export ONNX twins of the real architectures.")
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ARCHITECTURES)}; all by default")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(ARCHITECTURES):
        parser.error(f"no such architecture: {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")  # of the tracer, about sizes that become constants
    for name in arguments.names or ARCHITECTURES:
        try:
            export_onnx(name, arguments.out / name)
            print(name, flush=True)
        except Exception as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            print(f"{name}: not exported: {reason}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
