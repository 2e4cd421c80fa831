"""Ops of other packages: named for what they are, with what to do."""

import numpy as np
import pytest
from command_line import irrun as command
from ir_builder import Model

import irrun
from irrun.spec import Input, Output, op
from irrun.spec.registry import Registry

TOKENIZER = (
    "it is part of a tokenizer or detokenizer, which only OpenVINO with that package runs; irrun takes the language "
    "model beside it, and token ids"
)
PAGED = (
    "the file was saved after the transformation SDPAToPagedAttention, as OpenVINO GenAI applies it for continuous "
    "batching; use the IR from before it, or export the model again"
)


def found(folder, type, version="extension"):
    m = Model()
    x = m.parameter("x", "i32", (2,))
    (y,) = m.layer(type, [x], [("i32", (2,))], version, name="foreign")
    m.result(m.layer("Abs", [y], [("i32", (2,))])[0])
    (diagnostic,) = irrun.validate(m.save(folder)).diagnostics
    return diagnostic


@pytest.mark.parametrize(
    "type",
    [
        *(
            "StringTensorPack",
            "StringTensorUnpack",
            "RaggedTensorPack",
            "StringToHashBucket",
            "EqualStr",
            "UTF8Validate",
        ),
        *("NormalizeUnicode", "RegexNormalization", "CharsMapNormalization", "CaseFold", "RegexSplit"),
        *("BytesToChars", "CharsToBytes", "ByteFallback", "SpecialTokensSplit", "WordpieceTokenizer", "BPETokenizer"),
        *("UnigramTokenizer", "TrieTokenizer", "SentencepieceTokenizer", "SentencepieceDetokenizer"),
        *("SentencepieceStreamDetokenizer", "CombineSegments", "Truncate", "RaggedToDense", "RaggedToSparse"),
        *("RaggedToRagged", "VocabEncoder", "VocabDecoder", "FuzeRagged", "NumericToString"),
        *("ContribStringJoin", "ContribStringSplit"),
    ],
)
def test_an_op_of_the_tokenizers_is_called_so(tmp_path, type):
    diagnostic = found(tmp_path, type)
    assert diagnostic.code == "E301"
    assert diagnostic.message == f"`{type}` is an op of the package openvino-tokenizers"
    assert diagnostic.help == TOKENIZER


@pytest.mark.parametrize("type", ["PagedAttentionExtension", "PagedCausalConv1D", "PagedGatedDeltaNet"])
def test_what_the_paged_attention_transformation_leaves_is_called_so(tmp_path, type):
    diagnostic = found(tmp_path, type)
    assert diagnostic.code == "E301"
    assert diagnostic.message == f"`{type}` works on a paged cache, which only a serving runtime provides"
    assert diagnostic.help == PAGED


def test_the_place_is_that_of_the_type(tmp_path):
    diagnostic = found(tmp_path, "RegexNormalization")
    line = (tmp_path / "model.xml").read_text().splitlines()[diagnostic.line - 1]
    assert line[diagnostic.column - 1 :].startswith('type="RegexNormalization"')


def test_the_command_says_no_more_than_that(tmp_path):
    found(tmp_path, "RegexNormalization")
    shown = command("validate", tmp_path / "model.xml", status=1).stdout
    assert "error[E301]: `RegexNormalization` is an op of the package openvino-tokenizers\n" in shown
    assert f"help: {TOKENIZER}\n" in shown
    assert "did you mean" not in shown


@pytest.mark.parametrize(
    ("type", "version", "message", "help"),
    [
        ("Wordpieces", "extension", "unknown op `Wordpieces` of extension", "a custom op can be declared in a module"),
        ("RegexSplit", "opset1", "unknown op `RegexSplit` of opset1", "a custom op can be declared in a module given"),
        ("Relux", "extension", "unknown op `Relux` of extension", "did you mean `ReLU`?"),
        ("Relu", "extension", "`extension` is not an operation set that the reader knows", "write opset1 to opset17"),
    ],
)
def test_other_ops_are_unknown_as_before(tmp_path, type, version, message, help):
    diagnostic = found(tmp_path, type, version)
    assert diagnostic.message == message
    assert diagnostic.help.startswith(help)


def test_an_op_that_is_declared_is_no_foreign_one(tmp_path, monkeypatch):
    own = op(
        "RegexSplit-0",
        types={},
        inputs=[Input("x", "i32", "[n]")],
        outputs=[Output("y", "i32", "[n]")],
        extension_versions=["extension"],
    )(np.negative)
    known = Registry()
    monkeypatch.setattr("irrun.check.lookup.registry", lambda: known)
    known.add(own)
    from irrun.spec.registry import registry

    for name in ("Parameter-1", "Result-1", "Abs-1"):
        known.add(registry().ops[name])
    m = Model()
    m.result(m.layer("RegexSplit", [m.parameter("x", "i32", (2,))], [("i32", (2,))], "extension")[0])
    assert irrun.validate(m.save(tmp_path)).ok
