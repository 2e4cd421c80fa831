"""Decoders: what a step's inputs are made of, for caches that grow and for states that do not."""

import numpy as np
import pytest
from decoders import decoder
from ir_builder import Model

import irrun
from irrun.run.decoder import read_decoder
from irrun.run.generation import generate

MASK = np.array([[0, 1, 1, 1, 1], [1, 1, 1, 1, 1]])


def read(path, given=()):
    return read_decoder(irrun.GraphExecutor(path), given)


def plain(folder, ids="i64", cache="f32", shape=("?", "?", 6), logits="f32"):
    """Tokens, a cache that comes back as it is, and `scores` as logits."""
    m = Model()
    m.result(m.parameter("input_ids", ids, ("?", "?")))
    past, scores = m.parameter("past_0", cache, shape), m.parameter("scores", logits, "...")
    m.result(m.layer("Tile", [past, m.constant(np.int64([1]))], [past[2:]], names=["present_0"])[0])
    m.result(m.layer("Tile", [scores, m.constant(np.int64([1]))], [(logits, ())], names=["logits"])[0])
    return m.save(folder)


def state_space(folder, states=("conv", "ssm"), explicit=True):
    """Tokens, their mask and `cache_position`, with a state [batch, 2, 4] of each name, as variable or as input."""
    m = Model()
    ids, mask = m.parameter("input_ids", "i64", ("?", "?")), m.parameter("attention_mask", "i64", ("?", "?"))
    places = m.parameter("cache_position", "i64", ("?",))
    for name in states:
        if explicit:
            state = m.parameter(f"cache_params.past.{name}.0", "f32", ("?", 2, 4))
            m.result(m.layer("Abs", [state], [("f32", (-1, 2, 4))], names=[f"cache_params.present.{name}.0"])[0])
            continue
        variable = {"variable_id": f"past.{name}.0present.{name}.0"}
        start = m.constant(np.zeros((1, 2, 4), np.float32))
        shape = {"variable_type": "f32", "variable_shape": "?,2,4"}
        (state,) = m.layer("ReadValue", [start], [("f32", (-1, 2, 4))], "opset6", **variable, **shape)
        m.layer("Assign", [state], [], "opset6", **variable)
    (total,) = m.layer("Add", [ids, mask], [("i64", (-1, -1))], auto_broadcast="numpy")
    (total,) = m.layer("Add", [total, places], [("i64", (-1, -1))], auto_broadcast="numpy")
    axis = m.constant(np.int64([2]))
    m.result(m.layer("Unsqueeze", [total, axis], [("i64", (-1, -1, 1))], names=["logits"])[0])
    return m.save(folder)


def test_a_growing_cache_takes_the_mask_of_the_whole_text(tmp_path):
    found = read(decoder(tmp_path))
    whole = found.step(np.ones((2, 5), np.int64), MASK)
    np.testing.assert_array_equal(whole["attention_mask"], MASK)
    np.testing.assert_array_equal(whole["position_ids"], [[0, 0, 1, 2, 3], [0, 1, 2, 3, 4]])
    assert whole["beam_idx"].tolist() == [0, 1]
    assert whole["beam_idx"].dtype == np.int32
    next_one = found.step(np.ones((2, 1), np.int64), MASK)
    np.testing.assert_array_equal(next_one["attention_mask"], MASK)
    np.testing.assert_array_equal(next_one["position_ids"], [[3], [4]])


def test_the_tables_tell_how_many_tokens_and_positions_there_are(tmp_path):
    found = read(decoder(tmp_path))
    assert (found.vocabulary, found.positions, found.logits, found.caches) == (11, 40, "logits", {})


@pytest.mark.parametrize("explicit", [False, True], ids=["variables", "explicit"])
def test_states_that_do_not_grow_take_the_mask_of_the_step_and_are_first_filled_whole(tmp_path, explicit):
    found = read(state_space(tmp_path, explicit=explicit))
    assert (found.window, found.recurrent, found.vocabulary, found.positions) == (4, True, None, None)
    whole = found.step(np.ones((2, 5), np.int64), MASK)
    assert whole["cache_position"].tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(whole["attention_mask"], MASK)
    next_one = found.step(np.ones((2, 1), np.int64), MASK)
    assert next_one["cache_position"].tolist() == [4]
    assert next_one["attention_mask"].tolist() == [[1], [1]]


def test_states_beside_a_cache_that_grows_take_the_mask_of_the_whole_text(tmp_path):
    found = read(state_space(tmp_path, states=("conv", "key")))
    assert not found.recurrent
    np.testing.assert_array_equal(found.step(np.ones((2, 1), np.int64), MASK)["attention_mask"], MASK)


def test_places_of_a_cache_that_grows_go_on(tmp_path):
    found = read(state_space(tmp_path, states=("key",)))
    assert found.window is None
    assert found.step(np.ones((1, 3), np.int64), MASK[:1])["cache_position"].tolist() == [2, 3, 4]
    assert found.step(np.ones((1, 5), np.int64), MASK[:1])["cache_position"].tolist() == [0, 1, 2, 3, 4]


def test_caches_are_empty_before_the_first_token_and_states_zero(tmp_path):
    (tmp_path / "states").mkdir()
    growing = read(decoder(tmp_path, explicit=True)).empty_caches(3, 1000)
    assert {name: array.shape for name, array in growing.items()} == {
        "past_key_values.0.key": (3, 0, 6),
        "past_key_values.0.value": (3, 0, 6),
    }
    states = read(state_space(tmp_path / "states")).empty_caches(3, 1000)
    assert {name: array.shape for name, array in states.items()} == dict.fromkeys(
        ("cache_params.past.conv.0", "cache_params.past.ssm.0"), (3, 2, 4)
    )
    assert not any(array.any() for array in states.values())


def test_states_that_do_not_fit_into_memory_are_refused(tmp_path):
    found = read(state_space(tmp_path))
    found.empty_caches(2, 128)
    with pytest.raises(irrun.InputError) as refused:
        found.empty_caches(2, 127)
    assert str(refused.value) == (
        "the caches take 128 bytes up to `cache_params.past.ssm.0`, more than the limit of 127 bytes"
    )


def test_the_batch_of_keys_and_values_in_one_array_is_the_second_axis(tmp_path):
    (cache,) = read(plain(tmp_path, shape=(2, "?", 4, "?", 8))).empty_caches(3, 1000).values()
    assert cache.shape == (2, 3, 4, 0, 8)


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"ids": "dynamic"}, "`input_ids` is of the type dynamic, expected one of numbers"),
        ({"cache": "dynamic"}, "`past_0` is of the type dynamic, expected one of numbers"),
        ({"logits": "string"}, "the output `logits` is of the type string, expected one of numbers"),
    ],
)
def test_e605_what_is_made_and_read_is_of_a_type_of_numbers(tmp_path, types, message):
    with pytest.raises(irrun.IRError) as refused:
        read(plain(tmp_path, **types))
    (found,) = refused.value.diagnostics
    assert (found.code, found.message) == ("E605", message)


@pytest.mark.parametrize("shape", [(5,), (2, 5), (2, 0, 5), (2, 1, 0), (1, 1, 5), (2, 1, 1, 5)])
def test_e605_logits_whose_shape_only_a_run_tells(tmp_path, shape):
    executor = irrun.GraphExecutor(plain(tmp_path))
    scores = {"scores": np.zeros(shape, np.float32)}
    with pytest.raises(irrun.IRError) as stopped:
        next(generate(executor, executor.session(), [[1], [2]], inputs=scores))
    (found,) = stopped.value.diagnostics
    message = f"the output `logits` has shape {list(shape)}, expected [2, length, vocabulary]"
    assert (found.code, found.message) == ("E605", message)


def test_tokens_are_given_as_they_are_or_not_at_all(tmp_path):
    found = read(plain(tmp_path, ids="u8"))
    ones = np.ones((1, 2), np.int64)
    assert found.step(np.array([[254, 255]]), ones)["input_ids"].tolist() == [[254, 255]]
    with pytest.raises(irrun.InputError, match=r"^`input_ids\[0, 1\]` is 256, which u8 cannot hold$"):
        found.step(np.array([[255, 256]]), ones)
