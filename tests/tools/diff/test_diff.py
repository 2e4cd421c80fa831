"""What is told of two models: one model written out, and one thing changed in it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from ir_builder import Model, port
from tools.diff.mutation import Ir

import irrun
from irrun.diagnostics import InputError, IRError
from irrun.tools.diff.edits import TOLERANCE
from irrun.tools.printing import print_model

SAMPLE = Path(__file__).parents[3] / "samples" / "stateful-loop" / "model.xml"


def chain(folder, name, change=lambda step, x, model: x, scale=2.0, shape=(1, 4), weights=None, **clamp):
    """Parameter x -> Multiply by a scale -> Clamp -> MatMul -> Result, saved; `change` may add to each step."""
    (folder / name).mkdir()
    model = Model()
    x = model.parameter("x", "f32", shape)
    factor = model.constant(np.float32([scale]), "scale")
    (product,) = model.layer("Multiply", [x, factor], [("f32", shape)], name="product", auto_broadcast="numpy")
    product = change("product", product, model)
    data = {"min": "0", "max": "6"} | clamp
    (clamped,) = model.layer("Clamp", [product], [("f32", shape)], name="clamp", **data)
    clamped = change("clamp", clamped, model)
    matrix = np.arange(32, dtype=np.float32).reshape(4, 8) if weights is None else weights
    filters = model.constant(matrix, "weights")
    data = {"transpose_a": "false", "transpose_b": "false"}
    (y,) = model.layer("MatMul", [clamped, filters], [("f32", (shape[0], 8))], name="y", names=["out"], **data)
    model.result(change("y", y, model))
    return model.save(folder / name)


def told(difference):
    """All edits but new names: the Results of these models are counted out."""
    return [(edit.kind, edit.message) for edit in difference.edits if edit.kind != "renamed"]


def test_a_model_is_the_same_as_itself(tmp_path):
    path = chain(tmp_path, "a")
    difference = irrun.diff(path, path)
    assert difference.equal
    assert not difference
    assert difference.render().splitlines() == [f"{path} -> {path}", "7 layers -> 7, 7 in both", "the same model"]


def test_an_attribute_has_its_old_and_its_new_value(tmp_path):
    difference = irrun.diff(chain(tmp_path, "a"), chain(tmp_path, "b", max="8"))
    assert told(difference) == [("attribute", "`max` of Clamp 6 -> 8")]
    assert difference.edits[0].details == {"attribute": "max", "old": 6.0, "new": 8.0}
    assert difference.edits[0].before[0].name == "clamp"


def test_a_default_that_is_written_out_is_none(tmp_path):
    def softmax(**data):
        def change(step, x, model):
            return model.layer("SoftMax", [x], [("f32", (1, 4))], name="soft", **data)[0] if step == "clamp" else x

        return change

    before = chain(tmp_path, "a", softmax())
    assert irrun.diff(before, chain(tmp_path, "b", softmax(axis="1"))).equal
    assert told(irrun.diff(before, chain(tmp_path, "c", softmax(axis="0")))) == [
        ("attribute", "`axis` of SoftMax 1 -> 0")
    ]


def test_floats_are_compared_as_f32_has_them(tmp_path):
    before = chain(tmp_path, "a", min="1e-05")
    assert irrun.diff(before, chain(tmp_path, "b", min="9.9999997473787516e-06")).equal
    assert not irrun.diff(before, chain(tmp_path, "c", min="1.00001e-05")).equal


def test_a_small_constant_is_written_out(tmp_path):
    difference = irrun.diff(chain(tmp_path, "a"), chain(tmp_path, "b", scale=3.0))
    assert told(difference) == [("constant", "[2] -> [3]")]
    assert difference.edits[0].role == "`b` of Multiply"
    assert difference.edits[0].place == "`product`"


def test_a_large_constant_is_told_by_its_deltas(tmp_path):
    weights = np.arange(32, dtype=np.float32).reshape(4, 8)
    weights[1, 2] += 0.5
    weights[3, 0] -= 2
    difference = irrun.diff(chain(tmp_path, "a"), chain(tmp_path, "b", weights=weights))
    assert told(difference) == [("constant", "other values of f32")]
    details = difference.edits[0].details
    assert (details["elements"], details["differing"], details["max_delta"]) == (32, 2, 2.0)
    assert (details["at"], details["old_value"], details["new_value"]) == (24, 24.0, 22.0)
    assert details["mean_delta"] == 2.5 / 32
    assert "2 of 32 values differ, by 2 at most (24 -> 22), 0.0781 on average" in difference.render()


@pytest.mark.parametrize(
    ("values", "step", "same"),
    [
        ("exact", 1e-6, False),
        ("close", 1e-6, True),
        ("close", 0.5, False),
        ("stats", 0.01, True),
        ("stats", 5.0, False),
        ("stats", np.nan, False),
    ],
)
def test_values_are_compared_as_closely_as_one_likes(values, step, same, tmp_path):
    weights = np.arange(32, dtype=np.float32).reshape(4, 8)
    other = weights.copy()
    other[0, 0] += step
    paths = chain(tmp_path, "a", weights=weights), chain(tmp_path, "b", weights=other)
    assert irrun.diff(*paths, values=values).equal is same


def test_nan_in_both_is_equal_and_in_one_is_infinitely_far(tmp_path):
    weights = np.full((4, 8), np.nan, np.float32)
    other = weights.copy()
    other[2, 5] = 1
    before = chain(tmp_path, "a", weights=weights)
    assert irrun.diff(before, chain(tmp_path, "b", weights=weights.copy())).equal
    details = irrun.diff(before, chain(tmp_path, "c", weights=other)).edits[0].details
    assert (details["differing"], details["max_delta"], details["at"]) == (1, math.inf, 21)
    assert math.isnan(details["old_value"])


def test_a_weight_stored_in_fewer_bits_is_one_edit(tmp_path):
    def half(folder, name, dtype):
        (folder / name).mkdir()
        model = Model()
        x = model.parameter("x", "f32", (1, 4))
        stored = model.constant((np.arange(32) / 10).reshape(4, 8).astype(dtype), "weights")
        if dtype is np.float16:
            (stored,) = model.layer("Convert", [stored], [("f32", (4, 8))], name="back", destination_type="f32")
        data = {"transpose_a": "false", "transpose_b": "false"}
        model.result(model.layer("MatMul", [x, stored], [("f32", (1, 8))], name="y", **data)[0])
        return model.save(folder / name)

    paths = half(tmp_path, "a", np.float32), half(tmp_path, "b", np.float16)
    there, back = irrun.diff(*paths), irrun.diff(*reversed(paths))
    assert told(there) == [("retyped", "f32 -> f16, with Convert")]
    assert there.edits[0].role == "`B` of MatMul"
    assert there.edits[0].details["max_delta"] < 1e-3
    assert told(back) == [("retyped", "f16 -> f32, without Convert")]
    assert irrun.diff(*paths, ignore=["precision"]).equal


def added(type, name, step="product", **data):
    def change(at, x, model):
        return model.layer(type, [x], [("f32", x[3])], name=name, **data)[0] if at == step else x

    return change


def test_a_layer_between_two_others_is_inserted_and_the_other_way_round_removed(tmp_path):
    paths = chain(tmp_path, "a"), chain(tmp_path, "b", added("Sigmoid", "bend"))
    there, back = irrun.diff(*paths), irrun.diff(*reversed(paths))
    assert told(there) == [("inserted", "Sigmoid")]
    assert there.edits[0].place == "behind `product` before `clamp`"
    assert there.edits[0].after[0].name == "bend"
    assert told(back) == [("removed", "Sigmoid")]
    assert back.edits[0].before[0].name == "bend"


def test_a_layer_of_another_type_replaces_one(tmp_path):
    paths = chain(tmp_path, "a", added("Sigmoid", "bend")), chain(tmp_path, "b", added("Tanh", "bend"))
    assert told(irrun.diff(*paths)) == [("replaced", "Sigmoid -> Tanh")]


def test_a_newer_version_of_an_op_is_one_edit(tmp_path):
    def soft(version, axis):
        return lambda at, x, model: (
            model.layer("SoftMax", [x], [("f32", (1, 4))], version, "soft", axis=axis)[0] if at == "clamp" else x
        )

    paths = chain(tmp_path, "a", soft("opset1", "1")), chain(tmp_path, "b", soft("opset8", "-1"))
    assert told(irrun.diff(*paths)) == [("opset", "SoftMax-1 -> SoftMax-8, `axis` 1 -> -1")]


def test_the_same_op_under_another_opset_is_the_same(tmp_path):
    def bend(version):
        return lambda at, x, model: (
            model.layer("Sigmoid", [x], [("f32", (1, 4))], version, "bend")[0] if at == "clamp" else x
        )

    assert irrun.diff(chain(tmp_path, "a", bend("opset1")), chain(tmp_path, "b", bend("opset8"))).equal


def test_what_follows_from_another_shape_is_only_counted(tmp_path):
    difference = irrun.diff(chain(tmp_path, "a"), chain(tmp_path, "b", shape=(2, 4)))
    assert told(difference) == [("reshaped", "input [1,4] -> [2,4]")]
    assert difference.followed == 3
    assert irrun.diff(*difference.paths, ignore=["shapes"]).equal


@pytest.mark.parametrize(("dims", "same"), [((-1, 8), True), ((2, 8), False)])
def test_sizes_that_one_writer_leaves_open_are_the_same(dims, same, tmp_path):
    path = chain(tmp_path, "a")
    (tmp_path / "b").mkdir()
    other = tmp_path / "b" / "model.xml"
    text = path.read_text()
    declared = port(2, "f32", (1, 8), "out")
    assert declared in text
    other.write_text(text.replace(declared, port(2, "f32", dims, "out")))
    other.with_suffix(".bin").write_bytes(path.with_suffix(".bin").read_bytes())
    for paths in ((path, other), (other, path)):
        assert irrun.diff(*paths).equal == same


def two_sided(folder, name, swap=False, type="Subtract", order=("p", "q")):
    (folder / name).mkdir()
    model = Model()
    inputs = {key: model.parameter(key, "f32", (3,)) for key in order}
    sides = [inputs["p"], inputs["q"]]
    sides = sides[::-1] if swap else sides
    (y,) = model.layer(type, sides, [("f32", (3,))], name="y", auto_broadcast="numpy")
    model.result(y)
    return model.save(folder / name)


def test_swapped_inputs_are_rewired_unless_their_order_does_not_matter(tmp_path):
    difference = irrun.diff(two_sided(tmp_path, "a"), two_sided(tmp_path, "b", swap=True))
    assert {edit.kind for edit in difference.edits} == {"rewired"}
    assert [edit.place for edit in difference.edits if edit.kind == "rewired"] == ["`p` -> `q`", "`q` -> `p`"]
    assert irrun.diff(two_sided(tmp_path, "c", type="Add"), two_sided(tmp_path, "d", swap=True, type="Add")).equal


def test_inputs_in_another_order_are_told_and_can_be_ignored(tmp_path):
    paths = two_sided(tmp_path, "a"), two_sided(tmp_path, "b", order=("q", "p"))
    assert told(irrun.diff(*paths)) == [("order", "inputs come in another order: 1, 0")]
    assert irrun.diff(*paths, ignore=["order"]).equal


def test_other_names_inside_make_no_other_model_but_those_of_inputs_do(tmp_path):
    path = chain(tmp_path, "a")
    text = path.read_text()
    (tmp_path / "b").mkdir()
    other = tmp_path / "b" / "model.xml"
    other.with_suffix(".bin").write_bytes(path.with_suffix(".bin").read_bytes())
    other.write_text(text.replace('name="clamp"', 'name="limit"'))
    difference = irrun.diff(path, other)
    assert difference.equal
    assert [(edit.kind, edit.after[0].name) for edit in difference.edits] == [("renamed", "limit")]
    assert "the same model, but for names inside it" in difference.render()
    other.write_text(text.replace('names="x"', 'names="image"').replace('names="out"', 'names="logits"'))
    difference = irrun.diff(path, other)
    assert told(difference) == [("input", "names `x` -> `image`"), ("output", "names `out` -> `logits`")]
    assert not difference.equal
    assert irrun.diff(path, other, ignore=["names"]).edits == ()


def test_runtime_information_is_told_of_layers_and_of_the_model(tmp_path):
    path, other = chain(tmp_path, "a"), chain(tmp_path, "b")
    info = '<rt_info><attribute name="precise" version="0"/></rt_info>'
    text = other.read_text().replace("</net>", '<rt_info><nncf><version value="3"/></nncf></rt_info></net>')
    text = text.replace('<data min="0" max="6"/>', f'<data min="0" max="6"/>{info}')
    other.write_text(text)
    difference = irrun.diff(path, other)
    assert told(difference) == [
        ("rt_info", "`precise` is new"),
        ("rt_info", "`nncf` is new: version `3`"),
    ]
    assert difference.edits[0].place == "version `0`"
    assert not difference.equal
    assert irrun.diff(path, other, ignore=["rt_info"]).edits == ()


def blocks(folder, name, count, upper, extra=False):
    (folder / name).mkdir()
    model = Model()
    x = model.parameter("x", "f32", (1, 4))
    for number in range(count):
        factor = model.constant(np.float32(number + 2), f"layers.{number}.factor")
        (x,) = model.layer(
            "Multiply", [x, factor], [("f32", (1, 4))], name=f"layers.{number}.scale", auto_broadcast="numpy"
        )
        (x,) = model.layer("Clamp", [x], [("f32", (1, 4))], name=f"layers.{number}.clamp", min="0", max=upper)
        if extra:
            (x,) = model.layer("Sigmoid", [x], [("f32", (1, 4))], name=f"layers.{number}.bend")
    model.result(x)
    return model.save(folder / name)


def test_what_happened_in_many_blocks_is_told_once(tmp_path):
    difference = irrun.diff(blocks(tmp_path, "a", 24, "6"), blocks(tmp_path, "b", 24, "8", extra=True))
    assert len(told(difference)) == 48
    assert difference.render().splitlines()[1:] == [
        "74 layers -> 98, 74 in both",
        "24 attribute, 24 inserted, 1 renamed",
        "",
        "attribute  x 24 `max` of Clamp 6 -> 8",
        "           `layers.{0..23}.clamp`",
        "",
        "inserted   x 24 Sigmoid",
        "           x 23 into `a` of Multiply: `layers.{1..23}.scale`",
        "           into `input` of Result: 96 `layers.23.bend` (Sigmoid); behind `layers.23.clamp` before `Result_73`",
        "",
        "renamed    1 layer",
        "           `Result_73` -> `Result_97`",
    ]


def test_layers_that_nothing_reads_are_told_by_their_own_names(tmp_path):
    def unread(at, x, model):
        model.layer("Sigmoid", [x], [("f32", x[3])], name=f"unread {at}")
        return x

    difference = irrun.diff(chain(tmp_path, "a"), chain(tmp_path, "b", unread))
    assert "           read by no other layer: `unread clamp`, `unread product`, `unread y`" in [
        line.replace("x 3 ", "") for line in difference.render().splitlines()
    ]


def test_what_differs_in_a_body_is_told_with_the_way_there(tmp_path):
    ir = Ir.read(SAMPLE)
    ir.root.find(".//body//layer[@type='Add']").find("data").set("auto_broadcast", "none")
    difference = irrun.diff(SAMPLE, ir.save(tmp_path))
    (edit,) = difference.edits
    assert (edit.kind, edit.message) == ("attribute", "`auto_broadcast` of Add numpy -> none")
    assert edit.path[1::2] == ("body",)
    assert f"in the body of `{edit.path[0]}`" in difference.render()


def test_int4_weights_are_compared_by_their_codes(tmp_path):
    def packed(name, content):
        (tmp_path / name).mkdir()
        model = Model()
        x = model.parameter("x", "f32", (6,))
        codes = model.constant(np.frombuffer(content, np.uint8), "codes")
        (wide,) = model.layer("Convert", [codes], [("f32", (6,))], name="wide", destination_type="f32")
        model.result(model.layer("Add", [x, wide], [("f32", (6,))], name="y", auto_broadcast="numpy")[0])
        path = model.save(tmp_path / name)
        text = path.read_text().replace('element_type="u8" shape="3"', 'element_type="u4" shape="6"')
        path.write_text(text.replace('precision="U8"><dim>3</dim>', 'precision="U4"><dim>6</dim>'))
        return path

    difference = irrun.diff(packed("a", b"\x21\x43\x65"), packed("b", b"\x21\x4f\x65"))
    assert told(difference) == [("constant", "[1,2,3,4,5,6] -> [1,2,15,4,5,6]")]


def test_weights_that_are_not_there_can_be_ignored(tmp_path):
    paths = chain(tmp_path, "a"), chain(tmp_path, "b", scale=3.0, max="8")
    for path in paths:
        path.with_suffix(".bin").unlink()
    with pytest.raises(IRError, match="there is no"):
        irrun.diff(*paths)
    assert told(irrun.diff(*paths, ignore=["weights"])) == [("attribute", "`max` of Clamp 6 -> 8")]


def test_without_weights_it_does_not_matter_whether_they_are_there(tmp_path):
    paths = chain(tmp_path, "a"), chain(tmp_path, "b", scale=3.0)
    assert not irrun.diff(*paths).equal
    with_weights = irrun.diff(*paths, ignore=["weights"])
    for path in paths:
        path.with_suffix(".bin").unlink()
        assert irrun.diff(*paths, ignore=["weights"]) == with_weights
    assert with_weights.equal


def test_equal_bytes_of_one_file_are_not_read(tmp_path):
    path = chain(tmp_path, "a")
    with path.with_suffix(".bin").open("r+b") as file:
        file.truncate(1 << 31)  # of zeros that take no room
    text = path.read_text().replace('shape="4,8"', 'shape="4,134217728"').replace('size="128"', f'size="{1 << 31}"')
    path.write_text(text.replace('offset="4"', 'offset="0"').replace("<dim>8</dim>", "<dim>134217728</dim>"))
    assert irrun.diff(path, path).equal


def test_constants_that_only_memory_has_are_read_as_those_of_files(tmp_path):
    weights = np.arange(64, dtype=np.float32).reshape(8, 8)

    def built(factor):
        with irrun.build() as g:
            g.Result(g.MatMul(g.Parameter("f32[?, 8]", name="x"), weights * np.float32(factor)))
        return g.model

    irrun.write_model(built(1), tmp_path / "model.xml")
    assert irrun.diff(built(1), tmp_path / "model.xml").equal
    assert not irrun.diff(built(1), built(2)).equal
    assert print_model(built(1)) == print_model(tmp_path / "model.xml")


def test_unknown_aspects_are_refused(tmp_path):
    path = chain(tmp_path, "a")
    with pytest.raises(ValueError, match="`colours` cannot be ignored"):
        irrun.diff(path, path, ignore=["colours"])
    with pytest.raises(ValueError, match="not `roughly`"):
        irrun.diff(path, path, values="roughly")


def test_the_first_tensor_that_differs_is_named(tmp_path):
    paths = chain(tmp_path, "a"), chain(tmp_path, "b", added("Sigmoid", "bend"))
    x = np.float32([[1, 2, 3, 4]])
    divergence = irrun.diff(*paths, inputs={"x": x}).divergence
    assert (divergence.tensor, divergence.other, divergence.compared) == ("clamp:0", "clamp:0", 2)
    assert divergence.sentence.startswith("4 of 4 values differ, by 5 at most at [0, 2] (6 -> 0.997527)")
    assert irrun.diff(paths[0], paths[0], inputs={"x": x}).divergence.tensor == ""
    assert irrun.diff(*paths, seed=1).divergence.tensor == "clamp:0"
    with pytest.raises(InputError):
        irrun.diff(*paths, inputs={})


def test_a_difference_that_no_value_shows_is_said_to_be_none(tmp_path):
    divergence = irrun.diff(chain(tmp_path, "a"), chain(tmp_path, "b", max="8"), inputs={"x": np.ones((1, 4), "f4")})
    assert str(divergence.divergence) == f"all 3 tensors that both have are equal, floats within {TOLERANCE}"
    assert not divergence.equal


def quantized(folder, name, codes):
    """A product with weights, stored as f32 or as codes of i8 with a scale."""
    (folder / name).mkdir()
    model = Model()
    x = model.parameter("x", "f32", (1, 4))
    weights = model.constant(np.arange(-16, 16, dtype=np.int8 if codes else np.float32).reshape(4, 8), "weights")
    if codes:
        (weights,) = model.layer("Convert", [weights], [("f32", (4, 8))], name="wide", destination_type="f32")
        scale = model.constant(np.float32([1.5]), "step")
        (weights,) = model.layer("Multiply", [weights, scale], [("f32", (4, 8))], name="back", auto_broadcast="numpy")
    data = {"transpose_a": "false", "transpose_b": "false"}
    model.result(model.layer("MatMul", [x, weights], [("f32", (1, 8))], name="y", **data)[0])
    return model.save(folder / name)


def test_compressed_weights_are_computed_and_compared(tmp_path):
    difference = irrun.diff(quantized(tmp_path, "a", False), quantized(tmp_path, "b", True))
    assert told(difference) == [("replaced", "f32 -> i8 with Convert + Multiply")]
    (edit,) = [edit for edit in difference.edits if edit.kind == "replaced"]
    assert (edit.role, edit.place) == ("`B` of MatMul", "`y`")
    assert (edit.details["differing"], edit.details["max_delta"], edit.details["elements"]) == (31, 8.0, 32)


def test_an_input_that_becomes_a_variable_is_told_as_both(tmp_path):
    def stateful(name, kept):
        (tmp_path / name).mkdir()
        model = Model()
        x = model.parameter("x", "f32", (1, 4))
        if kept:
            zeros = model.constant(np.zeros((1, 4), np.float32), "zeros")
            data = {"variable_id": "past", "variable_type": "f32", "variable_shape": "1,4"}
            (past,) = model.layer("ReadValue", [zeros], [("f32", (1, 4))], "opset6", "read", **data)
        else:
            past = model.parameter("past", "f32", (1, 4))
        (y,) = model.layer("Add", [x, past], [("f32", (1, 4))], name="y", auto_broadcast="numpy")
        if kept:
            model.layer("Assign", [y], [], "opset6", "write", variable_id="past")
        model.result(y)
        return model.save(tmp_path / name)

    found = told(irrun.diff(stateful("a", False), stateful("b", True)))
    assert ("input", "f32[1,4] is gone") in found
    assert ("variable", "a variable is new") in found
    assert ("replaced", "Parameter -> ReadValue") in found


def test_models_that_have_nothing_in_common_are_told_in_bounded_length(tmp_path):
    before = chain(tmp_path, "a")
    after = two_sided(tmp_path, "b")
    difference = irrun.diff(before, after)
    assert not difference.equal
    assert len(difference.render().splitlines()) < 60
