"""What rules have said, remembered: when it holds for another layer, and when not."""

import numpy as np
import pytest

from irrun.check.answers import MAX_COMPARED, Answers
from irrun.spec import INT, Attr, Input, Op, Output, Tensor, Violation, fresh
from irrun.spec.registry import registry


class Asked:
    """Answers to questions about one op, with the number of times that its rule was asked."""

    def __init__(self, rule, *inputs):
        ports = [Input(name, "i64", f"[*{name}]") for name in inputs]
        self.op = Op("Own-1", lambda *arrays, n: arrays[0], ports, [Output("z", "i64", "[*z]")], [Attr("n", INT)])
        self.answers = Answers()
        self.times = 0

        @self.op.shapes
        def counted(node):
            self.times += 1
            return rule(node)

    def __call__(self, *inputs, n=1):
        return self.answers.ask(self.op, inputs, {"n": n}, {"n": str(n)}, {}).outputs


def tensor(*shape, value=None):
    return Tensor("i64", shape, None if value is None else np.array(value))


def test_layers_of_the_same_types_shapes_and_attributes_get_one_answer():
    ask = Asked(lambda node: [Tensor("i64", (node.attrs["n"], *node.shape("x")))], "x")
    assert ask(tensor(2, 3))[0].shape == ask(tensor(2, 3, value=[[1, 2, 3]] * 2))[0].shape == (1, 2, 3)
    assert ask.times == 1
    assert ask(tensor(2, 4))[0].shape == (1, 2, 4)
    assert ask(tensor(2, 3), n=5)[0].shape == (5, 2, 3)
    assert ask.times == 3


def test_a_value_counts_where_the_rule_looks_at_it():
    ask = Asked(lambda node: [Tensor("i64", tuple(node.sizes("shape") or ()))], "x", "shape")
    x, two, three = tensor(6), tensor(2, value=[2, 3]), tensor(2, value=[3, 2])
    assert [ask(x, two)[0].shape, ask(x, three)[0].shape, ask(tensor(6, value=range(6)), two)[0].shape] == [
        (2, 3),
        (3, 2),
        (2, 3),
    ]
    assert ask.times == 2


def test_a_value_that_is_not_known_is_another_one():
    ask = Asked(lambda node: [Tensor("i64", (0 if node.value("x") is None else 1,))], "x")
    assert ask(tensor(1))[0].shape == (0,)
    assert ask(tensor(1, value=[5]))[0].shape == (1,)
    assert ask(tensor(1))[0].shape == (0,)


def test_a_value_at_which_the_rule_looks_only_for_some_other_one_counts_from_then_on():
    def rule(node):
        return [Tensor("i64", (node.size("y") if node.size("x") else 7,))]

    ask = Asked(rule, "x", "y")
    zero, one, two = (tensor(value=number) for number in (0, 1, 2))
    given = [(zero, one), (zero, two), (one, one), (one, two), (zero, one), (two, two)]
    assert [ask(*pair)[0].shape[0] for pair in given] == [7, 7, 1, 2, 7, 2]


def test_long_values_are_looked_at_each_time():
    ask = Asked(lambda node: [Tensor("i64", (int(node.value("x").sum()),))], "x")
    ones = np.ones(MAX_COMPARED + 1, np.int64)
    assert ask(tensor(ones.size, value=ones))[0].shape == (65,)
    assert ask(tensor(ones.size, value=2 * ones))[0].shape == (130,)


def test_an_output_that_is_an_input_is_the_one_of_its_own_layer():
    ask = Asked(lambda node: [node.inputs["x"]], "x")
    first, second = tensor(2, value=[1, 2]), tensor(2, value=[3, 4])
    assert ask(first)[0] is first
    assert ask(second)[0] is second
    assert ask.times == 1


def test_new_unknown_sizes_are_new_in_each_layer():
    ask = Asked(lambda node: [Tensor("i64", (fresh(),))], "x")
    assert ask(tensor(2))[0].shape[0].key != ask(tensor(2))[0].shape[0].key


def test_unknown_sizes_are_alike_where_they_are_the_same_within_the_same_bounds():
    n, m = fresh(), fresh()
    ask = Asked(lambda node: [Tensor("i64", node.shape("x"))], "x")
    for size in (n, m, n.within(2, 8)):
        assert ask(tensor(size, 3))[0].shape[0] is size
    assert ask.times == 3
    assert ask(tensor(n, 3))[0].shape[0] is n
    assert ask.times == 3


def test_a_broken_rule_is_told_each_time():
    relu = registry().ops["ReLU-1"]
    answers = Answers()
    for _ in range(2):
        with pytest.raises(Violation, match="`data` is boolean"):
            answers.ask(relu, [Tensor("boolean", (1,))], {}, {}, {})
