"""Constants: every element type as OpenVINO stores it, and what is wrong with a Const."""

import gc
import os
import pickle
import threading
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13

from irrun.check.validate import validate
from irrun.ir.reader import read, read_model
from irrun.ir.weights import MAPPED, MIN_AHEAD, Weights, WeightsError
from irrun.spec.dtypes import CODES, ELEMENT_TYPES, NF4, numpy_dtype

NUMBERS = sorted(ELEMENT_TYPES.keys() - {"dynamic", "string"})


def const(folder, data, *, element_type="f32", shape="2", offset="0", size="8", extra=""):
    """Write a model of one Const, whose <data> stands in line 3 from column 1 on."""
    path = folder / "model.xml"
    path.write_text(
        f"""<net name="m" version="11"><layers>
<layer id="0" name="c" type="Const" version="opset1">
<data element_type="{element_type}" shape="{shape}" offset="{offset}" size="{size}"{extra}/>
<output><port id="0" precision="FP32"/></output></layer>
<layer id="1" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>
"""
    )
    path.with_suffix(".bin").write_bytes(data)
    return path


def constant(path):
    model = read_model(path)
    return model.weights.constant(model.graph.layers[0])


def fault(path):
    _, (found,) = read(path)
    return found


def strings(*items):
    encoded = [item.encode() for item in items]
    ends = np.cumsum([0] + [len(item) for item in encoded])
    return np.array([len(items), *ends], "<i4").tobytes() + b"".join(encoded)


@pytest.mark.parametrize("name", NUMBERS)
def test_decodes_as_openvino_does(tmp_path, name):
    element = ov.op.Constant(ov.Tensor(getattr(ov.Type, name), ov.Shape([19])), False)
    path = tmp_path / "model.xml"
    ov.serialize(ov.Model([opset13.result(element)], [], "m"), path, path.with_suffix(".bin"))
    room = path.with_suffix(".bin").stat().st_size
    data = np.random.default_rng(7).integers(0, 2 if name == "boolean" else 256, room).astype(np.uint8)
    if name in ("f32", "f64"):
        data.view(numpy_dtype(name))[:] = np.arange(-9, 10) / 8  # OpenVINO flushes denormals to zero
    path.with_suffix(".bin").write_bytes(data.tobytes())

    (layer,) = [op for op in ov.Core().read_model(path).get_ops() if op.get_type_name() == "Constant"]
    wide = ov.Model([opset13.result(opset13.convert(layer.output(0), "f32"))], [], "wide")
    expected = ov.compile_model(wide, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})()[0]
    ours = constant(path)
    assert ours.dtype == numpy_dtype(name)
    if name == "nf4":
        ours = np.array(NF4)[ours]
    np.testing.assert_array_equal(ours.astype(np.float32), expected)


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("u1", b"\xa0", [1, 0, 1]),
        ("u2", b"\x39", [1, 2, 3]),
        ("u4", b"\x21\x0f", [1, 2, 15]),
        ("i4", b"\xf1\x08", [1, -1, -8]),
        ("nf4", b"\x21\x0f", [1, 2, 15]),
        ("f4e2m1", b"\xf1\x07", [0.5, -6, 6]),
        ("u3", b"\x6c\x00\x40", [1, 6, 3]),
        ("u6", b"\x12\x30\x24", [1, 34, 19]),
    ],
)
def test_packings(tmp_path, name, data, expected):
    array = constant(const(tmp_path, data, element_type=name, shape="3", size=len(data)))
    assert array.astype(np.float32).tolist() == expected


def test_codes_are_bytes(tmp_path):
    for name in CODES:
        assert constant(const(tmp_path, b"\0\0\0", element_type=name, shape="1", size=3)).dtype == np.uint8


def test_strings(tmp_path):
    data = strings("ab", "xyz\u00e9", "", "c,d")
    array = constant(const(tmp_path, data, element_type="string", shape="2,2", size=len(data)))
    assert array.tolist() == [["ab", "xyz\u00e9"], ["", "c,d"]]
    assert array.dtype.kind == "U"


def test_no_strings(tmp_path):
    array = constant(const(tmp_path, strings(), element_type="string", shape="0", size=8))
    assert array.shape == (0,)


def test_arrays_are_read_only_views_of_the_file(tmp_path):
    array = constant(const(tmp_path, np.array([1.5, 2.5], "f4").tobytes()))
    assert array.tolist() == [1.5, 2.5]
    assert not array.flags.writeable
    assert not array.flags.owndata


def test_unaligned_data_are_not_copied_either(tmp_path):
    array = constant(const(tmp_path, b"x" + np.array([1.5, 2.5], "f4").tobytes(), offset=1))
    assert array.tolist() == [1.5, 2.5]
    assert not array.flags.owndata
    assert not array.flags.writeable


def test_a_scalar_and_an_empty_shape(tmp_path):
    assert constant(const(tmp_path, np.float32(3).tobytes(), shape="", size=4)).shape == ()
    assert constant(const(tmp_path, b"", shape="2,0", size=0)).shape == (2, 0)


def test_arrays_outlive_the_weights(tmp_path):
    model = read_model(const(tmp_path, np.array([1, 2], "f4").tobytes()))
    with model.weights as weights:
        array = weights.constant(model.graph.layers[0])
    assert array.tolist() == [1, 2]
    assert weights.constant(model.graph.layers[0]).tolist() == [1, 2]


@pytest.mark.parametrize("changes", [{"offset": " +4", "size": "\t+8"}, {"offset": "004"}, {"shape": " 2 ,"}])
def test_numbers_of_a_const_as_openvino_takes_them(tmp_path, changes):
    assert validate(const(tmp_path, bytes(12), **({"offset": "4"} | changes))).diagnostics == []


def test_missing_file_has_no_size(tmp_path):
    assert Weights(tmp_path / "none.bin").size is None


@pytest.mark.parametrize(
    ("changes", "code", "attribute"),
    [
        ({"offset": "4"}, "E503", "size"),
        ({"offset": "99"}, "E503", "offset"),
        ({"shape": "3"}, "E504", "size"),
        ({"element_type": "u3", "shape": "3", "size": "2"}, "E504", "size"),
        ({"shape": " ", "size": "4"}, "E506", "shape"),
        ({"shape": "2, "}, "E506", "shape"),
        ({"offset": "x"}, "E506", "offset"),
        ({"offset": "0 "}, "E506", "offset"),
        ({"size": "8\n"}, "E506", "size"),
        ({"size": "-8"}, "E506", "size"),
        ({"size": "9" * 5000}, "E506", "size"),
        ({"shape": "[2]"}, "E506", "shape"),
        ({"shape": "-1"}, "E506", "shape"),
        ({"shape": "2,,1"}, "E506", "shape"),
        ({"shape": "4294967296,4294967296"}, "E506", "shape"),
        ({"shape": "0,4294967296,4294967296"}, "E506", "shape"),
        ({"shape": ",".join("1" * 65)}, "E506", "shape"),
        ({"extra": ' value="1"'}, "E507", "value"),
        ({"element_type": "F32"}, "E508", "element_type"),
        ({"element_type": "dynamic"}, "E508", "element_type"),
        ({"shape": "1"}, "W905", "size"),
    ],
)
def test_faults_of_a_const(tmp_path, changes, code, attribute):
    path = const(tmp_path, bytes(8), **changes)
    found = fault(path)
    column = path.read_text().splitlines()[2].index(f" {attribute}=") + 2
    assert (found.code, found.line, found.column) == (code, 3, column)


@pytest.mark.parametrize("type", ["i64", "u8", "bf16", "nf4"])
def test_openvino_takes_capitals_of_some_element_types(type, tmp_path):
    path = const(tmp_path, bytes(64), element_type=type.upper(), shape="2", size="16")
    assert not [each for each in read(path)[1] if each.code == "E508"]
    assert "W908" in [each.code for each in validate(path).diagnostics]


def test_the_byte_that_openvino_writes_for_no_elements_is_no_excess(tmp_path):
    assert read(const(tmp_path, bytes(1), shape="0, 2", size="1"))[1] == []


def test_missing_bytes_are_counted(tmp_path):
    message = "the Const ends at byte 12, but model.bin has 8 bytes: 4 are missing"
    assert fault(const(tmp_path, bytes(8), offset="4")).message == message


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (np.array([2, 0, 5, 2], "<i4").tobytes() + b"abcde", "E509"),
        (np.array([2, 1, 2, 5], "<i4").tobytes() + b"abcde", "E509"),
        (np.array([2, 0, 2, 6], "<i4").tobytes() + b"abcde", "E509"),
        (np.array([2, 0, 2, 5], "<i4").tobytes() + b"ab\xffcd", "E509"),
        (np.array([3, 0, 2, 5], "<i4").tobytes() + b"abcde", "E510"),
        (b"\2\0\0\0", "E504"),
    ],
)
def test_damaged_strings(tmp_path, data, code):
    assert fault(const(tmp_path, data, element_type="string", size=len(data))).code == code


def test_strings_that_would_take_too_much_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("irrun.ir.weights.MAX_STRING_BYTES", 15)
    data = strings("abcd", "")
    assert fault(const(tmp_path, data, element_type="string", size=len(data))).code == "E509"


def test_a_file_is_mapped_ahead_while_it_is_read(tmp_path):
    count = MIN_AHEAD // 4 + 1
    path = const(tmp_path, np.arange(count, dtype=np.float32).tobytes(), shape=str(count), size=str(4 * count))
    model = read_model(path)
    model.weights.map_ahead()
    array = model.weights.constant(model.graph.layers[0])
    model.weights.close()
    for thread in threading.enumerate():
        if thread.name == "irrun-weights":
            thread.join(30)
            assert not thread.is_alive()
    assert array[-1] == count - 1


def test_tables_are_left_out_of_what_is_mapped_ahead(tmp_path, monkeypatch):
    count = MIN_AHEAD // 4 + 1
    path = const(tmp_path, np.arange(count, dtype=np.float32).tobytes(), shape=str(count), size=str(4 * count))
    model, touched = read_model(path), []
    monkeypatch.setattr("irrun.ir.weights._touch", lambda parts: touched.extend(part.size for part in parts))
    for apart in ([], model.graph.layers[:1]):
        model.weights.map_ahead(apart)
        while any(thread.name == "irrun-weights" for thread in threading.enumerate()):
            pass
    assert touched == [4 * count // MAPPED + 1]


def test_what_got_shorter_is_not_mapped_ahead(tmp_path):
    count = MIN_AHEAD // 4
    path = const(tmp_path, bytes(4 * count), shape=str(count), size=str(4 * count))
    model = read_model(path)
    path.with_suffix(".bin").write_bytes(bytes(16))
    before = threading.active_count()
    model.weights.map_ahead()
    assert threading.active_count() == before
    assert model.weights.changed


def test_small_files_and_bytes_have_no_thread(tmp_path):
    before = threading.active_count()
    read_model(const(tmp_path, bytes(8))).weights.map_ahead()
    Weights(None, bytes(MIN_AHEAD)).map_ahead()
    assert threading.active_count() == before


def test_bytes_that_are_no_booleans_are_told(tmp_path):
    path = const(tmp_path, bytes([0, 1, 2, 255, 1, 0]), element_type="boolean", shape="2,3", size=6)
    text = path.read_text().replace("FP32", "BOOL")
    path.write_text(text)
    (found,) = validate(path).diagnostics
    assert (found.code, found.severity, found.line) == ("W914", "warning", 3)
    assert found.message == "the constant has 2 of 6 bytes that are neither 0 nor 1, the first at [0, 2]"
    path.with_suffix(".bin").write_bytes(bytes([0, 1, 1, 1, 1, 0]))
    assert validate(path).diagnostics == []


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs to know which descriptors there are")
def test_a_descriptor_that_others_have_closed(tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(b"12345678")
    weights = Weights(path)
    others = tmp_path / "others"
    others.write_bytes(b"87654321")
    (number,) = (int(link.name) for link in Path("/proc/self/fd").iterdir() if link.resolve() == path)
    os.close(number)
    own = os.open(others, os.O_RDONLY)
    assert own == number, "what is opened next has its number"
    assert not weights.changed
    assert weights.head() == b"12345678"
    del weights
    gc.collect()
    assert os.read(own, 8) == b"87654321"
    os.close(own)


def test_errors_of_weights_go_to_other_processes():
    error = WeightsError("E502", "message", "offset", "help", 3)
    other = pickle.loads(pickle.dumps(error))
    assert (str(other), vars(other)) == (str(error), vars(error))
