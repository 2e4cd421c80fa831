"""Which instructions are views, and who computes the others."""

from unittest.mock import patch

import numpy as np

import irrun
from irrun.run.program import Instruction
from run.models import anything, i64, model, saved


def test_what_is_no_view_is_not_computed_to_see_that(tmp_path):
    """A kernel tells where a view lies; where it would copy all the elements it is not asked."""
    b = model()
    x = anything(b, "f4", (3, 4, 5))
    turned = b.one("Transpose-1", x, i64(b, [1, 0, 2]))
    b.result(b.one("Convert-1", x, destination_type="i32"))
    b.result(b.one("Reshape-1", turned, i64(b, [4, 15]), special_zero=False))
    b.result(b.one("Reshape-1", x, i64(b, [12, 5]), special_zero=False))
    asked = []
    computed = Instruction.computed

    def noted(instruction, arrays):
        asked.append(instruction.op.type)
        return computed(instruction, arrays)

    with patch.object(Instruction, "computed", noted):
        executor = irrun.GraphExecutor(saved(b, tmp_path), engine="numpy")
    assert asked == ["Transpose"]
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    whole, copied, plain = executor.run([x]).values()
    np.testing.assert_array_equal(whole, x.astype(np.int32))
    np.testing.assert_array_equal(copied, x.transpose(1, 0, 2).reshape(4, 15))
    np.testing.assert_array_equal(plain, x.reshape(12, 5))
