"""Random models by every engine against the reference; tests/differential/run.py is the long run."""

import pickle
import re

import numpy as np
import pytest

from differential import toys
from differential.builder import Builder
from differential.compare import explained, wrong
from differential.examine import ENGINES, examine
from differential.generate import case
from differential.graph import Case
from differential.minimise import described, minimise
from differential.pool import Died, Process, run
from differential.run import generated, listed
from differential.sealing import weights_sealed
from differential.siblings import siblings
from differential.sizes import unfitting
from irrun.engines.work import Operand, Work
from irrun.engines.work_cache import WorkCache

SEED = 0
MODELS = 500
CHUNK = 25


@pytest.fixture(scope="module")
def process():
    with Process(generated) as process:
        yield process


@pytest.mark.parametrize("first", range(0, MODELS, CHUNK))
def test_engines_agree_with_the_reference_on_random_models(first, process):
    numbers = range(first, first + CHUNK)
    found = [(number, finding) for number in numbers for finding in listed(process((SEED, number, ENGINES)))]
    assert not found, "\n".join(f"{SEED}/{number} {finding.kind}: {finding.detail}" for number, finding in found)


@pytest.mark.parametrize("first", range(0, 100, CHUNK))
def test_engines_agree_on_products_of_one_tensor(first):
    found = [(number, finding) for number in range(first, first + CHUNK) for finding in examine(siblings(SEED, number))]
    assert not found, "\n".join(f"{number} {finding.kind}: {finding.detail}" for number, finding in found)


@pytest.mark.parametrize("first", range(0, 100, CHUNK))
def test_engines_refuse_what_the_reference_refuses(first):
    """Where several layers object, either of them may be named."""
    numbers = range(first, first + CHUNK)
    found = [(number, finding) for number in numbers for finding in examine(unfitting(SEED, number))]
    found = [(number, finding) for number, finding in found if not re.search(r"E\d+ for E\d+$", finding.kind)]
    assert not found, "\n".join(f"{number} {finding.kind}: {finding.detail}" for number, finding in found)


def test_weights_are_sealed_while_works_share_what_is_made():
    weights = np.ones(100, np.float32)
    operand = Operand("f32", (100,), (4,), weights)
    work = Work("Add-1", {}, [operand, operand], [Operand("f32", (100,), (4,))])
    with weights_sealed():
        for look in (lambda value: value + 1, np.isfinite, np.sum):
            with pytest.raises(AssertionError, match="that other works do not share"):
                WorkCache().recall("sum", work, lambda work, look=look: look(work.inputs[0].value))
        assert WorkCache().recall("size", work, lambda work: work.inputs[0].value.size) == 100


def test_a_model_is_the_same_every_time():
    assert pickle.dumps(case(3, 5)) == pickle.dumps(case(3, 5))
    assert len({described(case(3, number)) for number in range(20)}) == 20


def test_a_process_that_dies_is_told_with_what_it_did():
    items = ["a", "die", "b", "crash", "c"]
    answers = dict(run(toys.harmful, items))
    assert answers == {"a": "A", "b": "B", "c": "C", "die": answers["die"], "crash": answers["crash"]}
    assert answers["die"] == Died("die: died with exit status 3")
    assert answers["crash"] == Died("crash: died with exit status -11")


def test_rounding_is_no_difference_and_nan_is_one():
    expected = np.float32([1, 1000, np.nan, np.inf, 0])
    assert wrong(np.float32([1.00001, 1000.01, np.nan, np.inf, 1e-6]), expected).tolist() == [False] * 5
    assert wrong(np.float32([1.1, 1001, 0, -np.inf, np.nan]), expected).tolist() == [True] * 5
    assert wrong(np.int32([1, 2]), np.int32([1, 3])).tolist() == [False, True]


def test_what_an_op_loses_by_cancelling_is_rounding(tmp_path):
    b = Builder(np.random.default_rng(0))
    x = np.float32([-5.5, -6.5, -18])
    b.result(b.one("Gelu-2", b.parameter([x])))
    expected = np.float32([-1e-7, 0, 0])  # half of x times 1 + erf, which is a few units of 2 ** -24
    arguments = Case(b.graph, b.feeds), 0, 0
    assert explained(*arguments, expected + np.float32([6e-8, -3e-8, 0]), expected, tmp_path)
    assert not explained(*arguments, expected + np.float32([1e-3, 0, 0]), expected, tmp_path)


def test_a_finding_is_made_small():
    b = Builder(np.random.default_rng(0))
    x = b.parameter([np.float32([1, -2])])
    y = b.one("Tanh-1", b.one("ReLU-1", b.one("Abs-1", x)))
    b.result(b.one("Sigmoid-1", x))
    b.result(b.one("Exp-1", y))
    small = minimise(Case(b.graph, b.feeds * 3), lambda found: bool(found.graph.of_type("ReLU")))
    assert [layer.type for layer in small.graph.layers] == ["Parameter", "ReLU", "Result"]
    assert len(small.feeds) == 1


def test_arrays_that_share_memory_are_found(monkeypatch):
    import irrun

    b = Builder(np.random.default_rng(0))
    b.result(b.one("ReLU-1", b.parameter([np.float32([1, 2])])))
    monkeypatch.setattr(irrun.GraphExecutor, "run", lambda self, inputs: {"y": inputs["x0"]})
    assert [finding.kind for finding in examine(Case(b.graph, b.feeds), ())] == ["reference: shares memory"]
