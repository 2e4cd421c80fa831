"""Bytes of the .bin that nothing reads, and weights that were never written: one warning for the file."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.check.finite import suspect


def sums(folder, sizes=(64, 32, 48, 40, 2), *, head=b"", tail=b""):
    """A sum of constants of so many rows of 32 numbers each, behind and before other bytes."""
    net = Model()
    net.weights = head
    x = net.parameter("x", "f32", (1, 32))
    for number, size in enumerate(sizes, 1):
        (row,) = net.layer(
            "ReduceSum",
            [net.constant(np.full((size, 32), number, np.float32)), net.constant(np.int64([0]))],
            [("f32", (1, 32))],
            keep_dims="true",
        )
        (x,) = net.layer("Add", [x, row], [("f32", (1, 32))])
    net.result(x)
    net.weights += tail
    return net.save(folder)


def told(path):
    return [(found.code, found.message) for found in irrun.validate(path).diagnostics]


@pytest.mark.parametrize("padding", [b"", b"\1", b"\1" * 64])
def test_padding_is_no_unread_data(padding, tmp_path):
    assert told(sums(tmp_path, head=padding, tail=padding)) == []


@pytest.mark.parametrize(
    ("place", "says"),
    [({"head": b"\1" * 65}, "bytes 0 to 65"), ({"tail": b"\1" * 100}, "bytes 23848 to 23948")],
)
def test_bytes_that_no_const_reads_are_one_warning(place, says, tmp_path):
    assert told(sums(tmp_path, **place)) == [("W915", f"no Const reads {says} of the .bin")]


@pytest.mark.parametrize("rows", [1, 200, 100_000])
def test_a_bin_of_another_model_is_one_error(rows, tmp_path):
    """Axes that are the bits of floats, NaN among weights and what else comes of its numbers follow from that."""
    path = sums(tmp_path)
    path.with_suffix(".bin").write_bytes(np.full((rows, 32), np.nan, np.float32).tobytes())
    ((code, message),) = told(path)
    if rows == 1:  # where no axis can be read
        assert (code, message) == (
            "E503",
            f"10 Consts lie beyond the end of `{path.with_suffix('.bin')}`, which lacks 23720 bytes",
        )
        return
    assert code == "E503"
    assert message.endswith(f"another model: it has {rows * 128} bytes, but the Consts end at byte 23848")
    path.write_text(path.read_text().replace('keep_dims="true"', 'keep_dims="maybe"', 1))
    assert sorted(code for code, _ in told(path)) == ["E307", "E503"]


def turned(path):
    """The .bin with the bytes of each number in the other order."""
    sound = path.with_suffix(".bin").read_bytes()
    weights = bytearray(sound)
    for type, offset, size in re.findall(
        r'element_type="(\w+)" shape="[^"]*" offset="(\d+)" size="(\d+)"', path.read_text()
    ):
        numbers = np.frombuffer(sound, f"{type[0]}{int(type[1:]) // 8}", int(size) * 8 // int(type[1:]), int(offset))
        weights[int(offset) : int(offset) + int(size)] = numbers.byteswap().tobytes()
    return bytes(weights)


@pytest.mark.parametrize("kind", ["turned", "random", "zero"])
def test_a_bin_of_the_right_size_that_is_wrong_all_through_is_one_error(kind, tmp_path):
    path = Path("samples/transformer-block/model.xml")
    size = path.with_suffix(".bin").stat().st_size
    weights = {"turned": turned(path), "random": np.random.default_rng(0).bytes(size), "zero": bytes(size)}[kind]
    (found,) = irrun.validate(path.read_bytes(), weights).diagnostics
    says = {
        "turned": "has its bytes in another order than an IR: the last of each number comes first",
        "random": "is not that of this model: 10 constants in it have numbers that make no sense",
        "zero": "is zero from its first byte to its last",
    }
    assert (found.code, found.message) == ("E503", f"`<weights>` {says[kind]}")
    assert found.notes[0].message.startswith("layer ")


@pytest.mark.parametrize("repeats", [[2**40, 3 * 2**40], [2**56, 3 * 2**56]])
def test_repeats_that_no_memory_could_hold_are_no_bytes_in_another_order(repeats, tmp_path):
    net = Model()
    (y,) = net.layer("Tile", [net.parameter("x", "f32", (1, 1)), net.constant(np.array(repeats))], [("f32", ())])
    net.result(y)
    ((code, message),) = told(net.save(tmp_path))
    assert (code, message.endswith("which no memory could hold")) == ("E308", True)


def test_a_wrong_axis_in_a_bin_that_was_cut_off_is_told_beside_that(tmp_path):
    path = sums(tmp_path)
    weights = bytearray(path.with_suffix(".bin").read_bytes())
    axis = int(re.findall(r'offset="(\d+)" size="8"', path.read_text())[0])
    weights[axis : axis + 8] = np.int64(7).tobytes()
    path.with_suffix(".bin").write_bytes(weights[:-300])
    assert [code for code, _ in told(path)] == ["E401", "E503"]
    weights[axis : axis + 8] = np.int64(2**40).tobytes()
    path.with_suffix(".bin").write_bytes(weights)
    assert [code for code, _ in told(path)] == ["E401"]


def test_a_const_with_the_offset_of_another_one_is_told_where_its_bytes_are(tmp_path):
    path = sums(tmp_path, (16, 16, 8))
    offset = re.findall(r'offset="(\d+)" size="2048"', path.read_text())[1]
    path.write_text(path.read_text().replace(f'offset="{offset}"', 'offset="0"'))
    ((code, message),) = told(path)
    assert code == "W909"
    assert f"no Const reads as many from byte {offset} on" in message


def test_bytes_of_the_shape_that_the_port_declares_are_told_there(tmp_path):
    path = sums(tmp_path)
    text = path.read_text()
    assert text.count('"48,32"') == text.count('size="6144"') == 1
    path.write_text(text.replace('"48,32"', '"24,32"').replace('size="6144"', 'size="3072"'))
    assert [code for code, _ in told(path)] == ["W931"]


def test_bytes_that_no_const_reads_are_told_beside_a_port_that_is_not_as_its_const(tmp_path):
    path = sums(tmp_path, head=b"\1" * 65)
    path.write_text(path.read_text().replace("<dim>48</dim>", "<dim>47</dim>"))
    assert sorted(code for code, _ in told(path)) == ["W915", "W931"]


def test_of_a_model_with_errors_nothing_is_said_of_the_whole(tmp_path):
    path = sums(tmp_path, tail=b"\1" * 100)
    path.write_text(path.read_text().replace('type="Add"', 'type="Unknown"', 1))
    assert [code for code, _ in told(path)] == ["E301"]


def test_weights_that_are_zero_to_the_end_are_one_warning(tmp_path):
    path = sums(tmp_path)
    weights = path.with_suffix(".bin").read_bytes()
    path.with_suffix(".bin").write_bytes(weights[:9000] + bytes(len(weights) - 9000))
    for code, message in told(path):
        if code == "W916":
            assert message == "all of the .bin from byte 12304 on is zero, which are 3 constants of floats"
            return
    pytest.fail("there is no W916")


@pytest.mark.parametrize("zeros", [256, 300, 400])
def test_a_bias_of_zeros_at_the_end_is_not_worth_a_warning(zeros, tmp_path):
    path = sums(tmp_path)
    weights = path.with_suffix(".bin").read_bytes()
    path.with_suffix(".bin").write_bytes(weights[:-zeros] + bytes(zeros))
    assert "W916" not in [code for code, _ in told(path)]


def test_a_bin_that_is_cut_off_while_it_is_searched_is_an_error(tmp_path, monkeypatch):
    path = sums(tmp_path)
    weights = path.with_suffix(".bin")

    def cut_off(*given):
        os.truncate(weights, 4)
        return suspect(*given)

    monkeypatch.setattr("irrun.check.finite.suspect", cut_off)
    report = irrun.validate(path, searched=None)
    assert [(found.code, found.message) for found in report.diagnostics] == [
        ("E502", f"`{weights}` was written to while it was read")
    ]
