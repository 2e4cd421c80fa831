"""Runtime info of models that were converted for API 1.0, with OpenVINO as witness of what it refuses."""

import openvino as ov
import pytest
from ir_builder import Model

import irrun


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("old_api_map_element_type", value) for value in ("f32", "F32", "i4", "undefined", "FP16", "", " f32")),
        *(("old_api_map_order", value) for value in ("0,2,3,1", " 0 , 1", "", "0,1,", "1x", "x,y", "-1,0", "0,,1")),
        *(
            ("old_api_map_order", f"0,{number},1")
            for number in (2**64 - 1, 2**64, "0" * 30 + "7", f"{2**64 - 1}x", " ")
        ),
    ],
)
def test_values_of_the_old_api_are_those_that_openvino_reads(name, value, tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (2,))
    model.result(model.layer("ReLU", [x], [("f32", (2,))])[0])
    path = model.save(tmp_path)
    info = f'<rt_info><attribute name="{name}" version="0" value="{value}"/></rt_info>'
    text = path.read_text()
    start = text.index("<input>", text.index('type="ReLU"'))
    path.write_text(f"{text[:start]}{info}{text[start:]}")
    found = irrun.validate(path).diagnostics
    try:
        ov.Core().read_model(path)
    except RuntimeError:
        assert [(d.code, d.message) for d in found] == [("E222", f"`{value}` is no value of `{name}`")]
    else:
        assert found == []


@pytest.mark.parametrize("layout", ["[N,C]", "[N,...]", "[N,C,H]", "[N]"])
@pytest.mark.parametrize("layer", ["ReLU", "Abs"])
def test_a_result_takes_over_the_layout_of_what_it_reads(layer, layout, tmp_path):
    model = Model()
    (x,) = model.layer("ReLU", [model.parameter("x", "f32", (2, 3))], [("f32", (2, 3))])
    model.result(model.layer("Abs", [x], [("f32", (2, 3))])[0])
    path = model.save(tmp_path)
    text = path.read_text()
    place = text.index("</port></output>".replace("><", ">\n<"), text.index(f'type="{layer}"'))
    info = f'<rt_info><attribute name="layout" version="0" layout="{layout}"/></rt_info>'
    path.write_text(text[:place] + info + text[place:])
    found = [each.code for each in irrun.validate(path).diagnostics]
    try:
        ov.Core().compile_model(ov.Core().read_model(path), "CPU")
    except RuntimeError:
        assert found == ["E222"]
    else:
        assert found == []
