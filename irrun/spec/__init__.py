"""What an op library is written with: the names that op modules, ours and a user's, import.

An op is a declaration, a kernel, and a rule for what its declaration cannot say:

>>> import numpy as np
>>> from irrun.spec import INT, NUMERIC, Attr, Input, Output, Tensor, fresh, op
>>> @op(
...     "TakeEvery-1",
...     inputs=[Input("data", "T", "[N, C]")],
...     outputs=[Output("taken", "T", "[M, C]")],
...     attrs=[Attr("step", INT, least=1)],
...     types={"T": NUMERIC},
...     extension_versions=["extension"],
... )
... def take_every(data, *, step):
...     '''Every so many rows, from the first one on.
...
...     Constraints:
...         C1: there is a row at all.
...     '''
...     return data[::step]
>>> @take_every.shapes
... def _(node):
...     rows = node.dims["N"]
...     node.require("C1", rows > 0, "`data` has no rows", "data")
...     return {"M": (rows - 1) // node.attrs["step"] + 1}

It can be tried at once, on arrays or on what is known of them before a run:

>>> take_every(np.array([[1, 2], [3, 4], [5, 6]]), step=2)
array([[1, 2],
       [5, 6]])
>>> take_every(np.zeros((0, 2)), step=2)
Traceback (most recent call last):
irrun.spec.op.Violation: `data` has no rows
>>> known = take_every.infer([Tensor("f32", (fresh(name="rows"), 4))], {"step": 2})
>>> known.outputs[0].type, known.outputs[0].shape[1]
('f32', 4)

`irrun.register(take_every)` makes it known to models, and so does a module with it that `irrun --ops` names.
"""

from irrun.spec.attributes import (
    BOOL,
    ELEMENT_TYPE,
    FLOAT_NUMBER,
    FLOATS,
    INT,
    INTS,
    LEAST_I32,
    MAX_RANK,
    MOST_F32,
    MOST_I32,
    NO_NAN,
    REQUIRED,
    SHAPE,
    STRING,
    STRINGS,
    WHOLE,
    Attr,
    EachAxis,
    choice,
    exact,
)
from irrun.spec.body import Body, BodyInput, BodyOutput, misfit
from irrun.spec.dims import (
    UNDECIDED,
    Dim,
    Shape,
    Size,
    Undecided,
    broadcast,
    broadcast_shapes,
    divided,
    every,
    fresh,
    incompatible,
    largest,
    meet,
    product,
    smallest,
)
from irrun.spec.dtypes import NF4, comparable, element_type, numpy_dtype
from irrun.spec.op import (
    ANY,
    BOOLEAN,
    FLOAT,
    INDEX,
    INTEGER,
    NUMERIC,
    SIGNED,
    UNLIKELY,
    UNSORTED,
    UNSPECIFIED,
    Array,
    Doubt,
    Input,
    Node,
    Op,
    Output,
    Shapes,
    Source,
    Tensor,
    Violation,
    op,
    variation,
)
from irrun.spec.patterns import shape_text
from irrun.spec.sizes import Sizes, joined, quiet
from irrun.spec.traits import (
    Accumulating,
    Attending,
    Bounded,
    Branching,
    Converting,
    Convolving,
    Cutting,
    Doubting,
    Elementwise,
    Filling,
    Iterating,
    Joining,
    Lookup,
    MatrixProduct,
    Measuring,
    Normalizing,
    Overwriting,
    Padding,
    Permutation,
    Products,
    Quantizing,
    Reading,
    Reduction,
    Repeating,
    Reshaping,
    Resizing,
    Retyping,
    Selecting,
    Splitting,
    Storing,
    Trait,
    Transforming,
    Waning,
    Weighing,
    Whole,
)

__all__ = [
    "ANY",
    "BOOL",
    "BOOLEAN",
    "ELEMENT_TYPE",
    "FLOAT",
    "FLOATS",
    "FLOAT_NUMBER",
    "INDEX",
    "INT",
    "INTEGER",
    "INTS",
    "LEAST_I32",
    "MAX_RANK",
    "MOST_F32",
    "MOST_I32",
    "NF4",
    "NO_NAN",
    "NUMERIC",
    "REQUIRED",
    "SHAPE",
    "SIGNED",
    "STRING",
    "STRINGS",
    "UNDECIDED",
    "UNLIKELY",
    "UNSORTED",
    "UNSPECIFIED",
    "WHOLE",
    "Accumulating",
    "Array",
    "Attending",
    "Attr",
    "Body",
    "BodyInput",
    "BodyOutput",
    "Bounded",
    "Branching",
    "Converting",
    "Convolving",
    "Cutting",
    "Dim",
    "Doubt",
    "Doubting",
    "EachAxis",
    "Elementwise",
    "Filling",
    "Input",
    "Iterating",
    "Joining",
    "Lookup",
    "MatrixProduct",
    "Measuring",
    "Node",
    "Normalizing",
    "Op",
    "Output",
    "Overwriting",
    "Padding",
    "Permutation",
    "Products",
    "Quantizing",
    "Reading",
    "Reduction",
    "Repeating",
    "Reshaping",
    "Resizing",
    "Retyping",
    "Selecting",
    "Shape",
    "Shapes",
    "Size",
    "Sizes",
    "Source",
    "Splitting",
    "Storing",
    "Tensor",
    "Trait",
    "Transforming",
    "Undecided",
    "Violation",
    "Waning",
    "Weighing",
    "Whole",
    "broadcast",
    "broadcast_shapes",
    "choice",
    "comparable",
    "divided",
    "element_type",
    "every",
    "exact",
    "fresh",
    "incompatible",
    "joined",
    "largest",
    "meet",
    "misfit",
    "numpy_dtype",
    "op",
    "product",
    "quiet",
    "shape_text",
    "smallest",
    "variation",
]
