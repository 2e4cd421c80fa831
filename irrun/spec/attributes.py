"""Attributes: what an op's `<data>` may hold, how its text is read, and what is wrong with it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from irrun.records import NamedTuple
from irrun.spec.dims import Shape, Size, fresh
from irrun.spec.dtypes import ELEMENT_TYPES, FLOAT_FORMATS

REQUIRED: Any = object()
"""The default of an attribute that has none."""


class Kind(NamedTuple):
    """A kind of attribute: `parse` turns its text into a value or raises ValueError saying what was expected.

    `name` is for people. One that takes `words` alone has these; where it is `cased`, their case counts.
    """

    name: str
    parse: Callable[[str], Any]
    many: bool = False
    cased: bool = False
    words: tuple[str, ...] = ()


class EachAxis(NamedTuple):
    """A value for every spatial axis of the first input."""

    value: int


class Attr(NamedTuple):
    """An attribute of an op.

    `least` and `most` bound it, or each of its elements; `default` is what a file that omits it means; `keyword` is
    the kernel's argument. One without a default is required; `assumed` is what OpenVINO takes where a file lacks it.
    With one that is `lenient` OpenVINO computes beyond the bounds, too. `unread` has another attribute and its values
    with which nothing reads this one, so that the bounds do not matter. `words` are those that OpenVINO takes besides,
    in lower case, each with the one of the specification that it means. Of integers that are `unsigned` in OpenVINO it
    reads no -0. Without one that is `demanded` OpenVINO takes no model, or what is `assumed`, though there is another
    default.

    >>> Attr("strides", INTS, least=1).parse("2, 1")
    (2, 1)
    >>> Attr("exclude-pad", BOOL, False).keyword
    'exclude_pad'
    >>> Attr("levels", INT, least=2).parse("1")
    Traceback (most recent call last):
    ValueError: is 1, expected 2 or more
    """

    name: str
    kind: Kind
    default: Any = REQUIRED
    least: float | None = None
    most: float | None = None
    assumed: Any = None
    lenient: bool = False
    unread: tuple[str, tuple[Any, ...]] | None = None
    words: tuple[tuple[str, str], ...] = ()
    unsigned: bool = False
    demanded: bool = False

    @property
    def keyword(self) -> str:
        return _keyword(self.name)

    def parse(self, text: str) -> Any:
        """The value of `text`. Raises ValueError where it is malformed or out of range, unless that is `lenient`."""
        value = self.kind.parse(self.meant(text) or text)
        if not self.lenient:
            self.check(value, text)
        if self.unsigned and "-" in text:
            raise ValueError(f"is {text}, expected numbers without a sign")
        return value

    def meant(self, text: str) -> str:
        """The word of the specification for one that only OpenVINO takes, else nothing."""
        return dict(self.words).get(text.lower(), "") if self.words else ""

    def check(self, value: Any, text: str) -> None:
        """Raises ValueError where a value is out of range."""
        if self.least is None and self.most is None:
            return
        for element in value if self.kind.many else (value,):
            if element != element:
                raise ValueError(f"is {text}, expected a number")
            if self.least is not None and not element >= self.least:
                raise ValueError(f"is {text}, expected {self.least} or more")
            if self.most is not None and not element <= self.most:
                raise ValueError(f"is {text}, expected {self.most} or less")


@cache
def _keyword(name: str) -> str:
    return name.rpartition(".")[2].replace("-", "_")


NO_NAN = -math.inf
"""The `least` of an attribute that may be any number, but not NaN."""

MAX_RANK = 64
"""Of a tensor: numpy's limit."""

LEAST_I32, MOST_I32 = -(2**31), 2**31 - 1
"""Bounds of attributes that OpenVINO keeps in 32 bits: of larger ones it takes those bits, or refuses them."""

MOST_F32 = FLOAT_FORMATS["f32"].largest
"""Bound of attributes that OpenVINO keeps in 64 bits, and computes with in 32."""

MAX_VALUES = 4096
"""Of a list: no op needs as many, and some rules compare them all with each other."""

LONGEST_SIZE = 200
"""Characters of one size in a text."""

_BLANKS = " \t\n\r\f\v"
"""What may stand around numbers; of other spaces that Unicode has OpenVINO knows none."""

_INT = r"(?a)\s*-?[0-9]+\s*"
_WHOLE = r"(?a)\s*\+?[0-9]+"
_FLOAT = r"(?a)\s*[-+]?([0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?|\.[0-9]+([eE][-+]?[0-9]+)?|inf|nan)\s*"
_MOST_F32 = (2 - 2.0**-24) * 2.0**127
"""From here on numbers are infinite as 32-bit floats."""

_DIGITS = 4000
"""What Python is willing to convert."""


_LONGEST_WHOLE = 30
"""Characters of a number of bytes."""


def _int(text: str) -> int:
    if _is_short(text):
        return int(text)
    if not re.fullmatch(_INT, text):
        raise ValueError(f"is `{text}`, expected an integer")
    value = int(text) if len(text) < _DIGITS else 2**63
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"is {text}, which does not fit into 64 bits with a sign")
    return value


def _is_short(text: str) -> bool:
    """Whether a text is digits, and of an integer of 64 bits."""
    return _is_digits(text) and len(text) < 19


def _is_digits(text: str) -> bool:
    """Whether a text is digits as OpenVINO reads them; other scripts have some, too."""
    return text.isdecimal() and text.isascii()


def _whole(text: str) -> int:
    if _is_short(text):
        return int(text)
    if not re.fullmatch(_WHOLE, text) or len(text) > _LONGEST_WHOLE:
        raise ValueError(f"is `{text}`, expected a whole number")
    return int(text)


def _float(text: str) -> float:
    if not re.fullmatch(_FLOAT, text):
        raise ValueError(f"is `{text}`, expected a number")
    value = float(text)
    if math.isinf(value) and "inf" not in text:
        raise ValueError(f"is {text}, which no 64-bit float holds")
    return value


def _float32(text: str) -> float:
    value = _float(text)
    if _MOST_F32 <= abs(value) < math.inf:
        raise ValueError(f"is {text}, which no 32-bit float holds")
    return value


def _bool(text: str) -> bool:
    value = {"true": True, "1": True, "false": False, "0": False}.get(text.lower())
    if value is None:
        raise ValueError(f"is `{text}`, expected true or false")
    return value


def _list(element: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    def parse(text: str) -> tuple[Any, ...]:
        parts = text.split(",")
        if not parts[-1]:  # the reader allows one comma at the end, and an empty list, but no blanks in their place
            parts.pop()
        if len(parts) > MAX_VALUES:
            raise ValueError(f"has {len(parts)} values, expected {MAX_VALUES} or fewer")
        return tuple(element(part) for part in parts)

    return parse


def _strings(text: str) -> tuple[str, ...]:
    return tuple(part.strip(_BLANKS) for part in text.split(",") if part.strip(_BLANKS))


def _element_type(text: str) -> str:
    name = "dynamic" if text.lower() == "undefined" else text.lower()
    if name not in ELEMENT_TYPES:
        raise ValueError(f"is `{text}`, expected an element type: {', '.join(ELEMENT_TYPES)}")
    return name


def parse_shape(text: str) -> Shape | None:
    """A partial shape, such as `1,3,?,?`, `[2..8, 16]` or `...` (unknown rank: None)."""
    body = text.strip(_BLANKS)
    if body.startswith("[") and body.endswith("]"):
        body = body[1:-1].strip(_BLANKS)
    if body == "...":
        return None
    parts = body.split(",") if body else []
    if len(parts) > MAX_RANK:
        raise ValueError(f"has {len(parts)} dimensions, but arrays have {MAX_RANK} at most")
    return tuple(parse_size(part.strip(_BLANKS)) for part in parts)


def parse_size(text: str) -> Size:
    """One size of a partial shape. Raises ValueError where it is none."""
    if _is_short(text):
        return int(text)
    if text in ("?", "-1"):
        return fresh()
    if len(text) > LONGEST_SIZE:
        raise ValueError(f"has a dimension of {len(text)} characters, expected a number, `?` or an interval")
    low, dots, high = text.partition("..")
    if any(len(part) > 18 and _is_digits(part) and int(part[:40]) >= 2**63 for part in (low, high)):
        raise ValueError(f"has the dimension `{text}`, which does not fit into 64 bits")
    if _is_digits(text):
        return int(text)
    if dots and (low + high) and all(not part or _is_digits(part) for part in (low, high)):
        least, most = int(low or 0), int(high) if high else None
        if most is not None and most < least:
            raise ValueError(f"has the dimension `{text}`, whose upper bound is below the lower one")
        return least if least == most else fresh(least, most)
    raise ValueError(f"has the dimension `{text}`, expected a number, `?` or an interval such as `2..8`")


INT = Kind("int", _int)
WHOLE = Kind("int", _whole)  # a number of bytes, which OpenVINO reads in another way than attributes of ops
INTS = Kind("int[]", _list(_int), many=True)
FLOAT_NUMBER = Kind("float", _float)
FLOATS = Kind("float[]", _list(_float32), many=True)  # which OpenVINO keeps in 32 bits each
BOOL = Kind("boolean", _bool)
STRING = Kind("string", str)
STRINGS = Kind("string[]", _strings, many=True)
ELEMENT_TYPE = Kind("element type", _element_type)
SHAPE = Kind("shape", parse_shape)


def choice(*allowed: str) -> Kind:
    """One of the words `allowed`, in any case.

    >>> choice("explicit", "same_upper").parse("SAME_UPPER")
    'same_upper'
    """
    words = {word.lower(): word for word in allowed}

    def parse(text: str) -> str:
        return _word(words, text.lower(), text)

    return Kind(" | ".join(allowed), parse, words=allowed)


def exact(*allowed: str) -> Kind:
    """One of the words `allowed` as they are: what is no enum in OpenVINO is compared letter by letter there.

    >>> exact("max", "bilinear").parse("MAX")
    Traceback (most recent call last):
    ValueError: is `MAX`, expected one of max, bilinear
    """
    words = {word: word for word in allowed}
    return Kind(" | ".join(allowed), lambda text: _word(words, text, text), cased=True, words=allowed)


def _word(words: Mapping[str, str], spelling: str, text: str) -> str:
    word = words.get(spelling)
    if word is None:
        raise ValueError(f"is `{text}`, expected one of {', '.join(words.values())}")
    return word
