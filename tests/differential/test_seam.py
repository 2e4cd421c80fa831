"""What went wrong where graphs are handed to engines, each with its numbers, in a process that may crash."""

import sys
import threading

import numpy as np
import pytest

import irrun
from differential.builder import Builder
from differential.examine import outputs
from differential.graph import Body, Case, Layer, save
from differential.pool import Died, Process

BOTH = pytest.mark.parametrize("engine", ["numpy", "onednn"])
ADD = {"auto_broadcast": "numpy"}
WINDOW = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]}
POOL = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "kernel": [2, 2], "rounding_type": "floor"}


def model(sets=1):
    return Builder(np.random.default_rng(0), sets)


@pytest.fixture(scope="module")
def process():
    """A process that runs cases, which goes on in another one where it crashes."""
    with Process(outputs) as running:
        yield running


def computed(process, b, engine):
    """The outputs of all runs."""
    found = process((Case(b.graph, b.feeds), engine))
    assert not isinstance(found, Died), found
    return found


def result(process, b, engine):
    """The output of a model that has one, in its only run."""
    ((array,),) = computed(process, b, engine)
    return array


def i64(b, values):
    return b.constant(np.int64(values))


def views(b, which):
    """[3, 2, 1] or [5, 5, 5] as a constant that is not dense."""
    if which == "broadcast":
        return b.one("Broadcast-3", b.constant(np.float32([5])), i64(b, [3]), mode="numpy"), [5, 5, 5]
    return b.one("Slice-8", b.constant(np.float32([1, 2, 3])), i64(b, [-1]), i64(b, [-4]), i64(b, [-1]), i64(b, [0])), [
        3,
        2,
        1,
    ]


@BOTH
@pytest.mark.parametrize("which", ["broadcast", "reversed"])
def test_a_bias_that_is_a_view_behind_a_product(process, engine, which):
    b = model()
    x = b.parameter([np.float32([[1, 2, 3], [4, 5, 6]])])
    product = b.one("MatMul-1", x, b.constant(np.eye(3, dtype=np.float32)), transpose_a=False, transpose_b=False)
    bias, numbers = views(b, which)
    b.result(b.one("Add-1", product, bias, **ADD))
    expected = {"broadcast": [[6, 7, 8], [9, 10, 11]], "reversed": [[4, 4, 4], [7, 7, 7]]}[which]
    assert result(process, b, engine).tolist() == expected
    assert numbers


@BOTH
@pytest.mark.parametrize("which", ["broadcast", "reversed"])
def test_a_bias_that_is_a_view_behind_a_convolution(process, engine, which):
    b = model()
    x = b.parameter([np.float32([[1, 2], [3, 4], [5, 6]]).reshape(1, 3, 1, 2)])
    filters = b.constant(np.eye(3, dtype=np.float32).reshape(3, 3, 1, 1))
    bias, _ = views(b, which)
    channels = b.one("Reshape-1", bias, i64(b, [1, 3, 1, 1]), special_zero=False)
    b.result(b.one("Add-1", b.one("Convolution-1", x, filters, **WINDOW), channels, **ADD))
    expected = {"broadcast": [[6, 7], [8, 9], [10, 11]], "reversed": [[4, 5], [5, 6], [6, 7]]}[which]
    assert result(process, b, engine)[0, :, 0].tolist() == expected


@BOTH
def test_an_operand_that_is_a_folded_transposition(process, engine):
    b = model()
    x = b.parameter([np.float32([[1, 2, 3], [4, 5, 6]])])
    product = b.one("MatMul-1", x, b.constant(np.eye(3, dtype=np.float32)), transpose_a=False, transpose_b=False)
    other = b.one("Transpose-1", b.constant(np.float32([[10, 20], [30, 40], [50, 60]])), i64(b, [1, 0]))
    b.result(b.one("Add-1", product, other, **ADD))
    assert result(process, b, engine).tolist() == [[11, 32, 53], [24, 45, 66]]


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn"])
def test_values_of_one_set_of_shapes_do_not_leak_into_the_next(process, engine):
    b = model(3)
    x = b.parameter([np.zeros((rows, 3), np.float32) for rows in (2, 5, 7)])
    b.result(b.one("ShapeOf-3", x, output_type="i64"))
    assert [found[0].tolist() for found in computed(process, b, engine)] == [[2, 3], [5, 3], [7, 3]]


@BOTH
def test_a_power_whose_base_is_a_number(process, engine):
    b = model()
    x = b.parameter([np.float32([0, 1, 2, 3, -1])])
    b.result(b.one("Power-1", b.constant(np.float32(2)), b.one("ReLU-1", x), **ADD))
    np.testing.assert_allclose(result(process, b, engine), [1, 2, 4, 8, 1], rtol=1e-6)


@BOTH
@pytest.mark.parametrize("type", ["i4", "i8", "i1"])
def test_a_power_of_integers_whose_base_is_a_number(process, engine, type):
    b = model()
    x = b.parameter([np.array([0, 1, 2, -3], type)])
    b.result(b.one("Power-1", b.constant(np.array(2, type)), b.one("Negative-1", x), **ADD))
    assert result(process, b, engine).tolist() == [1, 0, 0, 8]


@BOTH
def test_gather_whose_batch_is_all_of_its_indices(process, engine):
    b = model()
    data = b.parameter([np.float32([[1, 2, 3], [4, 5, 6]])])
    indices = b.parameter([np.int32([2, 0])])
    b.result(b.one("Gather-8", data, indices, i64(b, 1), batch_dims=1))
    assert result(process, b, engine).tolist() == [3, 4]


@BOTH
def test_a_split_with_an_empty_part_and_outputs_that_nobody_reads(process, engine):
    b = model()
    x = b.parameter([np.float32([[1, 2, 3, 4], [5, 6, 7, 8]])])
    parts = b.op("VariadicSplit-1", x, i64(b, 1), i64(b, [1, 0, 1, 2]))
    b.result(parts[0])
    b.result(parts[1])
    ((first, empty),) = computed(process, b, engine)
    assert (first.tolist(), empty.shape) == ([[1], [5]], (2, 0))


@BOTH
def test_a_split_whose_last_outputs_nobody_reads(process, engine):
    b = model()
    x = b.parameter([np.float32([[1, 2, 3, 4], [5, 6, 7, 8]])])
    parts = b.op("VariadicSplit-1", x, i64(b, 1), i64(b, [1, 2, -1, 0]))
    b.result(parts[1])
    assert result(process, b, engine).tolist() == [[2, 3], [6, 7]]


@BOTH
def test_a_convolution_and_its_input_read_backwards(process, engine):
    b = model()
    x = b.parameter([np.float32([[1, 2], [3, 4]]).reshape(1, 2, 1, 2)])
    filters = b.constant(np.float32([[1, 0], [0, 2]]).reshape(2, 2, 1, 1))
    back = b.one("Slice-8", x, i64(b, [-1]), i64(b, [-4]), i64(b, [-1]), i64(b, [3]))
    b.result(b.one("Add-1", b.one("Convolution-1", x, filters, **WINDOW), back, **ADD))
    assert result(process, b, engine)[0, :, 0].tolist() == [[3, 3], [10, 11]]


VARIABLE = {"variable_id": "v", "variable_type": "f32", "variable_shape": "1"}


def counting(b):
    """A variable that counts: what it is after one more."""
    start = b.constant(np.float32([0]))
    (old,) = b.layer(Layer("ReadValue-6", [start.ref], dict(VARIABLE)), [start.arrays], False, False)
    new = b.one("Add-1", old, b.constant(np.float32([1])), **ADD)
    b.layer(Layer("Assign-6", [new.ref], {"variable_id": "v"}), [new.arrays], False, False)
    return new


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn"])
def test_a_failed_run_leaves_what_a_body_assigned(tmp_path, engine):
    inner = model()
    new = counting(inner)
    inner.result(new)
    inner.result(inner.constant(np.bool_(True)))
    last = len(inner.graph.layers) - 1
    results = [
        {"external_port_id": 0, "internal_layer_id": new.ref[0] + 2},
        {"external_port_id": -1, "internal_layer_id": last, "purpose": "execution_condition"},
    ]
    b = model()
    starts = [b.constant(np.int64(3)), b.constant(np.bool_(True))]
    body = Body(inner.graph, [], results)
    (count,) = b.computed(Layer("Loop-5", outputs=[("f32", (1,))], bodies={"body": body}), starts)
    index = b.parameter([np.int64([0])])
    b.result(b.one("GatherElements-6", count, index, axis=0))
    executor = irrun.GraphExecutor(save(Case(b.graph, b.feeds), tmp_path), engine=engine)
    assert [array.tolist() for array in executor.run([np.int64([0])]).values()] == [[3]]
    with pytest.raises(irrun.ExecutionError):
        executor.run([np.int64([7])])
    assert [array.tolist() for array in executor.run([np.int64([0])]).values()] == [[6]]


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn"])
def test_concurrent_runs_lose_no_update(tmp_path, engine):
    b = model()
    b.result(counting(b))
    executor = irrun.GraphExecutor(save(Case(b.graph, b.feeds), tmp_path), engine=engine)
    found = []

    def several():
        for _ in range(100):
            found.extend(array.item() for array in executor.run().values())

    threads = [threading.Thread(target=several) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert sorted(found) == [*range(1, 401)]


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn"])
@pytest.mark.parametrize("reshaped", [False, True])
def test_results_of_one_tensor_share_no_memory(tmp_path, engine, reshaped):
    b = model()
    y = b.one("ReLU-1", b.parameter([np.float32([[1, -2], [3, 4]])]))
    b.result(y)
    b.result(b.one("Reshape-1", y, i64(b, [4]), special_zero=False) if reshaped else y)
    executor = irrun.GraphExecutor(save(Case(b.graph, b.feeds), tmp_path), engine=engine)
    first, second = executor.run(b.feeds[0]).values()
    first[...] = 7
    assert second.ravel().tolist() == [1, 0, 3, 4]


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn"])
def test_group_normalization_of_one_group_and_an_operand(process, engine):
    b = model()
    x = b.parameter([np.float32([1, 1, 3, 3]).reshape(1, 2, 1, 2)])
    ones, zeros = b.constant(np.float32([1, 1])), b.constant(np.float32([0, 0]))
    normal = b.one("GroupNormalization-12", x, ones, zeros, num_groups=1, epsilon=1e-12)
    b.result(b.one("Add-1", normal, b.constant(np.float32([10, 20]).reshape(1, 2, 1, 1)), **ADD))
    np.testing.assert_allclose(result(process, b, engine).ravel(), [9, 9, 21, 21], rtol=1e-5)


@BOTH
@pytest.mark.parametrize(
    ("name", "more", "numbers"),
    [
        ("MaxPool-1", {}, [104, 205, 307, 408, 513, 614, 716, 817]),
        ("AvgPool-1", {"exclude-pad": False}, [102, 203, 305, 406, 511, 612, 714, 815]),
    ],
)
def test_a_pool_of_one_image_and_an_operand_without_a_batch(process, engine, name, more, numbers):
    b = model()
    x = b.parameter([np.arange(18, dtype=np.float32).reshape(1, 2, 3, 3)])
    other = b.constant(np.float32([100, 200, 300, 400, 500, 600, 700, 800]).reshape(2, 2, 2))
    b.result(b.one("Add-1", b.one(name, x, **POOL, **more), other, **ADD))
    assert result(process, b, engine).ravel().tolist() == numbers


@BOTH
def test_prelu_with_an_infinite_slope(process, engine):
    b = model()
    x = b.parameter([np.float32([[1, -1, 2]])])
    product = b.one("MatMul-1", x, b.constant(np.eye(3, dtype=np.float32)), transpose_a=False, transpose_b=False)
    b.special = True
    b.result(b.one("PReLU-1", product, b.constant(np.float32([np.inf]))))
    assert result(process, b, engine).tolist() == [[1, -np.inf, 2]]


@BOTH
@pytest.mark.parametrize("name", ["Gelu-2", "Gelu-7"])
@pytest.mark.parametrize("behind", ["", "ReLU-1", "Clamp-1"])
def test_gelu_of_infinity_behind_a_convolution(process, engine, name, behind):
    """Also where what follows makes a number of NaN."""
    b = model()
    b.special = True
    x = b.parameter([np.float32([np.inf, 10, 0]).reshape(1, 1, 1, 3)])
    y = b.one(name, b.one("Convolution-1", x, b.constant(np.ones((1, 1, 1, 1), np.float32)), **WINDOW))
    b.result(b.one(behind, y, **CLAMP if behind == "Clamp-1" else {}) if behind else y)
    expected = [6, 6, 0] if behind == "Clamp-1" else [np.inf, 10, 0]
    assert result(process, b, engine).ravel().tolist() == expected


CLAMP = {"min": 0.0, "max": 6.0}


@BOTH
@pytest.mark.parametrize(("name", "attrs"), [("ReLU-1", {}), ("Clamp-1", CLAMP), ("Exp-1", {}), ("HSigmoid-5", {})])
@pytest.mark.parametrize("head", ["pool", "sum", "tanh"])
def test_nan_stays_nan_behind_pools_and_sums(process, engine, name, attrs, head):
    b = model()
    b.special = True
    x = b.parameter([np.float32([np.nan, 1, 2, 3]).reshape(1, 1, 2, 2)])
    if head == "pool":
        y = b.one("AvgPool-1", x, **{"exclude-pad": False}, **POOL | {"kernel": [1, 1]})
    elif head == "sum":
        y = b.one("Add-1", x, b.parameter([np.zeros((1, 1, 2, 2), np.float32)]), **ADD)
    else:
        y = b.one("Tanh-1", x)
    b.result(b.one(name, y, **attrs))
    assert np.isnan(result(process, b, engine)).ravel().tolist() == [True, False, False, False]


@BOTH
@pytest.mark.parametrize("name", ["Maximum-1", "Minimum-1"])
def test_nan_stays_nan_as_largest_or_smallest_of_a_sum(process, engine, name):
    b = model()
    b.special = True
    x, y = (b.parameter([np.float32(values)]) for values in ([np.nan, 1, 2, 3], [0, 0, 0, 0]))
    b.result(b.one(name, b.one("Add-1", x, y, **ADD), b.constant(np.float32([2, 2, 2, 2])), **ADD))
    assert np.isnan(result(process, b, engine)).tolist() == [True, False, False, False]


@BOTH
@pytest.mark.parametrize(
    ("kind", "gates", "numbers"),
    [
        ("RNN", [0], [0.0996680, 0.4621172]),  # tanh(0.1), tanh(0.5)
        ("GRU", [-40, 0, 0], [0.0996680, 0.4621172]),
        ("LSTM", [-40, 40, 0, 40], [0.0993395, 0.4318062]),  # tanh(tanh(x))
    ],
)
def test_a_sequence_that_is_repeated_over_the_batch(process, engine, kind, gates, numbers):
    """Biases open and close the gates, so that each step gives tanh of the first element of its data."""
    b = model()
    data = np.zeros((1, 3, 5), np.float32)
    data[0, :, 0] = [0.1, 0.5, 0.1]
    x = b.one("Broadcast-3", b.parameter([data]), i64(b, [2, 3, 5]), mode="numpy")
    states = [b.parameter([np.zeros((2, 1, 1), np.float32)]) for _ in range(2 if kind == "LSTM" else 1)]
    lengths = b.constant(np.int32([3, 3]))
    table = np.zeros((1, len(gates), 5), np.float32)
    table[0, gates.index(0) if kind != "GRU" else 2, 0] = 1
    rest = [np.zeros((1, len(gates), 1), np.float32), np.float32([gates])]
    tables = [b.constant(array) for array in (table, *rest)]
    y, *_ = b.op(f"{kind}Sequence-5", x, *states, lengths, *tables, hidden_size=1, direction="forward")
    b.result(y)
    found = result(process, b, engine)
    expected = np.float32([numbers[0], numbers[1], numbers[0]])
    np.testing.assert_allclose(found, np.broadcast_to(expected.reshape(1, 1, 3, 1), (2, 1, 3, 1)), rtol=1e-5)


@BOTH
@pytest.mark.parametrize("sizes", [(3, 2), (64, 48), (1500, 384)])
@pytest.mark.parametrize("convolution", [False, True])
def test_a_folded_transposition_of_a_constant_at_an_odd_address(process, engine, sizes, convolution):
    """Gelu of 10 and more is the identity, as the convolution is."""
    rows, columns = sizes
    if convolution and rows > 100:
        rows, columns = 200, 96
    b = model()
    b.special = True  # numbers may be large
    b.constant(np.int8(7))  # one byte
    data = 10 + np.arange(rows * columns, dtype=np.float32).reshape(1, columns, rows)
    b.most = data.size
    y = b.parameter([data])
    if convolution:
        window = {key: value[:1] for key, value in WINDOW.items()}
        filters = b.constant(np.eye(columns, dtype=np.float32).reshape(columns, columns, 1))
        y = b.one("Gelu-7", b.one("Convolution-1", y, filters, **window))
    y = b.one("Transpose-1", y, i64(b, [0, 2, 1]))
    other = -2 * np.arange(rows * columns, dtype=np.float32).reshape(1, rows, columns)
    folded = b.constant(other)
    b.result(b.one("Add-1", y, folded, **ADD))
    np.testing.assert_allclose(result(process, b, engine), data.transpose(0, 2, 1) + other, rtol=1e-5)
