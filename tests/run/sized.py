"""Random models in which the sizes of inputs say what ops do: where they cut, what they add, how far they turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from differential.builder import Builder, Value

from run.models import ADD, PLAIN, branch, i64, loop, saved

COLUMNS = 16
ROWS = (20, 12, 24, 33, 7, 60, 21, 28, 41, 200, 19)
STRIPS = {"shrink_axis_mask": (), "new_axis_mask": (), "ellipsis_mask": ()}


class Sized:
    """A model of x [rows, 16] in the making, whose `sizes` are what it knows of the rows."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.b = Builder(self.rng, sets=len(ROWS), special=True)  # whose numbers may be large
        self.b.most = 1 << 24
        self.x = self.b.parameter([self.rng.standard_normal((rows, COLUMNS), np.float32) for rows in ROWS])
        self.rows = self._length(self.x)
        self.sizes = [self._whole("Divide", self.rows, number, m_pythondiv=True) for number in (2, 3, 4, 5)]
        self.sizes += [self._whole("FloorMod", self.rows, number) for number in (3, 4)]
        self.sizes.append(self._whole("Minimum", self.sizes[0], 3))

    def saved(self, folder: Path) -> Path:
        """One of several layers, each of which does one thing in two or three ways."""
        layers = [self.sliced, self.strided, self.turned, self.gathered, self.padded, self.updated]
        layers += [self.scaled, self.selected, self.ranged, self.parted, self.looked_up, self.powered, self.masked]
        layers += [self.repeated, self.copied, self.resized, self.highest, self.folded, self.chosen, self.iterated]
        layers += [self.cut_off, self.grouped]
        y = self.x
        for _ in range(int(self.rng.integers(2, 5))):
            weights = self.rng.standard_normal((COLUMNS, COLUMNS), np.float32) / 4
            y = self._one("MatMul-1", y, self.b.constant(weights), **PLAIN)
            y = self._one("Sigmoid-1", y) if self.rng.random() < 0.5 else y
            layer: Callable[[Value, Value], Value] = self.rng.choice(np.array(layers, object))
            made = [layer(y, size) for size in self.rng.choice(np.array(self.sizes, object), 3, replace=False)]
            for own in made[:2] if self.rng.random() < 0.5 else made:
                if own.rank == 2 and self.rng.random() < 0.3:  # another view behind that
                    own = self._one("Slice-8", own, *(i64(self.b, [n]) for n in (1, 7, 1)), i64(self.b, [1]))
                    own = self._one("Pad-12", own, *(i64(self.b, [0, n]) for n in (0, 10)), pad_mode="constant")
                if self.rng.random() < 0.5:
                    self.b.result(own)
                whole = own if own.rank == 1 else self._one("ReduceSum-1", own, i64(self.b, [0]), keep_dims=False)
                y = self._one("Add-1", y, whole, **ADD)
        self.b.result(y)
        return saved(self.b, folder)

    def sliced(self, y: Value, size: Value) -> Value:
        """Two rows from there on."""
        one = i64(self.b, [1])
        return self._one("Slice-8", y, size, self._whole("Add", size, 2), one, i64(self.b, [0]))

    def strided(self, y: Value, size: Value) -> Value:
        begin, end = (self._joined(own, 0) for own in (size, self._whole("Add", size, 2)))
        masks = {"begin_mask": (0, 1), "end_mask": (0, 1)}
        return self._one("StridedSlice-1", y, begin, end, i64(self.b, [1, 1]), **masks, **STRIPS)

    def turned(self, y: Value, size: Value) -> Value:
        return self._one("Roll-7", y, size, i64(self.b, [0]))

    def gathered(self, y: Value, size: Value) -> Value:
        """The row there."""
        return self._one("Gather-8", y, self._scalar(size), i64(self.b, 0), batch_dims=0)

    def padded(self, y: Value, size: Value) -> Value:
        """As many rows before as are not behind."""
        others = self._one("Subtract-1", self.rows, size, **ADD)
        return self._one("Pad-12", y, self._joined(size, 0), self._joined(others, 0), pad_mode="constant")

    def updated(self, y: Value, size: Value) -> Value:
        ones = self.b.constant(np.ones((1, COLUMNS), np.float32))
        return self._one("ScatterUpdate-3", y, size, ones, i64(self.b, 0))

    def scaled(self, y: Value, size: Value) -> Value:
        return self._one("Multiply-1", y, self._one("Convert-1", size, destination_type="f32"), **ADD)

    def powered(self, y: Value, size: Value) -> Value:
        factor = self._one("Convert-1", self._scalar(size), destination_type="f32")
        return self._one("Sigmoid-1", self._one("Minimum-1", factor, y, **ADD))

    def selected(self, y: Value, size: Value) -> Value:
        """The columns before it."""
        before = self._one("Less-1", i64(self.b, np.arange(COLUMNS)), size, **ADD)
        return self._one("Select-1", before, y, self.b.constant(np.float32(-1)), **ADD)

    def ranged(self, y: Value, size: Value) -> Value:
        """A number for each row, from the size on."""
        begin = self._scalar(size)
        end = self._one("Add-1", begin, self._scalar(self.rows), **ADD)
        numbers = self._one("Range-4", begin, end, i64(self.b, 1), output_type="f32")
        return self._one("Add-1", self._one("Unsqueeze-1", numbers, i64(self.b, 1)), y, **ADD)

    def masked(self, y: Value, size: Value) -> Value:
        """What is positive, or a table of numbers from the size on, which may lie transposed."""
        begin, turned = self._scalar(size), self.rng.random() < 0.5
        end = self._one("Add-1", begin, self._scalar(self.rows), **ADD)
        numbers = self._one("Range-4", begin, end, i64(self.b, 1), output_type="f32")
        columns = self.b.constant(np.arange(COLUMNS, dtype=np.float32))
        rows, columns = (
            self._one("Unsqueeze-1", own, i64(self.b, [axis]))
            for own, axis in ((numbers, int(not turned)), (columns, int(turned)))
        )
        table = self._one("Multiply-1", rows, columns, **ADD)
        table = self._one("Transpose-1", table, i64(self.b, [1, 0])) if turned else table
        return self._one("Select-1", self._one("Greater-1", y, self.b.constant(np.float32(0)), **ADD), y, table, **ADD)

    def repeated(self, y: Value, size: Value) -> Value:
        return self._one("Tile-1", self._first(y), self._joined(size, 1))

    def copied(self, y: Value, size: Value) -> Value:
        return self._one("Broadcast-3", self._first(y), self._joined(size, COLUMNS), mode="bidirectional")

    def resized(self, y: Value, size: Value) -> Value:
        """One row more than that."""
        image = self._one("Unsqueeze-1", y, i64(self.b, [0, 1]))
        attrs = {
            "mode": "linear_onnx",
            "shape_calculation_mode": "sizes",
            "coordinate_transformation_mode": "asymmetric",
        }
        nothing = {"pads_begin": (0, 0, 0, 0), "pads_end": (0, 0, 0, 0), "antialias": False, "nearest_mode": "floor"}
        sizes = self._joined(self._whole("Add", size, 1), COLUMNS)
        made = self._one("Interpolate-11", image, sizes, i64(self.b, [2, 3]), cube_coeff=-0.75, **attrs, **nothing)
        return self._one("Squeeze-1", made, i64(self.b, [0, 1]))

    def highest(self, y: Value, size: Value) -> Value:
        count = self._scalar(self._whole("Add", size, 1))
        return self._one("TopK-11", y, count, axis=0, mode="max", sort="value", index_element_type="i32", stable=True)

    def folded(self, y: Value, size: Value) -> Value:
        """Twice as many rows as that, as half as many of two."""
        zero, one = i64(self.b, [0]), i64(self.b, [1])
        even = self._one("Slice-8", y, zero, self._whole("Multiply", size, 2), one, zero)
        wide = self._one("Reshape-1", even, self._joined(size, 2 * COLUMNS), special_zero=False)
        return self._one("Slice-8", wide, i64(self.b, [8]), i64(self.b, [8 + COLUMNS]), one, one)

    def cut_off(self, y: Value, size: Value) -> Value:
        """As many rows as make a multiple of 7, and then without what was added: nothing is left if that was none."""
        zero, one = i64(self.b, [0]), i64(self.b, [1])
        lacking = self._one("FloorMod-1", self._one("Negative-1", self.rows), i64(self.b, [7]), **ADD)
        none = i64(self.b, [0, 0])
        wide = self._one("Pad-12", y, none, self._joined(lacking, 0), pad_mode="constant")
        wide = self._one("Reshape-1", wide, i64(self.b, [-1, 7, COLUMNS]), special_zero=False)
        flat = self._one("Reshape-1", self._one("Tanh-1", wide), i64(self.b, [-1, COLUMNS]), special_zero=False)
        return self._one("Slice-8", flat, zero, self._one("Negative-1", lacking), one, zero)

    def grouped(self, y: Value, size: Value) -> Value:
        """The rows by groups of as many as a table has, whose length is a size of its own."""
        rows = self._length(self.masked(y, size))
        groups = self._one("Floor-1", self._one("Divide-1", self.rows, rows, m_pythondiv=True, **ADD))
        target = self._one("Concat-1", groups, rows, i64(self.b, [COLUMNS]), axis=0)
        wide = self._one("Reshape-1", y, target, special_zero=False)
        return self._one("Squeeze-1", self._one("Tanh-1", wide), i64(self.b, [0]))

    def chosen(self, y: Value, size: Value) -> Value:
        bodies = []
        for op in ("Tanh-1", "Sigmoid-1"):
            inner = self._inside()
            bodies.append((inner, inner.one(op, inner.parameter(y.arrays))))
        many = self._one("Greater-1", self._scalar(size), i64(self.b, 4), **ADD)
        return branch(self.b, many, bodies, y)

    def iterated(self, y: Value, size: Value) -> Value:
        inner = self._inside()
        carried = inner.parameter(y.arrays)
        made = inner.one("Add-1", inner.one("Tanh-1", carried), inner.constant(np.float32(0.25)), **ADD)
        return loop(self.b, inner, self._scalar(size), [(carried, y)], [made], [(made, carried)])[0]

    def parted(self, y: Value, size: Value) -> Value:
        lengths = self._one("Concat-1", size, i64(self.b, [-1]), axis=0)
        first, rest = self.b.op("VariadicSplit-1", y, i64(self.b, 0), lengths)
        return self._one("Concat-1", rest, first, axis=0)

    def looked_up(self, y: Value, size: Value) -> Value:
        table = self.b.constant(np.random.default_rng(1).standard_normal((64, COLUMNS), np.float32))
        return self._one("Add-1", y, self._one("Gather-8", table, size, i64(self.b, 0), batch_dims=0), **ADD)

    def _inside(self) -> Builder:
        inner = Builder(self.rng, sets=len(ROWS), special=True)
        inner.most = self.b.most
        return inner

    def _length(self, y: Value) -> Value:
        shape = self._one("ShapeOf-3", y, output_type="i64")
        return self._one("Gather-8", shape, i64(self.b, [0]), i64(self.b, 0), batch_dims=0)

    def _first(self, y: Value) -> Value:
        return self._one("Slice-8", y, *(i64(self.b, [number]) for number in (0, 1, 1, 0)))

    def _joined(self, size: Value, number: int) -> Value:
        return self._one("Concat-1", size, i64(self.b, [number]), axis=0)

    def _scalar(self, size: Value) -> Value:
        return self._one("Squeeze-1", size, i64(self.b, [0]))

    def _whole(self, op: str, size: Value, number: int, **attrs: object) -> Value:
        return self._one(f"{op}-1", size, i64(self.b, [number]), **ADD, **attrs)

    def _one(self, op: str, *inputs: Value, **attrs: object) -> Value:
        return self.b.one(op, *inputs, **attrs)
