"""irrun generate, as a process: what it prints where, and what it refuses."""

import json
import re

import numpy as np
import pytest
from command_line import irrun
from decoders import VOCABULARY, decoder, expected
from ir_builder import Model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return decoder(tmp_path_factory.mktemp("decoder"))


@pytest.fixture
def words(tmp_path):
    """The folder of a tokenizer that knows w0 to w10."""
    tokenizers = pytest.importorskip("tokenizers", reason="the text of prompts takes the package tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{n}": n for n in range(VOCABULARY)}, "w0"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def joined(tokens):
    return ",".join(map(str, tokens))


def test_ids_go_to_stdout_and_times_to_stderr(model):
    done = irrun("generate", model, "--prompt-ids", "3,1,4", "--max-tokens", 12)
    assert done.stdout == joined(expected([3, 1, 4], 12)) + "\n"
    assert re.fullmatch(r"loaded in \d+\.\d\d s, first token after \d+\.\d{3} s, then [\d.]+ tokens/s\n", done.stderr)


def test_32_tokens_unless_told_otherwise(model):
    assert irrun("generate", model, "--prompt-ids", "3,1,4").stdout == joined(expected([3, 1, 4], 32)) + "\n"


def test_one_token_has_no_rate(model):
    done = irrun("generate", model, "--prompt-ids", "3, 1, 4", "--max-tokens", 1)
    assert done.stdout == "8\n"
    assert "tokens/s" not in done.stderr


def test_rows_are_lines(model):
    done = irrun("generate", model, "--prompt-ids", "3,1,4", "--prompt-ids", "8", "--max-tokens", 9)
    assert done.stdout == f"{joined(expected([3, 1, 4], 9))}\n{joined(expected([8], 9))}\n"


def test_a_file_has_a_row_on_each_line(model, tmp_path):
    (tmp_path / "prompt.txt").write_text("\ufeff3,1,4\n\n8\n", encoding="utf-8")
    done = irrun("generate", model, "--prompt-file", tmp_path / "prompt.txt", "--max-tokens", 5)
    assert done.stdout == f"{joined(expected([3, 1, 4], 5))}\n{joined(expected([8], 5))}\n"


def test_an_eos_token_is_the_last(model):
    assert irrun("generate", model, "--prompt-ids", "3,1,4", "--eos-id", 7, "--eos-id", 6).stdout == "8,8,6\n"


@pytest.mark.parametrize("engine", ["numpy", "reference", "check"])
def test_every_engine_gives_them(model, engine):
    done = irrun("generate", model, "--prompt-ids", "3,1,4", "--engine", engine, "--threads", 1, "--max-memory", "1GB")
    assert done.stdout == joined(expected([3, 1, 4], 32)) + "\n"


def test_the_json_form(model):
    done = irrun("generate", model, "--prompt-ids", "3,1,4", "--max-tokens", 3, "--json")
    report = json.loads(done.stdout)
    assert list(report) == ["prompt", "tokens", "load_seconds", "first_token_seconds", "tokens_per_second"]
    assert report["prompt"] == [[3, 1, 4]]
    assert report["tokens"] == [[8, 8, 6]]
    assert report["load_seconds"] > 0
    assert report["first_token_seconds"] > 0
    assert report["tokens_per_second"] > 0
    assert done.stderr == ""


def test_a_profile_goes_to_stderr(model):
    done = irrun("generate", model, "--prompt-ids", "3,1,4", "--max-tokens", 3, "--profile")
    assert done.stdout == "8,8,6\n"
    assert "MatMul" in done.stderr


def test_a_text_goes_through_the_tokenizer(model, words):
    done = irrun("generate", model, "--tokenizer", words, "--prompt", "w3 w1 w4", "--max-tokens", 3)
    assert done.stdout == "w8 w8 w6\n"
    (words / "prompt.txt").write_text("w3 w1\nw4\n")
    arguments = ("--tokenizer", words, "--prompt-file", words / "prompt.txt", "--max-tokens", 3, "--json")
    report = json.loads(irrun("generate", model, *arguments).stdout)
    assert report["prompt"] == [[3, 1, 4]]
    assert report["text"] == ["w8 w8 w6"]


def test_what_the_model_takes_besides_comes_from_a_file(tmp_path):
    """One-hot tokens and a bias: the next token is the one with the largest."""
    m = Model()
    ids, bias = m.parameter("input_ids", "i64", ("?", "?")), m.parameter("bias", "f32", (4,))
    cache = m.parameter("past_nothing", "f32", ("?", 1))
    zero = m.constant(np.int64(0))
    (rows,) = m.layer("Gather", [m.constant(np.eye(4, dtype=np.float32)), ids, zero], [("f32", (-1, -1, 4))], "opset8")
    (logits,) = m.layer("Add", [rows, bias], [("f32", (-1, -1, 4))], names=["logits"], auto_broadcast="numpy")
    m.result(logits)
    m.result(m.layer("Abs", [cache], [("f32", (-1, 1))], names=["present_nothing"])[0])
    path = m.save(tmp_path)
    np.savez(tmp_path / "bias.npz", bias=np.float32([0, 0, 1.5, 0]))
    done = irrun("generate", path, "--prompt-ids", 1, "--max-tokens", 2, "--inputs", tmp_path / "bias.npz")
    assert done.stdout == "2,2\n"
    refused = irrun("generate", path, "--prompt-ids", 1, status=1)
    assert refused.stdout == ""
    assert refused.stderr == (
        "error: no array for input `bias` (f32[4])\nhelp: give what is not made of the tokens with --inputs FILE\n"
    )


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ("3,11", "error: token 1 of the prompt is 11, outside [0, 11), the vocabulary of the model\n"),
        ("", "error: the prompt is empty: there is nothing to go on from\n"),
    ],
)
def test_a_prompt_that_the_model_cannot_take(model, ids, message):
    done = irrun("generate", model, "--prompt-ids", ids, status=1)
    assert (done.stdout, done.stderr) == ("", message)


def test_e605_a_model_that_is_no_language_model(tmp_path):
    m = Model()
    m.result(m.parameter("image", "f32", (1, 3)))
    done = irrun("generate", m.save(tmp_path), "--prompt-ids", 1, status=1)
    assert done.stdout == ""
    assert done.stderr == (
        "error[E605]: not a language model: there is no `input_ids` among its inputs, which are `image`\n"
        f"  --> {tmp_path / 'model.xml'}\n"
        "help: `irrun generate` runs decoders that keep a cache, in variables or as inputs; "
        "`irrun execute` runs any model\n\n"
    )
    assert "past_key_values" in irrun("explain", "E605").stdout


def test_files_that_hold_something_else(model, tmp_path):
    (tmp_path / "prompt.txt").write_text("one,two")
    done = irrun("generate", model, "--prompt-file", tmp_path / "prompt.txt", status=1)
    assert done.stderr == f"error: {tmp_path / 'prompt.txt'}:1: `one` is not a token id; they are given as 1,2,3\n"
    (tmp_path / "prompt.txt").write_bytes(b"\xff\xfe")
    assert "cannot be read" in irrun("generate", model, "--prompt-file", tmp_path / "prompt.txt", status=1).stderr
    done = irrun("generate", model, "--prompt-file", tmp_path, status=1)
    assert done.stderr == f"error: {tmp_path} cannot be read: it is not a regular file\n"
    pytest.importorskip("tokenizers", reason="it says what is wrong with its file")
    (tmp_path / "tokenizer.json").write_text("{}")
    done = irrun("generate", model, "--tokenizer", tmp_path, "--prompt", "a", status=1)
    assert done.stderr.startswith(f"error: {tmp_path / 'tokenizer.json'} is no tokenizer: ")


def test_a_tokenizer_without_its_package(model, tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "tokenizers.py").write_text("raise ImportError")
    arguments = ("--tokenizer", tmp_path, "--prompt", "a")
    done = irrun("generate", model, *arguments, status=2, env={"PYTHONPATH": str(tmp_path)})
    assert "--tokenizer needs the package `tokenizers`: pip install 'irrun[tokenizers]'" in done.stderr


def test_a_text_that_is_no_utf8(model, words):
    done = irrun("generate", model, "--tokenizer", words, "--prompt", "\udcff", status=1)
    assert done.stderr.startswith("error: the prompt cannot be made tokens of: ")


def test_a_model_that_takes_more_memory_than_allowed(model):
    done = irrun("generate", model, "--prompt-ids", "3,1,4", "--max-memory", 200, status=1)
    assert done.stdout == ""
    assert "error[E603]" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give one of --prompt-ids, --prompt-file and --prompt"),
        (("--prompt-ids", "1", "--prompt", "a"), "give one of --prompt-ids, --prompt-file and --prompt"),
        (("--prompt", "a"), "--prompt is a text, which takes --tokenizer DIR"),
        (("--prompt-ids", "1,-2"), "`-2` is not a token id; they are given as 1,2,3"),
        (("--prompt-ids", "1,,2"), "`` is not a token id; they are given as 1,2,3"),
        (("--prompt-ids", "1", "--max-tokens", "0"), "0 is not in the range x>=1"),
        (("--prompt-file", "nowhere.txt"), "there is no file nowhere.txt"),
        (("--prompt-ids", "1", "--inputs", "nowhere.npz"), "there is no file nowhere.npz"),
        (("--prompt", "a", "--tokenizer", "nowhere"), "there is no file nowhere/tokenizer.json"),
    ],
)
def test_wrong_use(model, arguments, message):
    done = irrun("generate", model, *arguments, status=2)
    assert done.stdout == ""
    assert message in done.stderr


def test_a_last_token_that_the_model_cannot_give_is_refused(model):
    done = irrun("generate", model, "--prompt-ids", "1", "--eos-id", VOCABULARY, status=1)
    assert f"the token {VOCABULARY} never ends a row: it is outside [0, {VOCABULARY}), the vocabulary" in done.stderr
