"""Detection ops: boxes found, decoded, thinned out, and features cut out for them."""

from __future__ import annotations
