"""Ops of other packages: what files hold that are no models of the operation sets, and what to do with these."""

from __future__ import annotations

_TOKENIZER = frozenset(
    [
        *("BPETokenizer", "ByteFallback", "BytesToChars", "CaseFold", "CharsMapNormalization"),
        *("CharsToBytes", "CombineSegments", "ContribStringJoin", "ContribStringSplit", "EqualStr"),
        *("FuzeRagged", "NormalizeUnicode", "NumericToString", "RaggedTensorPack", "RaggedToDense"),
        *("RaggedToRagged", "RaggedToSparse", "RegexNormalization", "RegexSplit"),
        *("SentencepieceDetokenizer", "SentencepieceStreamDetokenizer", "SentencepieceTokenizer"),
        *("SpecialTokensSplit", "StringTensorPack", "StringTensorUnpack", "StringToHashBucket"),
        *("TrieTokenizer", "Truncate", "UTF8Validate", "UnigramTokenizer", "VocabDecoder"),
        *("VocabEncoder", "WordpieceTokenizer"),
    ]
)
"""All that the library of openvino-tokenizers 2026.4 registers."""

_PAGED = frozenset({"PagedAttentionExtension", "PagedCausalConv1D", "PagedGatedDeltaNet"})


def foreign_op(type: str, version: str) -> tuple[str, str] | None:
    """What is to be said of an op of another package, and what to do; None where it is of none that is known."""
    if version != "extension":
        return None
    if type in _TOKENIZER:
        return (
            f"`{type}` is an op of the package openvino-tokenizers",
            "it is part of a tokenizer or detokenizer, which only OpenVINO with that package runs; irrun takes the "
            "language model beside it, and token ids",
        )
    if type in _PAGED:
        return (
            f"`{type}` works on a paged cache, which only a serving runtime provides",
            "the file was saved after the transformation SDPAToPagedAttention, as OpenVINO GenAI applies it for "
            "continuous batching; use the IR from before it, or export the model again",
        )
    return None
