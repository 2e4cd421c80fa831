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
]


def written(folder, shape, channels, name):
    model = Model()
    model.weights = bytes(1000)
    model.result(model.parameter("x", "f32", shape))
    path = model.save(folder)
    element = f'<pre-process reference-layer-name="{name}" mean-precision="FP32">{channels}</pre-process>'
    path.write_text(path.read_text().replace("<layers>", f"{element}\n<layers>"))
    return path


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
    assert (found.code, found.message, found.line) == ("E224", message, 3)
    with pytest.raises(RuntimeError):
        ov.Core().read_model(path)


@pytest.mark.parametrize("channels", ["", '<channel id="0"/>', '<channel id="9"/>'])
def test_without_means_there_is_nothing_to_say(channels, tmp_path):
    path = written(tmp_path, IMAGE, channels, "x")
    assert irrun.validate(path).diagnostics == []
    assert len(ov.Core().read_model(path).get_ops()) == 2
