"""What messages and listings quote: the parts of an op's docstring."""

from __future__ import annotations

import re

from irrun.spec.op import Op


def labels(op: Op) -> list[str]:
    """The labels of the documented constraints, in order."""
    return re.findall(r"^ +(C\d+):", op.__doc__ or "", re.MULTILINE)


def source_page(op: Op) -> str:
    """The page of the operation specification that the op's docstring names."""
    lines = [line for line in (op.__doc__ or "").splitlines() if line.startswith("Source:")]
    return lines[0].removeprefix("Source:").strip() if lines else f"the documentation of {op.name}"


def constraint_text(op: Op, label: str) -> str:
    """The sentence that the op's docstring has for a constraint."""
    lines = (op.__doc__ or "").splitlines()
    for number, line in enumerate(lines):
        if line.strip().startswith(f"{label}:"):
            indent = len(line) - len(line.lstrip())
            parts = [line.strip().removeprefix(f"{label}:").strip()]
            for more in lines[number + 1 :]:
                if len(more) - len(more.lstrip()) <= indent:
                    break
                parts.append(more.strip())
            return " ".join(parts).rstrip(".")
    return op.name
