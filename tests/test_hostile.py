"""Files from strangers: whatever a model, a .bin or an .npz holds, irrun ends soon, small, and with a sentence."""

import ast
import os
import re
import resource
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from bounded import GIB, bounded, bounded_in_turn
from ir_builder import Model, port

import irrun
from irrun.ir.xml import MAX_TAG
from irrun.run.arrays import parse_npy

NET = '<net name="m" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>'
PARAMETER = (
    '<layer id="{id}" name="x{id}" type="Parameter" version="opset1"><data shape="{shape}" element_type="{type}"/>'
    '<output><port id="0" precision="FP32"/></output></layer>'
)


def written(folder: Path, text: str | bytes, weights: bytes | None = None) -> Path:
    path = folder / "model.xml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if weights is not None:
        path.with_suffix(".bin").write_bytes(weights)
    return path


def net(layers: str = "", edges: str = "") -> str:
    return NET.format(layers=layers, edges=edges)


def codes(output: str) -> set[str]:
    return {word[6:10] for word in output.split() if word.startswith("error[")}


def refused(path: Path, code: str, **limits: object) -> str:
    """What `irrun validate` prints about a model, which has this error."""
    output = bounded("validate", path, status=1, **limits).output
    assert f"error[{code}]" in output, output[:2000]
    return output


# XML


def test_entity_bombs_do_not_go_off(tmp_path):
    entities = '<!ENTITY a0 "lol">' + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    refused(written(tmp_path, f"<!DOCTYPE net [{entities}]><net>&a11;</net>"), "E105", seconds=5)


@pytest.mark.parametrize("kind", ["general", "parameter", "doctype", "nested"])
def test_external_entities_are_never_read(kind, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("<layers>password</layers>")
    os.mkfifo(tmp_path / "trap")  # to read it would never end
    texts = {
        "general": f'<!DOCTYPE net [<!ENTITY x SYSTEM "file://{secret}">]><net>&x;</net>',
        "parameter": f'<!DOCTYPE net [<!ENTITY % x SYSTEM "file://{tmp_path}/trap"> %x;]><net/>',
        "doctype": f'<!DOCTYPE net SYSTEM "file://{tmp_path}/trap"><net/>',
        "nested": f"<!DOCTYPE n [<!ENTITY % a \"<!ENTITY x SYSTEM 'file://{secret}'>\">%a;]><net>&x;</net>",
    }
    assert "password" not in refused(written(tmp_path, texts[kind]), "E105", seconds=5)


def test_nesting_a_hundred_thousand_deep(tmp_path):
    refused(written(tmp_path, "<net>" * 100_000 + "</net>" * 100_000), "E104", seconds=5)


def test_a_million_attributes_on_one_element(tmp_path):
    many = " ".join(f'a{n}="{n}"' for n in range(1_000_000))
    refused(written(tmp_path, f"<net {many}/>"), "E104", seconds=5)


@pytest.mark.parametrize("element", ["layer", "data"])
def test_as_many_attributes_on_one_element_as_are_read(element, tmp_path):
    many = " ".join(f'a{n}="{n}"' for n in range(70_000))
    on = {"layer": "", "data": "", element: many}
    layer = f'<layer id="0" name="a" type="Abs" version="opset1" {on["layer"]}><data {on["data"]}/></layer>'
    bounded("validate", written(tmp_path, net(layer)), status=1, seconds=8)


def test_many_entries_of_a_port_map_for_one_input(tmp_path):
    """There are as many inputs that are left for them."""
    count = 400
    output = '<output><port id="0" precision="FP32"><dim>1</dim></port></output>'
    given = f'<data shape="1" element_type="f32"/>{output}'
    parameters = "".join(
        f'<layer id="{n}" name="p{n}" type="Parameter" version="opset1">{given}</layer>' for n in range(count)
    )
    ports = "".join(f'<port id="{n}" precision="FP32"><dim>1</dim></port>' for n in range(count))
    entries = "".join(
        f'<input external_port_id="{n if n < count // 2 else 0}" internal_layer_id="{n}"/>\n' for n in range(count)
    )
    body = f"<port_map>{entries}</port_map><body><layers>{parameters}</layers><edges/></body>"
    iterator = (
        f'<layer id="{count}" name="t" type="TensorIterator" version="opset1"><input>{ports}</input>{body}</layer>'
    )
    path = written(tmp_path, net(parameters + iterator))
    bounded("validate", path, "--format", "json", status=1, seconds=8)


def test_three_hundred_thousand_layers(tmp_path):
    layer = '<layer id="{}" name="" type="ReLU" version="opset1"/>'
    text = net("".join(layer.format(n) for n in range(300_000)))
    refused(written(tmp_path, text), "E104", seconds=10)


def test_thousands_of_layers_that_are_only_counted_out_are_printed(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (2,))
    for _ in range(20_000):
        (x,) = model.layer("ReLU", [x], [("f32", (2,))])
    model.result(x)
    assert "x~ReLU~20000 = ReLU-1(x~ReLU~19999)" in bounded("print", model.save(tmp_path), seconds=10).output


def test_millions_of_elements(tmp_path):
    refused(written(tmp_path, net("<a/>" * 5_000_000)), "E104", seconds=10)


@pytest.mark.slow
def test_as_many_layers_as_are_read_and_all_of_them_wrong(tmp_path):
    layer = '<layer id="{0}" name="n" type="Nonesuch{0}" version="opset1"><data a="1"/></layer>'
    path = written(tmp_path, net("".join(layer.format(n) for n in range(60_000))))
    output = bounded("validate", "--format", "concise", path, status=1, seconds=60).output
    assert "58,000 more like these are not listed" in output


def test_a_hundred_megabytes_in_one_attribute(tmp_path):
    refused(written(tmp_path, f'<net name="{"x" * 100_000_000}"/>'), "E104", seconds=5)


def test_a_hundred_megabytes_in_one_text_or_comment(tmp_path):
    refused(written(tmp_path, f"<net>{'x' * 100_000_000}</net>"), "E104", seconds=5)
    path = written(tmp_path, f"<net><![CDATA[{'<x' * 30_000_000}]]></net>")
    bounded("validate", path, status=1, seconds=30)
    bounded("validate", written(tmp_path, f"<net><!--{'<x' * 300_000}--></net>"), status=1, seconds=30)


def test_a_value_as_long_as_it_may_be_is_not_repeated_in_full(tmp_path):
    long = "9" * (MAX_TAG - 1000)
    layer = f'<layer id="0" name="{long[:300_000]}" type="Split" version="opset1"><data num_splits="{long}"/></layer>'
    assert len(bounded("validate", written(tmp_path, net(layer)), status=1, seconds=5).output) < 20_000


@pytest.mark.parametrize("letter", ["x", "é", "\U0001f600"])
def test_a_line_of_megabytes_with_thousands_of_faults(letter, tmp_path):
    layer = f'<layer id="1" name="{letter * 3000}" type="Abs" version="opset1"/>'
    output = bounded("validate", written(tmp_path, net(layer * 3000)), status=1, seconds=30).output
    assert "E203" in codes(output)


def test_nothing_but_line_breaks(tmp_path):
    breaks = "\n" * 1_000_000 + "<a/>"
    refused(written(tmp_path, "<net>" + breaks * 60 + "<b></net>"), "E101", seconds=10)


@pytest.mark.parametrize(
    "text",
    [
        b"<net>\0</net>",
        b"\0" * 1000,
        b'<net name="\xff\xfe"/>',
        b"<net>\xc3\x28</net>",
        b'<?xml version="1.0" encoding="utf-7"?><net>+ADw-a+AD4-</net>',
        b'<?xml version="1.0" encoding="rot13"?><net/>',
        b'<?xml version="1.0" encoding="cp932"?><net/>',
        '<?xml version="1.0" encoding="utf-16"?><net/>'.encode("utf-16"),
        "<net>".encode("utf-16-le"),
        b"\xff\xfe<\0n\0\xd8\0\xd8\xd8",
        b"\xef\xbb\xbf",
        b"<",
        b"<a" * 200_000,
        b"<net a=" + b"..." * 200_000,
        b"<?" * 200_000,
    ],
    ids=lambda text: repr(text[:60]),
)
def test_bytes_that_are_no_xml(text, tmp_path):
    bounded("validate", written(tmp_path, text), status=1, seconds=10)


def test_a_slow_pattern_for_numbers(tmp_path):
    for name, value in (("alpha", "1" * 500_000 + "x"), ("alpha", " " * 500_000 + "x")):
        layer = f'<layer id="0" name="e" type="Elu" version="opset1"><data {name}="{value}"/></layer>'
        refused(written(tmp_path, net(layer)), "E307", seconds=5)


# Files that are none


@pytest.mark.parametrize("kind", ["fifo", "folder", "/dev/zero", "/dev/stdin", "loop", "null", "dangling", "long"])
@pytest.mark.parametrize("place", ["xml", "bin", "npz", "npy"])
def test_files_that_are_no_files(kind, place, tmp_path):
    model = Model()
    model.result(model.parameter("x", "f32", (2,)))
    good = model.save(tmp_path)
    bad = tmp_path / f"bad.{place}"
    if kind == "fifo":
        os.mkfifo(bad)
    elif kind == "folder":
        bad.mkdir()
        (bad / "x").touch()
    elif kind == "loop":
        bad.symlink_to(tmp_path / "other")
        (tmp_path / "other").symlink_to(bad)
    elif kind == "dangling":
        bad.symlink_to(tmp_path / "nowhere")
    elif kind == "long":
        bad = tmp_path / ("n" * 5000)
    else:
        bad.symlink_to("/dev/null" if kind == "null" else kind)
    options = {"xml": [bad], "bin": [good, "--weights", bad]}
    reading, writing = os.pipe()  # a standard input that never ends
    try:
        if place in options:
            if place == "xml" or kind not in ("loop", "dangling", "long"):
                bounded("validate", *options[place], status=(1, 2), seconds=5, stdin=reading)
            bounded("execute", *options[place], "--random", 1, status=(1, 2), seconds=5, stdin=reading)
        else:
            given = ["--inputs", bad] if place == "npz" else ["--input", f"x={bad}"]
            bounded("execute", good, *given, status=(1, 2), seconds=5, stdin=reading)
    finally:
        os.close(reading)
        os.close(writing)


# Weights


def const(type: str, shape: str, size: int, offset: int = 0) -> str:
    return (
        f'<layer id="0" name="c" type="Const" version="opset1"><data element_type="{type}" shape="{shape}" '
        f'offset="{offset}" size="{size}"/><output><port id="0" precision="FP32"/></output></layer>'
        '<layer id="1" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>'
    )


EDGE = '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'


@pytest.mark.parametrize(
    ("type", "shape", "size"),
    [
        ("f32", "1000000000000", 4 * 10**12),
        ("u1", "9000000000000000000", 8),
        ("f32", ",".join(["2"] * 70), 8),
        ("f32", "9223372036854775807,9223372036854775807", 8),
        ("string", "1000000000", 8),
        ("i64", "-1", 8),
        ("boolean", "1" * 5000, 8),
    ],
)
def test_constants_declared_larger_than_the_file(type, shape, size, tmp_path):
    path = written(tmp_path, net(const(type, shape, size), EDGE), b"\0" * 8)
    bounded("validate", path, status=1, seconds=5)
    bounded("execute", path, status=1, seconds=5)


@pytest.mark.parametrize("type", ["u1", "i4", "boolean", "i64", "string", "f32"])
def test_constants_of_a_file_that_is_nearly_all_hole(type, tmp_path):
    size = 1 << 40
    bits = {"u1": 1, "i4": 4, "boolean": 8, "i64": 64, "f32": 32, "string": 32}[type]
    count = 1 << 30 if type == "string" else size * 8 // bits
    path = written(tmp_path, net(const(type, str(count), size), EDGE), b"")
    os.truncate(path.with_suffix(".bin"), size)
    with path.with_suffix(".bin").open("r+b") as file:
        file.write(struct.pack("<i", 1 << 30))
    bounded("validate", path, seconds=5)
    if type != "f32":  # which is a view of the file, and so is what comes out
        output = bounded("execute", path, "--max-memory", "1GiB", "--output", tmp_path / "out.npz", status=1).output
        assert "E603" in output or "E509" in output


@pytest.mark.parametrize("command", [("strip",), ("edit", "--weights", "f16")], ids=" ".join)
def test_large_constants_are_changed_a_part_at_a_time(command, tmp_path):
    model = Model()
    size = 1 << 24
    weights = model.constant(np.random.default_rng(0).standard_normal(size).astype(np.float32))
    model.result(model.layer("ReLU", [weights], [("f32", (size,))])[0])
    path = model.save(tmp_path)
    bounded(*command, path, "-o", tmp_path / "out.xml", status=0, memory=4 * 4 * size)


def test_indices_of_a_hole_are_not_looked_through_again_and_again(tmp_path):
    model = Model()
    data = model.parameter("x", "f32", ("?",))
    indices = (0, 0, "i64", (1 << 22,))
    axis = model.constant(np.int64(0))
    for _ in range(300):
        model.result(model.layer("Gather", [data, indices, axis], [("f32", (1 << 22,))], "opset8")[0])
    path = model.save(tmp_path)
    text = path.read_text().replace('type="Parameter"', 'type="Const"', 1)
    text = text.replace(
        'shape="?" element_type="f32"', f'element_type="i64" shape="{1 << 22}" offset="8" size="{1 << 25}"'
    )
    path.write_text(text)
    os.truncate(path.with_suffix(".bin"), (1 << 25) + 8)
    bounded("validate", path, seconds=20)


def test_strings_that_would_take_terabytes(tmp_path):
    count = 1 << 20
    table = np.zeros(count + 2, "<i4")
    table[0] = count
    table[-1] = 1 << 20  # the last one is long, and every element takes as much room
    path = written(
        tmp_path, net(const("string", str(count), table.nbytes + (1 << 20)), EDGE), table.tobytes() + b"a" * (1 << 20)
    )
    refused(path, "E509", seconds=10)


def test_a_bin_that_is_cut_while_a_model_is_loaded(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (1 << 16,))
    model.result(model.layer("Add", [x, model.constant(np.ones(1 << 16, np.float32))], [("f32", (1 << 16,))])[0])
    path = model.save(tmp_path)
    executor = irrun.GraphExecutor(path)
    os.truncate(path.with_suffix(".bin"), 4096)  # to look at the rest would end the process with SIGBUS
    with pytest.raises(irrun.ExecutionError, match="was written to after the model was loaded"):
        executor.run([np.zeros(1 << 16, np.float32)])


def test_a_bin_that_is_replaced_by_another_file_keeps_its_old_content(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (1 << 16,))
    model.result(model.layer("Add", [x, model.constant(np.ones(1 << 16, np.float32))], [("f32", (1 << 16,))])[0])
    path = model.save(tmp_path)
    executor = irrun.GraphExecutor(path)
    (tmp_path / "new").write_bytes(b"short")
    (tmp_path / "new").rename(path.with_suffix(".bin"))
    (result,) = executor.run([np.zeros(1 << 16, np.float32)]).values()
    assert result.sum() == 1 << 16


def test_a_bin_that_is_cut_between_two_looks_at_it(tmp_path, monkeypatch):
    path = written(tmp_path, net(const("string", "1", 12 + 5), EDGE), struct.pack("<iii", 1, 0, 5) + b"hello")
    model = irrun.read_model(path)
    os.truncate(path.with_suffix(".bin"), 4)
    assert irrun.validate(model).inference is not None
    with pytest.raises(irrun.IRError):
        irrun.GraphExecutor(model)


# Graphs


def test_twenty_thousand_cycles(tmp_path):
    layer = (
        '<layer id="{}" name="" type="Add" version="opset1"><input><port id="0"/><port id="1"/></input>'
        '<output><port id="2" precision="FP32"/></output></layer>'
    )
    edge = '<edge from-layer="{}" from-port="2" to-layer="{}" to-port="{}"/>'
    count = 40_000
    edges = [edge.format(n, n ^ 1, 0) for n in range(count)] + [edge.format(n, n - 2, 1) for n in range(2, count)]
    text = net("".join(map(layer.format, range(count))), "".join(edges))
    refused(written(tmp_path, text), "E209", seconds=40)


def test_twenty_thousand_layers_that_nothing_reads(tmp_path):
    model = Model()
    value = model.parameter("x", "f32", (2,))
    for _ in range(10_000):
        value = model.layer("ReLU", [value], [("f32", (2,))])[0]
    for _ in range(10_000):
        model.layer("ReLU", [value], [("f32", (2,))])
    model.result(model.parameter("y", "f32", (2,)))
    output = bounded("validate", model.save(tmp_path), status=0, seconds=40).output
    assert "W904" in output


def test_variables_that_nobody_reads(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (2,))
    data = {"variable_type": "f32", "variable_shape": "2"}
    for n in range(4000):
        model.layer("Assign", [x], [], "opset6", variable_id=f"a{n}", **data)
        model.result(model.layer("ReadValue", [x], [("f32", (2,))], "opset6", variable_id=f"b{n}", **data)[0])
    bounded("validate", model.save(tmp_path), seconds=30)


def nested_loops(depth: int, inside: str = "") -> str:
    """Loops in each other, each with one carried value, whose shape changes from one iteration to the next."""
    carried = PARAMETER.format(id=0, shape="?", type="f32")
    constants = "".join(
        f'<layer id="{id}" name="c{id}" type="Const" version="opset1"><data element_type="{type}" shape="" '
        f'offset="{offset}" size="{size}"/><output><port id="0" precision="FP32"/></output></layer>'
        for id, type, offset, size in ((1, "i64", 0, 8), (2, "boolean", 8, 1))
    )
    ports = "".join(f'<port id="{n}"/>' for n in range(3))
    middle = nested_loops(depth - 1) if depth else ""
    loop = (
        '<layer id="3" name="l" type="Loop" version="opset5"><data/>'
        f'<input>{ports}</input><output><port id="3" precision="FP32"/></output>'
        '<port_map><input external_port_id="2" internal_layer_id="0"/>'
        '<output external_port_id="3" internal_layer_id="5"/>'
        '<output external_port_id="-1" internal_layer_id="6" purpose="execution_condition"/></port_map>'
        f'<back_edges><edge from-layer="5" to-layer="0"/></back_edges><body>{middle}</body></layer>'
    )
    join = (
        '<layer id="4" name="j" type="Concat" version="opset1"><data axis="0"/>'
        '<input><port id="0"/><port id="1"/></input><output><port id="2" precision="FP32"/></output></layer>'
    )
    results = "".join(
        f'<layer id="{id}" name="r{id}" type="Result" version="opset1"><input><port id="0"/></input></layer>'
        for id in (5, 6)
    )
    edge = '<edge from-layer="{}" from-port="{}" to-layer="{}" to-port="{}"/>'
    links = [(1, 0, 3, 0), (2, 0, 3, 1), (0, 0, 3, 2)] if depth else []
    links += [(3 if depth else 0, 3 if depth else 0, 4, 0), (0, 0, 4, 1), (4, 2, 5, 0), (2, 0, 6, 0)]
    layers = carried + constants + (loop if depth else "") + join + results
    return f"<layers>{layers}</layers><edges>{''.join(edge.format(*link) for link in links)}</edges>"


@pytest.mark.parametrize("depth", [pytest.param(12, marks=pytest.mark.slow), 60])
def test_loops_in_loops(depth, tmp_path):
    path = written(tmp_path, f'<net name="m" version="11">{nested_loops(depth)}</net>', struct.pack("<q?", 2, True))
    report = irrun.validate(path)
    assert {found.code for found in report.errors} <= {"E210"}
    bounded("validate", path, seconds=15)
    if depth == 12:
        bounded("execute", path, "--random", 1, "--max-memory", "100MB", seconds=60, status=1)


def test_bodies_deeper_than_elements_may_be(tmp_path):
    path = written(tmp_path, f'<net name="m" version="11">{nested_loops(120)}</net>', struct.pack("<q?", 2, True))
    refused(path, "E104", seconds=5)


def test_a_body_that_is_its_own_input(tmp_path):
    text = nested_loops(1).replace('<edge from-layer="0" from-port="0" to-layer="3" to-port="2"/>', "")
    text = text.replace("</edges></net>", "") + ""
    path = written(tmp_path, f'<net name="m" version="11">{text}</net>', struct.pack("<q?", 2, True))
    xml = path.read_text().replace(
        "</edges></net>", '<edge from-layer="3" from-port="3" to-layer="3" to-port="2"/></edges></net>'
    )
    path.write_text(xml)
    refused(path, "E209", seconds=5)


# Sizes


@pytest.mark.parametrize(
    "shape",
    ["9223372036854775807", "9223372036854775807,2", "-5", "1e9", "9" * 5000, "1," * 5000, "4294967296," * 60, "5..2"],
)
def test_sizes_beyond_all_measure(shape, tmp_path):
    layers = PARAMETER.format(id=0, shape=shape.rstrip(","), type="f32") + (
        '<layer id="1" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>'
    )
    path = written(tmp_path, net(layers, EDGE))
    bounded("validate", path, seconds=5)
    output = bounded("execute", path, "--random", 1, status=1, seconds=5).output
    assert "error" in output


def shape_of(model: Model, x: tuple, rank: int) -> tuple:
    return model.layer("ShapeOf", [x], [("i64", (rank,))], "opset3", output_type="i64")[0]


def both(model: Model, type: str, a: tuple, b: tuple, dims: tuple = (1,), kind: str = "i64") -> tuple:
    return model.layer(type, [a, b], [(kind, dims)], auto_broadcast="numpy")[0]


def test_polynomials_of_thousands_of_terms(tmp_path):
    model = Model()
    total = squared = shape_of(model, model.parameter("x", "f32", ("?",)), 1)
    for n in range(300):
        size = shape_of(model, model.parameter(f"x{n}", "f32", ("?",)), 1)
        total = both(model, "Add", both(model, "Multiply", total, both(model, "Add", total, size)), size)
    for _ in range(2500):
        squared = both(model, "Add", both(model, "Multiply", squared, squared), squared)
    for value in (total, squared):
        made = model.layer(
            "Reshape", [model.parameter(f"y{value[0]}", "f32", ("?",)), value], [("f32", (-1,))], special_zero="false"
        )
        model.result(made[0])
    bounded("validate", model.save(tmp_path), seconds=20)


@pytest.mark.parametrize("type", ["Divide", "Mod", "Maximum", "Power"])
def test_sizes_whose_expressions_share_their_parts(type, tmp_path):
    model = Model()
    x = model.parameter("x", "f32", ("?",))
    results = []
    for _ in range(2):
        size = shape_of(model, x, 1)
        for n in range(1000):
            size = both(
                model, type, both(model, "Multiply", size, size), both(model, "Add", size, model.constant([3 + n % 2]))
            )
        results.append(model.layer("Reshape", [x, size], [("f32", (-1,))], special_zero="false")[0])
    model.result(both(model, "Add", *results, dims=(-1,), kind="f32"))
    bounded("validate", model.save(tmp_path), seconds=20)


@pytest.mark.parametrize("type", ["Multiply", "Add"])
def test_numbers_that_double_in_length(type, tmp_path):
    model = Model()
    value = model.layer(
        "Concat",
        [shape_of(model, model.parameter("x", "f32", ("?",)), 1), model.constant([3])],
        [("i64", (2,))],
        axis="0",
    )[0]
    for _ in range(60):
        value = both(model, type, value, value, (2,))
    model.result(value)
    bounded("validate", model.save(tmp_path), seconds=5)


@pytest.mark.parametrize("type", ["Concat", "Tile", "Broadcast"])
def test_values_that_double_in_size(type, tmp_path):
    model = Model()
    value, length = model.constant([1, 2]), 2
    for _ in range(200):
        length *= 2
        if type == "Concat":
            value = model.layer("Concat", [value, value], [("i64", (-1,))], axis="0")[0]
        elif type == "Tile":
            value = model.layer("Tile", [value, model.constant([2])], [("i64", (-1,))])[0]
        else:
            two = model.layer("Unsqueeze", [value, model.constant([0])], [("i64", (1, -1))])[0]
            wide = model.layer(
                "Broadcast", [two, model.constant([2, 1])], [("i64", (2, -1))], "opset3", mode="bidirectional"
            )[0]
            value = model.layer("Reshape", [wide, model.constant([-1])], [("i64", (-1,))], special_zero="false")[0]
    model.result(value)
    path = model.save(tmp_path)
    refused(path, "E308", seconds=10)
    bounded("execute", path, status=1, seconds=10)


def test_kernels_are_not_run_ahead_on_small_tensors_with_large_attributes(tmp_path):
    model = Model()
    image, weights = (
        model.constant(np.ones((1, 1, 2, 2), np.float32)),
        model.constant(np.ones((1, 1, 2, 2), np.float32)),
    )
    big = "1000000000"
    pads = {"pads_begin": f"{big},{big}", "pads_end": f"{big},{big}", "strides": f"{big},{big}", "auto_pad": "explicit"}
    model.result(model.layer("Convolution", [image, weights], [("f32", (1, 1, 3, 3))], dilations="1,1", **pads)[0])
    boxes = model.constant(np.array([[0, 0, 1, 1]], np.float32))
    batch = model.constant(np.array([0], np.int32))
    roi = {"pooled_h": "1", "pooled_w": "1", "sampling_ratio": "100000", "spatial_scale": "1", "mode": "avg"}
    model.result(model.layer("ROIAlign", [image, boxes, batch], [("f32", (1, 1, 1, 1))], "opset3", **roi)[0])
    bounded("validate", model.save(tmp_path), seconds=5)


@pytest.mark.parametrize(
    ("type", "version", "inputs", "data"),
    [
        ("Split", "opset1", [("f32", "?"), ("i64", "")], {"num_splits": "2000000000"}),
        ("Broadcast", "opset3", [("f32", "?"), ("i64", "4000000000")], {"mode": "bidirectional"}),
        ("Reshape", "opset1", [("f32", "?"), ("i64", "4000000000")], {"special_zero": "true"}),
        ("Tile", "opset1", [("f32", "?"), ("i64", "4000000000")], {}),
        ("Transpose", "opset1", [("f32", "..."), ("i64", "4000000000")], {}),
        ("VariadicSplit", "opset1", [("f32", "?"), ("i64", ""), ("i64", "4000000000")], {"axis": "0"}),
        ("RandomUniform", "opset8", [("i64", "4000000000"), ("f32", ""), ("f32", "")], {"output_type": "f32"}),
        ("Slice", "opset8", [("f32", "..."), *[("i64", "4000000000")] * 3], {}),
        ("PriorBox", "opset8", [("i64", "2"), ("i64", "2")], {"fixed_size": "1", "density": "1e15", "offset": "0.5"}),
        ("OneHot", "opset1", [("i64", "?"), ("i64", ""), ("f32", ""), ("f32", "")], {"axis": "-1"}),
        ("Einsum", "opset7", [("f32", "?")] * 2, {"equation": "a,b->" + "ab" * 100_000}),
        ("DFT", "opset7", [("f32", "?,2"), ("i64", "4000000000")], {}),
        ("Pad", "opset1", [("f32", "..."), *[("i64", "4000000000")] * 2], {"pad_mode": "reflect"}),
        ("Unsqueeze", "opset1", [("f32", "?"), ("i64", "4000000000")], {}),
        (
            "StridedSlice",
            "opset1",
            [("f32", "?"), *[("i64", "4000000000")] * 3],
            {"begin_mask": "1", "end_mask": "1", "new_axis_mask": "", "shrink_axis_mask": "", "ellipsis_mask": ""},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and not value.startswith("opset") else "",
)
def test_rules_do_not_count_to_billions(type, version, inputs, data, tmp_path):
    layers = "".join(PARAMETER.format(id=n, shape=shape, type=kind) for n, (kind, shape) in enumerate(inputs))
    count = len(inputs)
    ports = "".join(f'<port id="{n}"/>' for n in range(count))
    given = " ".join(f'{name}="{value}"' for name, value in data.items())
    layers += f'<layer id="{count}" name="n" type="{type}" version="{version}"><data {given}/><input>{ports}</input>'
    layers += '<output><port id="99" precision="FP32"/></output></layer>'
    layers += f'<layer id="{count + 1}" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>'
    edges = "".join(f'<edge from-layer="{n}" from-port="0" to-layer="{count}" to-port="{n}"/>' for n in range(count))
    edges += f'<edge from-layer="{count}" from-port="99" to-layer="{count + 1}" to-port="0"/>'
    output = bounded("validate", written(tmp_path, net(layers, edges)), seconds=5).output
    assert "E301" not in output


# What is printed


def test_no_control_characters_reach_a_terminal(tmp_path):
    evil = "\x9b2J\x9d0;pwned\x9c\x7f\u202egnp\u2028"
    layers = (
        PARAMETER.format(id=0, shape="2", type="f32")
        .replace('name="x0"', f'name="{evil}"')
        .replace('<port id="0" precision="FP32"/>', f'<port id="0" precision="FP32" names="{evil}"/>')
    )
    layers += f'<layer id="1" name="{evil}" type="{evil}" version="opset1"><data {"a"}="{evil}"/></layer>'
    layers += '<layer id="2" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>'
    edge = '<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>'
    path = written(tmp_path, net(layers, edge))
    raw = tmp_path / "raw\x1b[31m.xml"
    raw.write_bytes(b"<net>\n <a b=\x1b[2J\x1b]0;pwned\x07/>\n</net>")
    for form in ("text", "concise", "github"):
        for file in (path, raw):
            output = bounded("validate", "--format", form, file, status=1, seconds=5).output
            assert not [c for c in output if not c.isprintable() and c != "\n"], repr(output)


def test_no_control_characters_come_from_a_run(tmp_path):
    evil = "\x9b2J\x7f\u202e"
    model = Model()
    x = model.parameter(evil, "f32", (2,))
    model.result(model.layer("ReLU", [x], [("f32", (2,))], name=evil, names=[evil])[0])
    path = model.save(tmp_path)
    for args in (["--random", 1], ["--random", 1, "--output", tmp_path / "out.npz"], []):
        output = bounded("execute", path, *args, status=(0, 1), seconds=10).output
        assert not [c for c in output if not c.isprintable() and c != "\n"], repr(output)


COMMANDS_WITH_NAMES = [
    ["execute", "MODEL", "--inputs", "INPUTS", "--profile"],
    ["print", "MODEL"],
    ["diff", "MODEL", "OTHER", "--numeric", "INPUTS"],
    ["edit", "MODEL", "--fold", "-o", "OUT", "--verify", "INPUTS"],
    ["edit", "MODEL", "--mean", "y=1", "-o", "OUT"],
    ["extract", "MODEL", "--to", "0", "--inputs", "INPUTS", "-o", "OUT"],
    ["strip", "MODEL", "-o", "OUT"],
    ["inspect", "MODEL", "--layers", "--weights"],
    ["inspect", "UNKNOWN"],
    ["validate", "MODEL", "--shape", "y=1"],
]


@pytest.mark.parametrize("command", COMMANDS_WITH_NAMES, ids=" ".join)
def test_no_name_makes_lines_or_control_characters(command, tmp_path):
    evil = "\x9b2J\n::error \u202e"
    paths = {}
    for name, op in (("MODEL", "ReLU"), ("OTHER", "Sigmoid"), ("UNKNOWN", "Nope")):
        model = Model()
        x = model.parameter(evil, "f32", (2,))
        model.result(model.layer(op, [x], [("f32", (2,))], name=f"{evil}{op}", names=[evil])[0])
        (tmp_path / f"{name}{evil}").mkdir()
        paths[name] = model.save(tmp_path / f"{name}{evil}")
    paths |= {"INPUTS": tmp_path / "inputs.npz", "OUT": tmp_path / f"out{evil}.xml"}
    np.savez(paths["INPUTS"], **{"0": np.ones(2, np.float32)})
    output = bounded(*(paths.get(part, part) for part in command)).output
    assert not [c for c in output if not c.isprintable() and c != "\n"], repr(output)
    assert not re.search("^::error", output, re.MULTILINE), output


# Runs


LIMIT = 50 * 1024 * 1024


def test_a_run_of_known_sizes_is_refused_before_it_starts(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (1,))
    wide = model.layer(
        "Broadcast", [x, model.constant([10**6, 10**5])], [("f32", (10**6, 10**5))], "opset3", mode="numpy"
    )[0]
    model.result(model.layer("ReLU", [wide], [("f32", (10**6, 10**5))], name="big")[0])
    path = model.save(tmp_path)
    with pytest.raises(
        irrun.ExecutionError, match=r"model\.xml:\d+:\d+: error\[E603\]: .* would take 372\.5 GiB"
    ) as caught:
        irrun.GraphExecutor(path, max_memory=10**9)
    (found,) = caught.value.diagnostics
    assert "400000000000 bytes" in found.message
    assert "more than the limit of 953.7 MiB" in found.message
    output = bounded(
        "execute", path, "--random", 1, "--max-memory", "1GB", status=1, memory=GIB // 2, seconds=10
    ).output
    assert "E603" in output


def test_what_is_freed_does_not_count(tmp_path):
    model = Model()
    value = model.parameter("x", "f32", (1 << 20,))
    for _ in range(30):
        value = model.layer("ReLU", [value], [("f32", (1 << 20,))])[0]
    model.result(value)
    path = model.save(tmp_path)
    x = np.ones(1 << 20, np.float32)
    irrun.GraphExecutor(path, max_memory=9 << 20).run([x])
    with pytest.raises(irrun.ExecutionError, match=r"beside 4\.0 MiB in use, more than the limit of 7\.0 MiB"):
        irrun.GraphExecutor(path, max_memory=7 << 20)


def test_what_is_freed_does_not_count_where_sizes_are_known_to_the_run_only(tmp_path):
    model = Model()
    value = model.parameter("x", "f32", ("?",))
    for _ in range(30):
        value = model.layer("ReLU", [value], [("f32", (-1,))])[0]
    model.result(value)
    path = model.save(tmp_path)
    executor = irrun.GraphExecutor(path, max_memory=9 << 20)
    executor.run([np.ones(1 << 20, np.float32)])
    executor.run([np.ones(1 << 20, np.float32)])
    with pytest.raises(irrun.ExecutionError, match=r"layer|would take 8\.0 MiB"):
        executor.run([np.ones(1 << 21, np.float32)])
    executor.run([np.ones(1 << 20, np.float32)])


DYNAMIC = {
    "Range": (
        [("stop", np.int64(10**13))],
        lambda m, x: m.layer(
            "Range",
            [m.constant(np.int64(0)), x, m.constant(np.int64(1))],
            [("i64", (-1,))],
            "opset4",
            output_type="i64",
        ),
    ),
    "RandomUniform": (
        [("shape", np.int64([10**6, 10**6]))],
        lambda m, x: m.layer(
            "RandomUniform",
            [x, m.constant(np.float32(0)), m.constant(np.float32(1))],
            [("f32", (-1, -1))],
            "opset8",
            output_type="f32",
            op_seed="1",
            global_seed="1",
        ),
    ),
    "OneHot": (
        [("depth", np.int64(10**12))],
        lambda m, x: m.layer(
            "OneHot",
            [m.constant([1, 2]), x, m.constant(np.float32(1)), m.constant(np.float32(0))],
            [("f32", (2, -1))],
            axis="-1",
        ),
    ),
    "Broadcast": (
        [("target", np.int64([10**12, 1]))],
        lambda m, x: m.layer(
            "Broadcast", [m.constant(np.float32([1])), x], [("f32", (-1, -1))], "opset3", mode="numpy"
        ),
    ),
    "Tile": (
        [("repeats", np.int64([10**12]))],
        lambda m, x: m.layer("Tile", [m.constant(np.float32([1, 2])), x], [("f32", (-1,))]),
    ),
    "Pad": (
        [("end", np.int64([10**12]))],
        lambda m, x: m.layer(
            "Pad", [m.constant(np.float32([1])), m.constant([0]), x], [("f32", (-1,))], pad_mode="constant"
        ),
    ),
    "Interpolate": (
        [("sizes", np.int64([10**6, 10**6]))],
        lambda m, x: m.layer(
            "Interpolate",
            [m.constant(np.ones((2, 2), np.float32)), x, m.constant([0, 1])],
            [("f32", (-1, -1))],
            "opset11",
            mode="nearest",
            shape_calculation_mode="sizes",
        ),
    ),
    "Eye": (
        [("rows", np.int64(10**7))],
        lambda m, x: m.layer("Eye", [x, x, m.constant(np.int32(0))], [("f32", (-1, -1))], "opset9", output_type="f32"),
    ),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_a_run_of_sizes_from_its_inputs_is_refused_before_it_allocates(name, tmp_path):
    inputs, build = DYNAMIC[name]
    model = Model()
    parameters = [model.parameter(key, "i64", array.shape) for key, array in inputs]
    model.result(build(model, *parameters)[0])
    path = model.save(tmp_path)
    np.savez(tmp_path / "in.npz", **dict(inputs))
    output = bounded(
        "execute", path, "--inputs", tmp_path / "in.npz", "--max-memory", "1GiB", status=1, memory=GIB // 2, seconds=10
    ).output
    assert "error[E603]" in output, output
    assert f"({name})" in output


def test_a_loop_that_collects_without_end_is_stopped(tmp_path):
    text = nested_loops(1)
    path = written(tmp_path, f'<net name="m" version="11">{text}</net>', struct.pack("<q?", -1, True))
    output = bounded("execute", path, "--random", 1, "--max-memory", "200MB", status=1, seconds=60).output
    assert "E603" in output


def test_inputs_to_make_up_are_refused_too(tmp_path):
    model = Model()
    model.result(model.parameter("x", "f32", ("?", 10**6)))
    args = ["--random", 1, "--shape", "x=1000000,1000000"]
    output = bounded("execute", model.save(tmp_path), *args, status=1, memory=GIB // 2, seconds=10).output
    assert "ask for another shape" in output


def test_constants_that_are_unpacked_count(tmp_path):
    path = written(tmp_path, net(const("u1", str(1 << 28), 1 << 25), EDGE), b"")
    os.truncate(path.with_suffix(".bin"), 1 << 25)
    irrun.GraphExecutor(path, max_memory=1 << 29)
    with pytest.raises(irrun.ExecutionError, match=r"the constant would take 256\.0 MiB"):
        irrun.GraphExecutor(path, max_memory=1 << 27)


@pytest.mark.parametrize("text", ["4GiB", "500MB", "1000000", "1.5g", "4 GB"])
def test_sizes_of_memory_are_written_in_many_ways(text, tmp_path):
    model = Model()
    model.result(model.parameter("x", "f32", (2,)))
    bounded("execute", model.save(tmp_path), "--random", 1, "--max-memory", text, status=0)


@pytest.mark.parametrize("text", ["", "much", "-1", "1PB", "1e9", "9" * 40])
def test_sizes_of_memory_that_are_none(text, tmp_path):
    model = Model()
    model.result(model.parameter("x", "f32", (2,)))
    output = bounded("execute", model.save(tmp_path), "--random", 1, "--max-memory", text, status=2).output
    assert "is not a size such as 4GiB" in output


# Files of arrays


@pytest.fixture
def echo(tmp_path):
    """y = relu(x), for f32 of shape [?, 2]."""
    model = Model()
    x = model.parameter("x", "f32", ("?", 2))
    model.result(model.layer("ReLU", [x], [("f32", (-1, 2))], names=["y"])[0])
    return model.save(tmp_path)


def header(text: str, version: tuple[int, int] = (1, 0)) -> bytes:
    length = struct.pack("<H" if version[0] == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text.encode("latin-1")


def npy(descr: str = "'<f4'", shape: str = "(1, 2)", data: bytes = bytes(8)) -> bytes:
    return header(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n") + data


def packed(path: Path, members: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method, compresslevel=1) as archive, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Duplicate name")
        for name, data in members:
            archive.writestr(name, data)
    return path


LYING = [
    (npy(shape="(1000000000000, 2)"), "is cut short: its header says 8000000000000 bytes of data, but 8 follow"),
    (npy(data=bytes(7)), "is cut short: its header says 8 bytes of data, but 7 follow"),
    (npy(data=bytes(9)), "goes on after its array: its header says 8 bytes, but 9 follow"),
    (npy(shape="(-1, 2)"), "has the shape (-1, 2), which is none"),
    (npy(shape="(01, 2)"), "has a header that is no description of an array"),
    (npy(shape="(8)"), "has the shape 8, which is none"),
    (npy(shape=f"({'9' * 5000}, 2)"), "has a header that is no description of an array"),
    (npy(shape="[1, 2]"), "has the shape [1, 2], which is none"),
    (npy(shape="(True, 2)"), "has the shape (True, 2), which is none"),
    (npy(shape=f"({10**30},)"), f"has the shape ({10**30},), which is none"),
    (npy(shape=f"({'1, ' * 65})"), "has 65 dimensions, more than 64"),
    (npy(descr="'|O'"), "cannot be read as an array: it holds Python objects, which irrun never unpickles"),
    (npy(descr="'<f4, <f4'"), "is an array of records"),
    (npy(descr="[('a', '<f4'), ('b', '|O')]"), "is an array of records"),
    (npy(descr="'|V2'"), "holds elements of 2 bytes without a type"),
    (npy(descr="'nonesuch'"), "has the type 'nonesuch', which numpy does not know"),
    (npy(descr="'<U0'", shape="(1000000000000,)", data=b""), "has elements of no bytes"),
    (npy(descr="__import__('os').system('true')"), "has a header that is no description of an array"),
    (header("(" * 9000), "has a header that is no description of an array"),
    (header("{'shape': (1,)}"), "has a header that is no description of an array"),
    (b"\x93NUMPY\x02\x00" + b"\xff\xff\xff\xff", "has a header of 4294967295 bytes, more than 10000"),
    (b"\x93NUMPY\x09\x00", "is in version 9 of the .npy format"),
    (b"\x93NUM", "is no array in .npy format"),
    (b"", "is no array in .npy format"),
    (b"PK\x03\x04 what follows", "is an .npz file: give it with --inputs"),
]
"""Contents of .npy files, and what is said of them."""


@pytest.mark.parametrize("packing", [False, True])
def test_npy_files_that_lie(packing, echo, tmp_path):
    commands, expected = [], []
    for number, (content, message) in enumerate(LYING):
        path = tmp_path / f"{number}.npy"
        path.write_bytes(content)
        if packing:
            if content.startswith(b"PK"):
                continue
            path = packed(path.with_suffix(".npz"), [("x.npy", content)])
            message = f"member `x.npy` of {path} {message}"
        commands.append(["execute", echo, *(["--inputs", path] if packing else ["--input", f"x={path}"])])
        expected.append(message)
    outputs = bounded_in_turn(commands, status=1, memory=GIB // 2, seconds=10)
    assert [(e, o) for e, o in zip(expected, outputs, strict=True) if e not in o] == []


@pytest.mark.parametrize("shape", ["()", "(2,)", "(1, 2)", "(1,2)", "(1, 2,)", "(2, 0, 3)", "( 2, )", "(+2,)"])
@pytest.mark.parametrize("descr", ["'<f4'", "'>i8'", "'|b1'", '"<f4"', "'f4'"])
@pytest.mark.parametrize("end", [", }", "}", ", }     \n", " , }\n"])
def test_headers_of_npy_files_may_be_written_in_any_way(shape, descr, end):
    text = f"{{'descr': {descr}, 'fortran_order': True, 'shape': {shape}{end}"
    expected = ast.literal_eval(text.strip())
    size = np.prod(expected["shape"], dtype=int) * np.dtype(expected["descr"]).itemsize
    read = parse_npy(header(text) + bytes(size), "x")
    assert read.shape == expected["shape"]
    assert read.dtype == np.dtype(expected["descr"])
    assert read.flags.f_contiguous


def test_zip_bombs_do_not_go_off(echo, tmp_path):
    size = 300_000_000
    bomb = npy(shape=f"({size // 8}, 2)", data=bytes(size))
    path = packed(tmp_path / "x.npz", [(f"x{n}.npy", bomb) for n in range(3)], zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 5_000_000
    output = bounded(
        "execute", echo, "--inputs", path, "--max-memory", "500MB", status=1, memory=GIB // 2, seconds=5
    ).output
    assert "take 858.3 MiB, more than the limit of 476.8 MiB" in output


def lying(path: Path, offset: int, value: bytes) -> Path:
    """The archive with another value in its list of members, and in the member's own header where it has one."""
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\x01\x02")
    data[entry + offset : entry + offset + len(value)] = value
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (24, struct.pack("<I", 1 << 31), "goes on after its array"),
        (24, struct.pack("<I", 10), "is damaged"),
        (20, struct.pack("<I", 20), "x.npy"),
        (16, b"\1\2\3\4", "is damaged: Bad CRC-32"),
        (8, b"\1\0", "is encrypted"),
        (10, b"\x63\0", "is compressed in a way that numpy does not use"),
        (42, struct.pack("<I", 1 << 30), "x.npz"),
    ],
)
def test_archives_that_lie(offset, value, message, echo, tmp_path):
    path = lying(packed(tmp_path / "x.npz", [("x.npy", npy())]), offset, value)
    output = bounded("execute", echo, "--inputs", path, status=1, memory=GIB // 2, seconds=5).output
    assert message in output, output


@pytest.mark.parametrize("cut", [1, 30, 60, -1, -30])
def test_archives_that_are_cut_short(cut, echo, tmp_path):
    path = packed(tmp_path / "x.npz", [("x.npy", npy())])
    path.write_bytes(path.read_bytes()[:cut])
    output = bounded("execute", echo, "--inputs", path, status=1, seconds=5).output
    assert "is not an .npz file, or not a whole one" in output


def test_compressed_data_that_are_garbage(echo, tmp_path):
    path = packed(tmp_path / "x.npz", [("x.npy", npy())], zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    data[40:60] = b"\xff" * 20
    path.write_bytes(data)
    assert "is damaged" in bounded("execute", echo, "--inputs", path, status=1, seconds=5).output


UNFIT = [
    ([("x.npy", npy()), ("x.npy", npy())], "has 2 members `x.npy`"),
    ([("x.npy", npy()), ("readme.txt", b"hello")], "has a member `readme.txt`, which is no array"),
    ([("x.npy", npy()), ("folder/", b"")], "has a member `folder/`, which is no array"),
    ([("x.npy", npy()), ("z.npy", npy())], "`z` is no input of the model; its inputs are `x`"),
    ([], "no array for input `x` (f32[?, 2])"),
    ([("x.npy", npy("'<f8'", data=bytes(16)))], "input `x` is f64, expected f32"),
    ([("x.npy", npy("'>f8'", data=bytes(16)))], "input `x` is f64 of the other byte order, expected f32"),
    ([("x.npy", npy(shape="(2,)"))], "input `x` has shape [2], expected [?, 2]: its rank is 1, not 2"),
    ([("x.npy", npy(shape="(2, 1)"))], "input `x` has shape [2, 1], expected [?, 2]: axis 1 has 1 elements, not 2"),
    ([("x.npy", npy("'|S4'"))], "input `x` holds bytes, not text"),
    ([("x.npy", npy("'<c8'", "(1,)"))], "input `x` is an array of complex64"),
    ([("x.npy", npy("'<M8[s]'", "(1,)"))], "which the IR has no element type for"),
    ([("x.npy", npy("'<f16'", "(1, 1)", bytes(16)))], "which the IR has no element type for"),
    ([("../../x.npy", npy())], "`../../x` is no input of the model"),
]
"""Members of .npz files, and what is said of them."""


def test_inputs_that_do_not_fit_say_how(echo, tmp_path):
    paths = [packed(tmp_path / f"{number}.npz", members) for number, (members, _) in enumerate(UNFIT)]
    outputs = bounded_in_turn([["execute", echo, "--inputs", path] for path in paths], status=1, seconds=10)
    assert [(m, o) for (_, m), o in zip(UNFIT, outputs, strict=True) if m not in o] == []


def test_the_other_byte_order_is_converted_and_told(echo, tmp_path):
    path = packed(tmp_path / "x.npz", [("x.npy", npy("'>f4'", data=struct.pack(">ff", 1, 2)))])
    output = bounded("execute", echo, "--inputs", path, status=0, seconds=5).output
    assert "note: input `x` is in the byte order of other machines (>f4) and was converted" in output
    assert "[[1. 2.]]" in output


def test_all_that_numpy_writes_is_read_back(tmp_path):
    from irrun.run.arrays import read_npy, read_npz

    arrays = {
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "empty": np.zeros((0, 3), np.int8),
        "scalar": np.float32(3),
        "text": np.array(["a", "öäü", ""]),
        "bool": np.array([True, False]),
        "half": np.float16([1, 2]),
    }
    np.savez(tmp_path / "a.npz", **arrays)
    np.savez_compressed(tmp_path / "b.npz", **arrays)
    for name in ("a.npz", "b.npz"):
        found = read_npz(tmp_path / name)
        assert found.keys() == arrays.keys()
        for key, array in arrays.items():
            np.testing.assert_array_equal(found[key], array)
            assert found[key].dtype == np.asarray(array).dtype
            assert found[key].shape == np.shape(array)
    np.save(tmp_path / "c.npy", arrays["fortran"])
    np.testing.assert_array_equal(read_npy(tmp_path / "c.npy"), arrays["fortran"])


# Files that are written


@pytest.fixture
def large(tmp_path):
    """A model whose results take 200 MB."""
    model = Model()
    x = model.parameter("x", "f32", (1,))
    target = model.constant([50_000_000])
    model.result(
        model.layer("Broadcast", [x, target], [("f32", (50_000_000,))], "opset3", mode="numpy", names=["y"])[0]
    )
    return model.save(tmp_path)


def temporary(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.startswith(".out")]


def test_an_interrupted_output_leaves_the_old_file_and_nothing_else(large, tmp_path):
    out = tmp_path / "out.npz"
    out.write_text("old")

    def writing() -> bool:
        return any(path.stat().st_size > 10_000_000 for path in temporary(tmp_path))

    bounded("execute", large, "--random", 1, "--output", out, status=(1, 130), memory=2 * GIB, signalled=(0, writing))
    assert out.read_text() == "old"
    assert not temporary(tmp_path)


def test_a_full_disk_leaves_the_old_file_and_nothing_else(large, tmp_path):
    out = tmp_path / "out.npz"
    out.write_text("old")
    limits = {resource.RLIMIT_FSIZE: 50_000_000}  # Python ignores the signal, so writing fails
    output = bounded("execute", large, "--random", 1, "--output", out, status=2, memory=2 * GIB, limits=limits).output
    assert f"{out} cannot be written: File too large" in output
    assert out.read_text() == "old"
    assert not temporary(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_device_that_is_full(echo):
    output = bounded("execute", echo, "--random", 1, "--output", "/dev/full", status=2, seconds=5).output
    assert "cannot be written: No space left on device" in output


def test_an_output_whose_name_is_too_long_for_the_file(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (2,))
    model.result(model.layer("ReLU", [x], [("f32", (2,))], names=["n" * 70_000])[0])
    output = bounded("execute", model.save(tmp_path), "--random", 1, "--output", tmp_path / "out.npz", status=2).output
    assert "the name of an output has 70,000 characters" in output
    assert not (tmp_path / "out.npz").exists()


def test_a_port_of_a_thousand_consumers_and_a_layer_of_thousands_of_inputs(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (1,))
    model.result(model.layer("Concat", [x] * 20_000, [("f32", (20_000,))], axis="0")[0])
    bounded("validate", model.save(tmp_path), status=0, seconds=15)
    assert port(0, "f32", ()) == '<port id="0" precision="FP32"></port>'


# What a fuzzer found


def test_a_port_map_to_a_layer_without_a_type(tmp_path):
    text = nested_loops(1).replace('name="x0" type="Parameter"', 'name="x0"')
    path = written(tmp_path, f'<net name="m" version="11">{text}</net>', struct.pack("<q?", 2, True))
    assert "E201" in {found.code for found in irrun.validate(path).errors}


def test_densities_without_sizes(tmp_path):
    layers = PARAMETER.format(id=0, shape="2", type="i64") + PARAMETER.format(id=1, shape="2", type="i64")
    layers += (
        '<layer id="2" name="p" type="PriorBox" version="opset8"><data density="2,3" min_size="4" offset="0.5"/>'
        '<input><port id="0"/><port id="1"/></input><output><port id="2" precision="FP32"/></output></layer>'
    )
    edge = '<edge from-layer="{}" from-port="0" to-layer="2" to-port="{}"/>'
    path = written(tmp_path, net(layers, edge.format(0, 0) + edge.format(1, 1)))
    assert "E309" not in {found.code for found in irrun.validate(path).errors}


def test_a_rule_that_fails_is_no_traceback(tmp_path):
    module = tmp_path / "my_ops.py"
    module.write_text(
        "from irrun.spec import Input, Output, op\n"
        '@op("Mine-1", inputs=[Input("x", "f32", "...")], outputs=[Output("y", "f32", "...")])\n'
        "def mine(x):\n    return x\n"
        "@mine.shapes\ndef _(node):\n    return 1 // 0\n"
    )
    model = Model()
    x = model.parameter("x", "f32", (2,))
    model.result(model.layer("ReLU", [model.layer("Mine", [x], [("f32", (2,))])[0]], [("f32", (2,))])[0])
    output = bounded("validate", "--ops", module, model.save(tmp_path), status=1, seconds=5).output
    assert "error[E309]: the rule of Mine-1 failed: ZeroDivisionError" in output
    assert "1 error" in output
