"""How layers become boxes: scopes of names, blocks that repeat, parts of long rows."""

from collections import Counter
from pathlib import Path

import pytest
from ir_builder import Model

from irrun.check.validate import validate
from irrun.ir.graph import Layer
from irrun.tools.inspect.contents import Contents
from irrun.tools.report.blocks import repeats, stretches
from irrun.tools.report.groups import MOST, Group, grouped, walk
from irrun.tools.report.scopes import scope_of

from .models import HOSTILE, deep, hostile

SAMPLES = Path(__file__).parents[3] / "samples"


def contents_of(path: Path) -> Contents:
    report = validate(path)
    assert report.model is not None
    assert report.inference is not None
    return Contents(report.model, report.inference)


def computed(group: Group, contents: Contents) -> list[Group | Layer]:
    return [child for child in group.children if isinstance(child, Group) or child not in contents.stored]


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("__module.model.layers.3.self_attn/aten::add/Add", ("model", "layers", "3", "self_attn")),
        ("__module.fc", ()),
        ("/encoder/layer.0/attention/MatMul", ("encoder", "layer.0", "attention")),
        ("model/conv1/BiasAdd", ("model", "conv1")),
        ("layers.0.weight", ("layers", "0")),
        ("Add.1", ()),
        ("MatMul_12", ()),
        ("", ()),
    ],
)
def test_names_spell_out_scopes(name, scope):
    assert scope_of(name) == scope


def test_every_name_has_few_scopes_of_few_letters():
    for name in HOSTILE.values():
        scope = scope_of(name)
        assert len(scope) <= 24
        assert all(len(part) < 150 for part in scope)


def test_a_layer_without_a_scope_stands_with_those_that_read_it(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (1, 4))
    (shared,) = model.layer("Tanh", [x], [("f32", (1, 4))], name="Tanh_1")
    (own,) = model.layer("Tanh", [shared], [("f32", (1, 4))], name="Tanh_2")
    for head in "ab":
        (y,) = model.layer("Add", [own if head == "a" else shared, shared], [("f32", (1, 4))], name=f"net/{head}/Add")
        (y,) = model.layer("Tanh", [y], [("f32", (1, 4))], name=f"net/{head}/Tanh")
        (y,) = model.layer("Tanh", [y], [("f32", (1, 4))], name=f"Tanh_behind_{head}")
        model.result(y)
    (top,) = grouped(contents_of(model.save(tmp_path)))
    homes = {child.name: group.label for group in walk(top) for child in group.children if isinstance(child, Layer)}
    assert {name: homes[name] for name in ("Tanh_1", "Tanh_2", "Tanh_behind_a", "x")} == {
        "Tanh_1": "net",
        "Tanh_2": "a",
        "Tanh_behind_a": "a",
        "x": "",
    }


def test_a_constant_stands_where_it_is_read_first(tmp_path):
    contents = contents_of(deep(tmp_path, 60, scoped=True))
    (top,) = grouped(contents)
    homes = {child: group for group in walk(top) for child in group.children if isinstance(child, Layer)}
    for layer in contents.stored:
        assert homes[layer] is homes[layer.outputs[0].consumers[0][0]]


def test_the_longest_row_of_equal_blocks_is_found():
    assert repeats("xx" + "abcde" * 4 + "yz", 80) == (2, 5, 4)
    assert repeats("ab" * 10, 80) == (0, 4, 5)
    assert repeats("abcdefghij", 80) is None
    assert repeats("abcdefgh" + "ijklijkl", 80) is None


def test_a_row_is_cut_where_little_passes():
    chain = [(n, n + 1) for n in range(99)]
    around = [(n, end) for end in (30, 70, 99) for n in range(end - 29, end)]
    begins = stretches(100, chain + around)
    assert begins[0] == 0
    assert set(begins[1:]) <= {31, 71}


@pytest.mark.parametrize("scoped", [True, False])
def test_no_box_holds_too_much_and_every_layer_is_in_one(tmp_path, scoped):
    contents = contents_of(deep(tmp_path, 3000, scoped=scoped))
    (top,) = grouped(contents)
    groups = list(walk(top))
    assert all(len(computed(group, contents)) <= MOST for group in groups)
    assert Counter(top.layers()) == Counter(contents.model.graph.layers)
    alike = Counter(group.sign for group in groups)
    assert alike.most_common(1)[0][1] > 20


def test_a_row_in_which_nothing_repeats_has_parts(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (1, 4))
    for number in range(500):
        op = ("Tanh", "Sigmoid", "Sin", "Cos", "Exp")[number * number * 7 % 13 % 5 if number % 9 else number % 5]
        (x,) = model.layer(op, [x], [("f32", (1, 4))])
    model.result(x)
    contents = contents_of(model.save(tmp_path))
    (top,) = grouped(contents)
    assert all(len(computed(group, contents)) <= MOST for group in walk(top))
    assert len(list(top.layers())) == 502


def test_bodies_belong_to_their_layers():
    groups = grouped(contents_of(SAMPLES / "stateful-loop" / "model.xml"))
    assert [(group.kind, group.label) for group in groups] == [("body", ""), ("body", "body")]
    assert groups[1].owner is not None
    assert groups[1].owner.type == "Loop"


def test_hostile_names_are_boxes_like_others(tmp_path):
    contents = contents_of(hostile(tmp_path))
    (top,) = grouped(contents)
    assert len(list(top.layers())) == len(HOSTILE) + 2
