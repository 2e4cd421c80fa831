"""What the benchmarks are told alike: where the models are, how often and with how many threads, and whose irrun."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from bench.processes import Setting, install


def parser(description: str | None, turns: int) -> argparse.ArgumentParser:
    """Of the options that all have. `turns` is how often each runtime has its turn, unless another number is given."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--models", type=Path, metavar="FOLDER", help="where the models are")
    options.add_argument("--only", action="append", default=[], metavar="NAME", help="a model, or how an op begins")
    options.add_argument("--turns", type=int, default=turns, metavar="N", help=f"of each runtime (default: {turns})")
    options.add_argument("--threads", type=int, default=os.cpu_count(), metavar="N", help="default: all processors")
    options.add_argument(
        "--python",
        type=Path,
        metavar="PATH",
        help="a checkout of irrun, which is copied and compiled beside what this interpreter has, or an interpreter "
        "with irrun and its peers; default: this checkout",
    )
    options.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    return options


def setting(python: Path | None, threads: int, folder: Path) -> Setting:
    """What --python and --threads say; a checkout is installed in `folder`."""
    if python is None:
        return Setting(install(folder), threads)
    return Setting(install(folder, python) if python.is_dir() else str(python), threads)
