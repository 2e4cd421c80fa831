"""Kernels of products with compressed weights."""

from __future__ import annotations

from irrun.engines.compiled.compiler import compiled
from irrun.engines.compiled.product_blocks import Blocks
from irrun.engines.compiled.product_code import ProductCode, ProductKind
from irrun.engines.compiled.product_few import FewRows


def address_of(kind: ProductKind) -> int:
    """Where the machine code of a kernel lies, a function of a pointer to its arguments. Safe for threads."""
    made = ProductCode if not kind.rows else Blocks if kind.blocks else FewRows
    return compiled(kind, lambda function: made(function, kind).write())
