"""The means of a <pre-process>, with OpenVINO as witness of what it refuses."""

import openvino as ov
import pytest
from ir_builder import Model

import irrun


def numbers(count, text="1"):
    return "".join(f'<channel id="{number}"><mean value="{text}"/></channel>' for number in range(count))


def images(count, size=64, begin=0):
    one = '<channel id="{}"><mean offset="{}" size="{}"/></channel>'
    return "".join(one.format(number, begin + number * size, size) for number in range(count))


IMAGE = (1, 3, 4, 4)
TAKEN = [
    (IMAGE, numbers(3), "x"),
    (IMAGE, numbers(3), ""),
    (IMAGE, numbers(3), " x "),
    (IMAGE, numbers(3).replace(' id="0"', "").replace(' id="1"', ""), "x"),
    (IMAGE, numbers(3) + numbers(1), "x"),
    (IMAGE, numbers(3, ""), "x"),
    (IMAGE, numbers(3, " -1e-2"), "x"),
    (IMAGE, images(3), "x"),
    ((1, 3), numbers(3), "x"),
    ((3, 4, 4), numbers(3), "x"),
    ((1, 3, 2, 4, 4), numbers(3), "x"),
    (IMAGE, numbers(3) + '<channel id="9"/>', "x"),
    (IMAGE, numbers(3).replace('id="0"', 'id="+0"').replace('id="1"', 'id=" 1"'), "x"),
    (IMAGE, numbers(3).replace("/>", ' size=""/>'), "x"),
    (IMAGE, '<channel id="0"><mean size="3"/></channel>' + numbers(3), "x"),
    *((IMAGE, numbers(3, text), "x") for text in (" ", "-", " +.", "1.", ".5", "1e", "-1.5E+", "1e400", "0" * 400)),
    ((3, 4, 4), images(3), "x"),
    ((1, 3), images(3, 4), "x"),
]
REFUSED = [
    (IMAGE, numbers(3), "y", "there is no input `y` to take means from"),
    (IMAGE, "", "y", "there is no input `y` to take means from"),
    ((3,), numbers(1), "x", "means cannot be taken from an input of one dimension"),
    (("?", 3, 4, 4), numbers(3), "x", "means cannot be taken from an input of unknown sizes"),
    (IMAGE, numbers(4), "x", "there is no channel `3` among the 3 of the input"),
    (IMAGE, numbers(3).replace('id="2"', 'id="two"'), "x", "there is no channel `two` among the 3 of the input"),
    (IMAGE, numbers(3).replace('id="2"', 'id="-1"'), "x", "there is no channel `-1` among the 3 of the input"),
    (IMAGE, numbers(2), "x", "there are means for 2 of the 3 channels"),
    (IMAGE, numbers(3).replace('id="2"', 'id="1"'), "x", "there are means for 2 of the 3 channels"),
    (IMAGE, numbers(3, "nan"), "x", "the mean is `nan`, expected a number"),
    (IMAGE, numbers(3, "1 "), "x", "the mean is `1 `, expected a number"),
    (IMAGE, '<channel id="0"><mean/></channel>', "x", "a <mean> has neither `value` nor `size`"),
    (IMAGE, images(3, 32), "x", "`size` is 32 bytes, but the means of 16 pixels take 64"),
    (IMAGE, images(3, 64, 900), "x", "the means end at byte 1028, but the .bin has 1000"),
    (IMAGE, numbers(2) + images(3)[-58:], "x", "some of the means are numbers, others images"),
    (IMAGE, images(3).replace("/>", ' value="1"/>'), "x", "some of the means are numbers, others images"),
    (
        IMAGE,
        numbers(3).replace("/>", ' offset="0" size="3"/>'),
        "x",
        "`size` is 3 bytes, but the means of 16 pixels take",
    ),
    (IMAGE, numbers(3) + numbers(1, "2"), "x", "there are two means for channel 0"),
    (IMAGE, images(3) + images(1, begin=4), "x", "there are two means for channel 0"),
    (
        IMAGE,
        numbers(3)[:42] + numbers(3)[42:].replace(' id="1"', "").replace('"2"', '"1"'),
        "x",
        "there are means for 2 of",
    ),
    (IMAGE, '<channel id="x"/>', "x", "there is no channel `x` among the 3 of the input"),
    *(
        (IMAGE, numbers(3, text), "x", f"the mean is `{text}`, expected")
        for text in ("inf", "-inf", "e5", "0x3", "--1")
    ),
    *(
        (
            IMAGE,
            images(3).replace('size="64"', f'size="{text}"'),
            "x",
            f"`size` is `{text}`, expected a number of bytes",
        )
        for text in ("", "-1", "0x40", "64 ", "9223372036854775808")
    ),
    (IMAGE, images(1).replace('offset="0"', 'offset="-1"'), "x", "`offset` is `-1`, expected a number of bytes"),
    ((3, 4, 4), images(3, 16), "x", "`size` is 16 bytes, but the means of 16 pixels take 64"),
    ((1, 3), images(3), "x", "`size` is 64 bytes, but the means of 1 pixels take 4"),
    ((1, 3, 1, 1, 2, 2), "", "x", "means cannot be taken from an input of 6 dimensions"),
    ((1, "?"), "", "x", "means cannot be taken from an input of unknown sizes"),
]


def written(folder, shape, channels, name, type="f32"):
    model = Model()
    model.weights = bytes(1000)
    model.result(model.parameter("x", type, shape))
    path = model.save(folder)
    element = f'<pre-process reference-layer-name="{name}" mean-precision="FP32">{channels}</pre-process>'
    path.write_text(path.read_text().replace("<layers>", f"{element}\n<layers>"))
    return path


def read(path):
    """Whether OpenVINO reads it."""
    try:
        ov.Core().read_model(path)
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize(("shape", "channels", "name"), TAKEN)
def test_means_that_openvino_takes_are_a_warning(shape, channels, name, tmp_path):
    path = written(tmp_path, shape, channels, name)
    (found,) = irrun.validate(path).diagnostics
    assert (found.code, found.line) == ("W907", 3)
    assert "irrun edit --mean" in found.help
    assert len(ov.Core().read_model(path).get_ops()) == 4


@pytest.mark.parametrize(("shape", "channels", "name", "message"), REFUSED)
def test_means_that_openvino_refuses_are_an_error(shape, channels, name, message, tmp_path):
    path = written(tmp_path, shape, channels, name)
    (found,) = irrun.validate(path).diagnostics
    assert (found.code, found.line) == ("E224", 3)
    assert found.message.startswith(message)
    with pytest.raises(RuntimeError):
        ov.Core().read_model(path)


@pytest.mark.parametrize(
    ("type", "size", "taken"),
    [("u8", 16, True), ("u8", 64, False), ("f16", 32, True), ("i64", 128, True), ("f64", 64, False), ("u4", 8, False)],
)
def test_images_of_means_are_of_the_type_of_the_input(type, size, taken, tmp_path):
    path = written(tmp_path, IMAGE, images(3, size), "x", type)
    assert [found.code for found in irrun.validate(path).diagnostics] == ["W907" if taken else "E224"]
    assert read(path) == taken


@pytest.mark.parametrize("type", ["boolean", "string"])
def test_nothing_is_taken_from_what_is_no_number(type, tmp_path):
    path = written(tmp_path, IMAGE, numbers(3), "x", type)
    (found,) = irrun.validate(path).diagnostics
    assert (found.code, found.message) == ("E224", f"means cannot be taken from an input of type {type}")
    assert not read(path)


@pytest.mark.parametrize("shape", ["1,3,4..4,4", "[1,3,4,4]", "[ 1, 3,4,4 ]", "1,3,4..5,4"])
def test_the_shape_of_the_input_is_read_as_everywhere(shape, tmp_path):
    path = written(tmp_path, IMAGE, numbers(3), "x")
    path.write_text(path.read_text().replace('shape="1,3,4,4"', f'shape="{shape}"'))
    assert any(found.code == "E224" for found in irrun.validate(path).diagnostics) == (shape == "1,3,4..5,4")
    assert read(path) == (shape != "1,3,4..5,4")


def test_without_a_name_the_first_input_of_four_dimensions_is_meant(tmp_path):
    model = Model()
    for name, shape in (("a", (2, 5)), ("b", IMAGE), ("c", (1, 4, 4, 4))):
        model.result(model.parameter(name, "f32", shape))
    path = model.save(tmp_path)
    path.write_text(path.read_text().replace("<layers>", f"<pre-process>{numbers(3)}</pre-process>\n<layers>"))
    assert [found.code for found in irrun.validate(path).diagnostics] == ["W907"]
    assert read(path)


@pytest.mark.parametrize("channels", ["", '<channel id="0"/>', '<channel id="9"/>'])
def test_without_means_there_is_nothing_to_say(channels, tmp_path):
    path = written(tmp_path, IMAGE, channels, "x")
    assert irrun.validate(path).diagnostics == []
    assert len(ov.Core().read_model(path).get_ops()) == 2
