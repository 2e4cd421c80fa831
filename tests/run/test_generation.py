"""Generation: the tokens of small decoders, with a cache in variables or as inputs, and what cannot be generated."""

import numpy as np
import pytest
from decoders import decoder, expected
from ir_builder import Model

import irrun
from irrun.run.generation import generate

WRITTEN_OUT = [8, 8, 6]
"""What follows 3, 1, 4."""

CACHES = pytest.mark.parametrize("explicit", [False, True], ids=["variables", "explicit"])


@pytest.fixture
def executor(tmp_path):
    return irrun.GraphExecutor(decoder(tmp_path))


def run(executor, *prompts, **options):
    return [list(row) for row in zip(*generate(executor, executor.session(), prompts, **options), strict=True)]


def test_the_slow_loop_gives_what_is_written_here():
    assert expected([3, 1, 4], 3) == WRITTEN_OUT


@pytest.mark.parametrize("engine", ["auto", "numpy", "reference", "check"])
@CACHES
def test_tokens_are_those_of_the_whole_text_computed_anew(tmp_path, explicit, engine):
    executor = irrun.GraphExecutor(decoder(tmp_path, explicit), engine=engine)
    for prompt in ([3, 1, 4], [10], [2, 7, 1, 8, 2, 8]):
        assert list(executor.session().generate(prompt, max_tokens=20)) == expected(prompt, 20)


@CACHES
def test_rows_of_different_lengths_are_padded_on_the_left(tmp_path, explicit):
    executor = irrun.GraphExecutor(decoder(tmp_path, explicit))
    prompts = [3, 1, 4], [5, 9, 2, 6, 5], [8]
    assert run(executor, *prompts, max_tokens=12) == [expected(list(prompt), 12) for prompt in prompts]


@pytest.mark.parametrize(
    ("past", "present"),
    [
        ("past_key_values.0.{}", "present_key_values.0.{}"),
        ("past_key_values.0.decoder.{}", "present.0.decoder.{}"),
        ("past_{}_0", "present_{}_0"),
        ("cache_params.past.{}.0", "cache_params.present.{}.0"),
    ],
)
def test_caches_go_by_the_names_that_exporters_give_them(tmp_path, past, present):
    executor = irrun.GraphExecutor(decoder(tmp_path, explicit=True, past=past, present=present))
    assert list(executor.session().generate([3, 1, 4], max_tokens=8)) == expected([3, 1, 4], 8)


def test_inputs_of_a_decoder_may_be_called_so(tmp_path):
    executor = irrun.GraphExecutor(decoder(tmp_path, prefix="decoder_", ids="i32"))
    assert list(executor.session().generate([3, 1, 4], max_tokens=8)) == expected([3, 1, 4], 8)


def test_each_generation_starts_from_a_reset_state_and_leaves_its_own(executor):
    session = executor.session()
    abandoned = session.generate([9, 9, 9])
    next(abandoned)
    assert list(session.generate([3, 1, 4], max_tokens=3)) == WRITTEN_OUT
    assert session.variables["key"].shape == (1, 5, 6)  # all but the token that came last
    assert list(session.generate([3, 1, 4], max_tokens=3)) == WRITTEN_OUT


@CACHES
def test_a_session_whose_state_is_of_something_else_by_now_goes_on_with_nothing(tmp_path, explicit):
    session = irrun.GraphExecutor(decoder(tmp_path, explicit)).session()
    first, second = (session.generate(prompt, max_tokens=4) for prompt in ([3, 1, 4], [10]))
    tokens = [next(first)]
    assert list(second) == expected([10], 4)
    if explicit:
        assert tokens + list(first) == expected([3, 1, 4], 4)
    else:
        with pytest.raises(RuntimeError, match="give each generation a session of its own"):
            next(first)


def test_a_token_is_computed_when_it_is_asked_for(executor):
    session = executor.session()
    tokens = session.generate([3, 1, 4])
    assert session.variables == {}
    next(tokens)
    assert session.variables["key"].shape == (1, 3, 6)


def test_a_generation_ends_with_an_eos_token(executor):
    assert list(executor.session().generate([3, 1, 4], eos_ids=[7, 6])) == [8, 8, 6]


def test_a_row_that_has_ended_repeats_its_token_until_all_have(executor):
    assert run(executor, [3, 1, 4], [8], eos_ids=[6]) == [[8, 8, 6, 6, 6], [2, 5, 8, 8, 6]]


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ([], "the prompt is empty: there is nothing to go on from"),
        ([3, 11], "token 1 of the prompt is 11, outside [0, 11), the vocabulary of the model"),
        ([-1], "token 0 of the prompt is -1, outside [0, 11), the vocabulary of the model"),
        ([1.5], "token 0 of the prompt is 1.5, which is no integer"),
        (["a"], "token 0 of the prompt is 'a', which is no integer"),
    ],
)
def test_a_prompt_that_cannot_be_is_refused_before_anything_runs(executor, prompt, message):
    with pytest.raises(irrun.InputError) as refused:
        executor.session().generate(prompt)
    assert str(refused.value) == message


def test_no_prompt_and_no_tokens_are_refused(executor):
    with pytest.raises(irrun.InputError, match="there is no prompt"):
        run(executor)
    with pytest.raises(irrun.InputError, match="max_tokens is 0, but must be 1 or more"):
        executor.session().generate([1], max_tokens=0)


def test_what_is_made_of_the_tokens_cannot_be_given(executor):
    with pytest.raises(irrun.InputError, match="input `attention_mask` is made of the tokens, and cannot be given"):
        executor.session().generate([1], inputs={"attention_mask": np.ones((1, 1), np.int64)})


def test_an_input_given_besides_is_the_same_in_every_step(tmp_path):
    m = Model()
    ids, mask = m.parameter("input_ids", "i64", ("?", "?")), m.parameter("past_bias", "f32", (4,))
    cache = m.parameter("past_sum", "f32", ("?", 4))
    (rows,) = m.layer(
        "Gather",
        [m.constant(np.eye(4, dtype=np.float32)), ids, m.constant(np.int64(0))],
        [("f32", (-1, -1, 4))],
        "opset8",
    )
    (new,) = m.layer("ReduceSum", [rows, m.constant(np.int64([1]))], [("f32", (-1, 4))], keep_dims="false")
    (total,) = m.layer("Add", [cache, new], [("f32", (-1, 4))], names=["present_sum"], auto_broadcast="numpy")
    (scaled,) = m.layer("Add", [total, mask], [("f32", (-1, 4))], auto_broadcast="numpy")
    (logits,) = m.layer("Unsqueeze", [scaled, m.constant(np.int64([1]))], [("f32", (-1, 1, 4))], names=["logits"])
    m.result(total)
    m.result(logits)
    executor = irrun.GraphExecutor(m.save(tmp_path))
    with pytest.raises(irrun.IRError, match=r"`past_bias` seems to be a cache, but there is no output `present_bias`"):
        executor.session().generate([0])
    bias = {"past_bias": np.float32([0, 0, 2.5, 0])}  # it is added to how often each token came
    assert list(executor.session().generate([0], max_tokens=3, inputs=bias)) == [2, 2, 2]
    assert list(executor.session().generate([0, 0, 0], max_tokens=3, inputs=bias)) == [0, 0, 0]
    with pytest.raises(irrun.InputError, match="the prompts differ in length, but the model has no `attention_mask`"):
        run(executor, [0], [0, 0], inputs=bias)


def test_a_text_that_is_longer_than_the_positions_of_the_model_is_refused(executor):
    assert list(executor.session().generate([1] * 30, max_tokens=11)) == expected([1] * 30, 11)
    with pytest.raises(irrun.InputError) as refused:
        executor.session().generate([1] * 30, max_tokens=12)
    assert str(refused.value) == "30 tokens of the prompt and 12 more take 41 positions, but the model has 40"


def summing(folder, inputs=("input_ids",), shape=("?", "?"), flat=False, start=0.0):
    """The sum of inputs and of a variable that keeps `start`, as logits [..., 1], or as they are if `flat`."""
    m = Model()
    dims = tuple(-1 if size == "?" else size for size in shape)
    variable = {"variable_id": "v", "variable_type": "f32", "variable_shape": ""}
    (total,) = m.layer("ReadValue", [m.constant(np.float32(start))], [("f32", ())], "opset6", **variable)
    m.layer("Assign", [total], [], "opset6", variable_id="v")
    for name in inputs:
        (total,) = m.layer("Add", [total, m.parameter(name, "f32", shape)], [("f32", dims)], auto_broadcast="numpy")
    if flat:
        m.result(m.layer("Abs", [total], [("f32", dims)], names=["logits"])[0])
    else:
        axes = m.constant(np.int64([len(shape)]))
        m.result(m.layer("Unsqueeze", [total, axes], [("f32", (*dims, 1))], names=["logits"])[0])
    return irrun.GraphExecutor(m.save(folder))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"inputs": ("x", "y")},
            "not a language model: there is no `input_ids` among its inputs, which are `x`, `y`",
        ),
        ({"shape": (3, "?", "?")}, "`input_ids` has shape [3, ?, ?], expected a rank of 2"),
        ({"flat": True}, "the output `logits` has shape [?, ?], expected [batch, length, vocabulary]"),
    ],
)
def test_e605_a_model_that_is_no_language_model_is_told_what_is_missing(tmp_path, options, message):
    executor = summing(tmp_path, **options)
    with pytest.raises(irrun.IRError) as refused:
        executor.session().generate([0])
    (found,) = refused.value.diagnostics
    assert (found.code, found.message) == ("E605", message)
    assert found.file == str(tmp_path / "model.xml")


def test_e605_a_model_without_a_cache(tmp_path):
    m = Model()
    ids = m.parameter("input_ids", "i64", ("?", "?"))
    m.result(ids)
    executor = irrun.GraphExecutor(m.save(tmp_path))
    with pytest.raises(irrun.IRError, match="a model without a cache: it has neither variables nor inputs"):
        executor.session().generate([0])


def test_e605_several_outputs_none_of_which_is_called_logits(tmp_path):
    m = Model()
    ids, cache = m.parameter("input_ids", "i64", ("?", "?")), m.parameter("past", "f32", ("?", "?"))
    m.result(m.layer("Abs", [cache], [("f32", (-1, -1))], names=["present"])[0])
    m.result(m.layer("Abs", [ids], [("i64", (-1, -1))], names=["one"])[0])
    m.result(m.layer("Abs", [ids], [("i64", (-1, -1))], names=["other"])[0])
    executor = irrun.GraphExecutor(m.save(tmp_path))
    with pytest.raises(irrun.IRError, match="there is no `logits` among the outputs, which are `one`, `other`"):
        executor.session().generate([0])


def test_e606_logits_that_are_not_numbers_end_the_generation(tmp_path):
    executor = summing(tmp_path, start=np.nan)
    with pytest.raises(irrun.ExecutionError) as stopped:
        list(executor.session().generate([0]))
    (found,) = stopped.value.diagnostics
    assert (found.code, found.message) == ("E606", "the logit of token 0 is NaN after 1 tokens, in row 0")


def test_an_id_has_to_fit_where_the_vocabulary_is_unknown(tmp_path):
    executor = summing(tmp_path)
    assert list(executor.session().generate([2**31 - 128], max_tokens=2)) == [0, 0]
    with pytest.raises(irrun.InputError, match=r"token 0 of the prompt is 2147483648, outside \[0, 2147483648\)$"):
        executor.session().generate([2**31])
