"""Texts that are not well-formed XML, read as they are meant: damages that leave one reading, and the text without.

Loaded where something is wrong. What is broken in other ways is left to `malformed.py`, which has the words for it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from irrun.diagnostics import FIRST, SECOND, Diagnostic, IRError, Note
from irrun.ir.lines import MendedSource, Source
from irrun.ir.malformed import BARE, CONFLICT, NOT_ALLOWED, UTF8, childless, is_tag
from irrun.ir.xml import Element, as_utf8, parse_source
from irrun.records import NamedTuple
from irrun.spelling import close_matches, code_point

MAX_BYTES = 1 << 26
"""Of a text that is mended; a larger one is too long to be searched."""

MAX_DAMAGES = 10_000
"""Of a text; one that has more is not written as XML at all."""

MAX_VALUE = 1 << 16
"""Bytes of a value that is looked into, and of a text between tags."""

_RECOVERABLE = ("E101", "E105", "E106", "E107")

_CONTROL = rb"\x00-\x08\x0b\x0c\x0e-\x1f"
_NAME = rb"[A-Za-z_][A-Za-z0-9_.:-]*+"
_SOUND_VALUE = rb"""(?:"[^"<&%s]*+"|'[^'<&%s]*+')""" % (_CONTROL, _CONTROL)
_SOUND = re.compile(rb"<(?:/(%s)\s*+|(%s)(?:\s++%s\s*+=\s*+%s)*+\s*+(/?+))>" % (_NAME, _NAME, _NAME, _SOUND_VALUE))
"""A tag that nothing is wrong with but that it may have an attribute twice: of an end its name, else that and a `/`."""

_START = re.compile(rb"<(\s*+)(%s)" % _NAME)
_END = re.compile(rb"</(\s*+)(%s)\s*+(>?+)" % _NAME)
_SLASH = re.compile(rb"\s*+/(?=\s*+<)")
_STOP = re.compile(rb"\s*+(/?+)>")
_GOES_ON = re.compile(rb"\s++%s\s*+=|\s*+/?+>" % _NAME)
"""What follows behind a value in a tag that nothing is wrong with there."""

_NEXT_TAG = re.compile(rb"\s*+<(/?)(%s)" % _NAME)
_ATTRIBUTE = re.compile(rb"\s*+(%s)\s*+=\s*+(?!=)" % _NAME)
_OTHER_SIGN = re.compile(rb"""\s*+([A-Za-z_][A-Za-z0-9_.-]*+)(?:\s*+(:|==|=:|:=)\s*+|\s++)(?=["'])""")
"""A name with something else than `=` between it and its value."""

_LONE_NAME = re.compile(rb"\s*+(%s)" % _NAME)
_QUOTED = re.compile(rb""""[^"]*+"|'[^']*+'""")
_UNQUOTED = re.compile(rb"""[^\s"'<>=/]++(?:/(?!>)[^\s"'<>=/]*+)*+""")
_CURLY = rb"(?:`|\xe2\x80[\x98-\x9f]|\xc2\xab|\xc2\xbb)"
_IN_CURLY = re.compile(rb"""(%s)((?:(?!%s)[^<>&"'])*+)(%s|["'])""" % (_CURLY, _CURLY, _CURLY))
_JUNK = re.compile(rb"\s*+(?:[,;]|\xc2\xa0|\xe2\x80[\x80-\x8f\xa8-\xaf]|\xef\xbb\xbf|\xe3\x80\x80|[%s])" % _CONTROL)
"""What stands between attributes and is none: commas, blanks that XML does not know."""

_BEFORE_NEXT = re.compile(rb"""([^"'=<>]*?)(["']?)\s+%s\s*=\s*\Z""" % _NAME)
"""A value that has the name of the next attribute in it, so that it ends before that, if with another quote."""

_OVER_END = re.compile(rb"""([^"'=<>]*?)()\s*/?>\s*(?:<|\Z)""")
"""A value that has the end of its tag in it, and the beginning of the next one."""

_OVER_LINE = re.compile(rb"""([^"'=<>\r\n]*?)()[ \t]*\r?\n\s*%s\s*=\s*\Z""" % _NAME)

_CHARACTER = (
    rb"(?:[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2})"
)
_WIDE = re.compile(rb"%s++|((?:(?!%s)[\x80-\xff])++)" % (_CHARACTER, _CHARACTER))
"""Characters of UTF-8 beyond ASCII, and bytes that are none."""

_NUMBER = rb"&#(?:[0-9]++|x[0-9a-fA-F]++);"
_AMPERSAND = rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]++|#x[0-9a-fA-F]++);)"
_BAD = re.compile(rb"%s|<|[%s]|%s" % (_AMPERSAND, _CONTROL, _NUMBER))
"""What may not stand in a value, and references to characters, which may be none."""

_BAD_TEXT = re.compile(rb"%s|[%s]|]]>|%s" % (_AMPERSAND, _CONTROL, _NUMBER))
_SEEN = bytes(range(33, 127))
_BLANK = re.compile(rb"\s*+")
_ENTITY = re.compile(rb"&%s;" % _NAME)
_DOCTYPE = re.compile(rb"<!DOCTYPE[^>\[]*(\[[^\]]*\]\s*)?>[ \t]*(?:\r\n|\n|\r)?")
_ENCODING = re.compile(rb"""\s+encoding\s*=\s*("[^"]*"|'[^']*')""")
_ASIDES = re.compile(rb"\s*+(?:(?:<!--(?:(?!--).)*+-->|<\?(?!xml\s)(?:(?!\?>).)*+\?>)\s*+)*+", re.DOTALL)
_OPEN_VALUE = re.compile(rb"""(%s)\s*=\s*(?:"[^"]*|'[^']*)\Z""" % _NAME)
_ASIDE = re.compile(rb"<!--.*?--+>|<!\[CDATA\[.*?]]>|<\?.*?\?>", re.DOTALL)
_DECLARATION = re.compile(rb"<\?xml\b[^<>]*+>")
_SOUND_DECLARATION = re.compile(
    rb"""<\?xml\s+version\s*=\s*(?:"1\.[0-9]+"|'1\.[0-9]+')(?:\s+encoding\s*=\s*(?:"[^"]*"|'[^']*'))?"""
    rb"""(?:\s+standalone\s*=\s*(?:"(?:yes|no)"|'(?:yes|no)'))?\s*\?>"""
)
_CONFLICTS = re.compile(rb"^[ \t]*+%s" % re.escape(CONFLICT), re.MULTILINE)
_PART = re.compile(rb"<(?:edges|layers?|edge|rt_info|data|input|output|port|dim|meta_data|/(?!net>))\b")
"""What is a part of a model, and none by itself."""

_NUMBERED = frozenset({b"edge", b"port", b"input", b"output"})
"""Elements whose attributes connect others."""

_FREE = frozenset({"name", "names", "output_names", "variable_id", "value"})
"""Attributes that may have any text."""

_WITHOUT_VALUE = 'write it as `name="value"`, or delete it'

_BYTEWISE = ("iso-8859-1", "latin1", "latin-1", "windows-1252", "cp1252")


class Damage(NamedTuple):
    """Bytes from `start` to `end` in whose place `text` is meant, and what is said of that, at the byte `place`.

    One without a message belongs to the one before it. `title` is what mends it, which is safe unless it loses
    something. Of an attribute that is there twice with two values OpenVINO reads the first: `other` are the bytes of
    that. Where it is not `sure` what an attribute says nothing else is to be said of its element.
    """

    start: int
    end: int
    text: str
    place: int
    message: str
    help: str
    title: str
    code: str = "E101"
    length: int = 1
    safe: bool = True
    other: tuple[int, int] | None = None
    sure: bool = True


def recovered(data: bytes, error: IRError) -> tuple[Element, list[Diagnostic]]:
    """The root of a text which is not well-formed, as it is meant, and what is wrong with the text.

    Raises the error, or one that says more, where nobody can tell what is meant.
    """
    if len(data) > MAX_BYTES or any(found.code not in _RECOVERABLE for found in error.diagnostics):
        raise error
    original = Source(as_utf8(data))
    found, refusal = _search(original.data)
    if not (found or refusal) or len(found) >= MAX_DAMAGES:
        raise error
    told = [_diagnostic(each, original) for each in found if each.message]
    unsure = {original.position(each.place)[0] for each in found if not each.sure}
    source = MendedSource(original, [(each.start, each.end, each.text.encode()) for each in found], unsure)
    try:
        return parse_source(source), told
    except IRError as second:
        left = second.diagnostics
        if refusal is not None and all(each.message == NOT_ALLOWED for each in left):
            left = [_diagnostic(refusal, original)]
        raise IRError([*told, *left]) from None


def second_readings(data: bytes) -> bytes | None:
    """A text in which of attributes that are there twice, with two values, the second ones stand; of all other bytes
    each is where it was. None where there are no such attributes."""
    changed = bytearray(as_utf8(data))
    others = [each.other for each in damages(bytes(changed)) if each.other]
    for start, end in others:
        changed[start:end] = re.sub(rb"[^\r\n]", b" ", changed[start:end])
    return bytes(changed) if others else None


def as_second(found: Diagnostic) -> Diagnostic:
    """What is said of an attribute that is given twice where the rest of the file fits the second one."""
    help = "delete the first, which OpenVINO reads: the rest of the file fits the second"
    return replace(found, remedy=SECOND, help=help)


def _diagnostic(damage: Damage, source: Source) -> Diagnostic:
    span, notes, remedy = source.span(damage.place, damage.length), [], None
    if damage.other is not None:
        start, end = damage.other
        notes, remedy = [Note("OpenVINO reads this one", source.span(start, end - start))], FIRST
    return Diagnostic(damage.code, damage.message, span, help=damage.help, notes=tuple(notes), remedy=remedy)


def damages(data: bytes) -> list[Damage]:
    """What is wrong with a text and leaves no doubt of what is meant, in its order, up to where something does."""
    return _search(data)[0]


def _search(data: bytes) -> tuple[list[Damage], Damage | None]:
    """The damages of a text, and what is to be said of the place where they end, if that is known."""
    if _CONFLICTS.search(data):
        return [], None
    scan = _Scan(data)
    found: list[Damage] = []
    for each in sorted([*_of_encoding(data), *scan.run()], key=lambda each: (each.start, each.end)):
        if not found or each.start >= found[-1].end:
            found.append(each)
    return found, scan.refusal


def _of_encoding(data: bytes) -> Iterator[Damage]:
    """An encoding that is declared and is not that of the text, and bytes that are in none."""
    declared = _declared_encoding(data)
    wrong = [*islice(_wrong_bytes(data), MAX_DAMAGES)]
    if declared is not None and declared[0] in _BYTEWISE:
        return
    if declared is not None and declared[0] not in ("utf-8", "utf8"):
        name, start, end = declared
        ascii = name in ("ascii", "us-ascii")
        if ascii and data.isascii():
            return
        what = "it is not" if ascii or name.startswith("utf") else "is not known here"
        message = f"the file is declared to be in `{name}`, which {what}"
        help = "save the file as UTF-8, and declare that or nothing; OpenVINO reads it as UTF-8 whatever is declared"
        length = end - start - 1
        yield Damage(start, end, "", start + 1, message, help, "delete `encoding`", length=length, safe=not wrong)
    more = len(wrong) - 1
    also = f", nor those in {more:,} more place{'s' * (more > 1)}" if more else ""
    for number, (start, end) in enumerate(wrong):
        message = "" if number else f"the bytes here are not UTF-8{also}"
        yield Damage(start, end, "\ufffd", start, message, UTF8, "", sure=_is_in_free_text(data, start))


def _is_in_free_text(data: bytes, at: int) -> bool:
    """Whether a byte is in a value that may be any text, or in none."""
    begin = max(data.rfind(b"<", 0, at), at - MAX_VALUE, 0)
    attribute = _OPEN_VALUE.search(data, begin, at)
    return attribute is None or attribute[1].decode() in _FREE


def _declared_encoding(data: bytes) -> tuple[str, int, int] | None:
    begin = 3 if data.startswith(codecs.BOM_UTF8) else 0
    if not data.startswith(b"<?xml", begin):
        return None
    end = data.find(b"?>", begin)
    found = _ENCODING.search(data, begin, end if end > 0 else begin)
    if found is None:
        return None
    return found[1][1:-1].decode("ascii", "replace").lower(), found.start(), found.end()


def _wrong_bytes(data: bytes) -> Iterator[tuple[int, int]]:
    """From where to where bytes go that are not UTF-8."""
    if not data.isascii():
        yield from (found.span() for found in _WIDE.finditer(data) if found[1] is not None)


class _Scan:
    """A way through a text from tag to tag, that ends where nobody can tell what is meant.

    `found` are the damages on it, `refusal` is what is to be said of its end. `opened` are the elements that are open,
    by their tags and where these begin.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.found: list[Damage] = []
        self.refusal: Damage | None = None
        self.opened: list[tuple[bytes, int]] = []
        self.begun = False
        self.mark = 3 if data.startswith(codecs.BOM_UTF8) else 0

    def run(self) -> list[Damage]:
        data = self.data
        at: int | None = self.mark
        while at is not None and len(self.found) < MAX_DAMAGES:
            begin = data.find(b"<", at)
            if begin < 0:
                break
            at = self._between(at, begin)
            if at is None or at < begin:  # a tag without its `<` was found there
                continue
            sound = _SOUND.match(data, begin)
            if sound is None:
                at = self._strange(begin)
                continue
            if sound[2] is not None and data.count(b"=", begin, sound.end()) > 1:
                self._look_for_doubles(begin + 1 + len(sound[2]), sound.end())
            at = self._taken(begin, sound.end(), sound[1], sound[2], bool(sound[3]))
        return self.found

    def _add(self, start: int, end: int, text: str, message: str, help: str, title: str, **more: object) -> None:
        place = more.pop("place", start)
        self.found.append(Damage(start, end, text, place, message, help, title, **more))  # type: ignore[arg-type]

    def _refuse(self, place: int, message: str, help: str) -> None:
        """Say what is wrong where nobody knows what is meant."""
        self.refusal = Damage(place, place, "", place, message, help, "")

    def _taken(self, begin: int, end: int, closed: bytes | None, opened: bytes | None, once: bool) -> int | None:
        """Take a tag for one that closes or opens an element; where that goes on, None where nobody knows."""
        self.begun = True
        if opened is not None and not once:
            self.opened.append((opened, begin))
        if closed is not None:
            if not self.opened or not self._closes(begin, closed):
                return None
            self.opened.pop()
        return end if self.opened else self._behind(end)

    def _closes(self, begin: int, closed: bytes) -> bool:
        """Whether a tag of this name closes the last element that is open, if it is spelt as it is meant."""
        opened, start = self.opened[-1]
        if opened == closed:
            return True
        one, other = opened.decode(), closed.decode()
        same = one.lower() == other.lower()
        if not same and not close_matches(one, (other,)):
            return False
        at_start = is_tag(other) and not is_tag(one)
        wrong, right = (one, other) if at_start else (other, one)
        if is_tag(wrong) or not (same or is_tag(right)):
            return False
        shown, place = (f"<{one}", start) if at_start else (f"</{other}>", begin)
        message = f"<{one}> and `</{other}>` differ{' in case' if same else ''}"
        help = f"write `{right}` for `{wrong}`"
        where = place + 1 if at_start else place + 2
        self._add(where, where + len(wrong), right, message, help, help, place=place, length=len(shown))
        return True

    def _between(self, start: int, end: int) -> int | None:
        """Look at the text before a tag; where that goes on, None where nobody knows."""
        data = self.data
        text = data[start : min(end, start + MAX_VALUE)]
        if not text.strip():
            return end
        place, stop = start + len(text) - len(text.lstrip()), start + len(text.rstrip())
        if not self.begun and b"\0" in text:  # of another encoding
            return None
        if not self.begun:
            help = "delete it; OpenVINO ignores what stands there, other readers of XML refuse the file"
            message, title = "text stands before the root element", "delete the text"
            message = "" if self.found and self.found[-1].code == "E107" else message
            first = data.startswith(b"<?xml", end) and start == self.mark
            begin, stop = (start, end) if first else (place, stop)  # nor may blanks stand before a declaration
            self._add(begin, stop, "", message, help, title, code="E107", place=place, safe=False)
            return end
        bare = BARE.search(data, max(start - 1, 0), end + 1)
        if bare is not None:
            return self._bare(bare)
        for bad in _BAD_TEXT.finditer(text):
            if bad[0][:2] == b"&#" and _is_character(bad[0]):
                continue
            message, at = _told(bad[0], "here")[0], start + bad.start()
            if self.opened[-1][0] == b"dim" or not any(byte in _SEEN for byte in text):
                self._add(at, start + bad.end(), "", message, "delete it", "delete it")
                continue
            help = "delete the text: only elements are read there"
            self._add(place, stop, "", message, help, "delete the text", place=at, safe=False)
            break
        return end

    def _bare(self, bare: re.Match[bytes]) -> int | None:
        """Take a tag that has no `<`."""
        text, place = bare[1], bare.start(1)
        word = re.match(rb"/?(\w+)", text)
        name = word[1] if word else b""
        closed, lost = text.startswith(b"/"), "<"
        if text == name + b">" and self.opened and self.opened[-1][0] == name:
            closed, lost = True, "</"
        message = f"`{lost}` is missing before `{word[0].decode() if word else ''}`"
        length = len(text.decode("utf-8", "replace"))
        self._add(place, place, lost, message, f"write `{lost}` there", f"write `{lost}`", length=length)
        once = text.endswith(b"/>")
        return self._taken(place, bare.end(), name if closed else None, None if closed else name, once)

    def _behind(self, at: int) -> int | None:
        """Look at what follows the root, which ends at a byte."""
        data = self.data
        asides = _ASIDES.match(data, at)
        start = asides.end() if asides else at
        rest = data[start : start + MAX_VALUE].lstrip()
        if rest and not _PART.match(rest):  # which is one of this model, whose root ends too early
            stop = len(data.rstrip())
            help = "delete it; OpenVINO ignores what follows, other readers of XML refuse the file"
            message, title = "the file goes on after its root element", "delete what follows the root element"
            self._add(start, stop, "", message, help, title, code="E106", safe=b"<" not in data[start:])
        return None

    def _strange(self, begin: int) -> int | None:
        """Look at what begins with `<` and is no sound tag; where that goes on, None where nobody knows."""
        data = self.data
        if data.startswith(b"<!DOCTYPE", begin):
            found = _DOCTYPE.match(data, begin)
            if found is None or self.begun or any(each.code == "E105" for each in self.found):
                return None
            help = "delete the declaration; an IR needs none, and OpenVINO expands no entities"
            used = _ENTITY.search(data, found.end())  # what the declaration says they stand for is lost
            message, title = "a DOCTYPE declaration is not allowed in an IR", "delete the declaration"
            self._add(begin, found.end(), "", message, help, title, code="E105", safe=used is None, length=9)
            return found.end()
        if data.startswith((b"<!--", b"<![CDATA[", b"<?"), begin):
            return self._aside(begin)
        if data.startswith(b"</", begin):
            return self._end(begin)
        if data.startswith(b"<<", begin):
            self._add(begin, begin + 1, "", "`<` stands here twice", "write it once", "delete `<`")
            return begin + 1
        return self._start(begin)

    def _aside(self, begin: int) -> int | None:
        data, mark = self.data, self.mark
        declaration = _DECLARATION.match(data, begin)
        if declaration is not None and begin == mark and not _SOUND_DECLARATION.fullmatch(declaration[0]):
            message, sound = "the XML declaration is not well-formed", '<?xml version="1.0"?>'
            length = len(declaration[0].decode("utf-8", "replace"))
            help, title = f"write `{sound}`, or delete it", f"write `{sound}`"
            self._add(begin, declaration.end(), sound, message, help, title, length=length)
            return declaration.end()
        found = _ASIDE.match(data, begin)
        if found is None:
            return None
        end = found.end()
        if found[0].startswith(b"<!--"):
            help = "write something else for it: `--` only ends a comment, with a `>` behind it"
            message = "`--` stands in a comment"
            for each in re.finditer(rb"-(?=-)|-\Z", data[begin + 4 : end - 3]):
                place = begin + 4 + each.start()
                self._add(place, place + 1, "=", message, help, "write `=` for `-`", place=place + 2)
                message = ""
        elif re.match(rb"<\?xml\s", found[0]) and begin > mark:
            message = "the XML declaration must be the very first thing in the file"
            help = "delete the blanks before `<?xml`, or the second declaration"
            if self.found and self.found[-1].code == "E107":
                if self.found[-1].start > mark:  # what else stands there stays
                    self._add(begin, end, "", "", help, "")
                return end
            if _BLANK.match(data, mark).end() < begin:  # type: ignore[union-attr]
                self._add(begin, end, "", message, help, "delete the declaration")
            else:
                self._add(mark, begin, "", message, help, "delete the blanks", place=begin)
        return end

    def _end(self, begin: int) -> int | None:
        data = self.data
        found = _END.match(data, begin)
        if found is None:
            return None
        at, name = found.end(), found[2]
        if found[1]:
            self._add(begin + 2, found.start(2), "", "blanks stand behind `</`", "delete them", "delete the blanks")
        if not found[3]:
            if (data[at : at + 1] != b"<" and at < len(data)) or not self.opened or self.opened[-1][0] != name:
                return None
            place, message = found.end(2), f"`>` is missing behind `</{name.decode()}`"
            self._add(place, place, ">", message, "write `>` there", "write `>`", place=begin, length=place - begin)
        return self._taken(begin, at, name, None, False)

    def _start(self, begin: int) -> int | None:
        """Look at a start tag."""
        data = self.data
        tag = _START.match(data, begin)
        if tag is None:
            return None
        if tag[1] and not is_tag(tag[2].decode()):
            self._refuse(begin, "`<` stands in a text", "delete the text: only elements are read there")
            return None
        if tag[1]:
            self._add(begin + 1, tag.start(2), "", "blanks stand behind `<`", "delete them", "delete the blanks")
        at, given, parted = tag.end(), dict[bytes, tuple[int, int, bytes]](), False
        while (stop := _STOP.match(data, at)) is None:
            if len(self.found) >= MAX_DAMAGES:
                return None
            attribute = _ATTRIBUTE.match(data, at) or self._with_other_sign(at)
            junk = None if attribute else _JUNK.match(data, at)
            if attribute is not None:
                if not data[at : at + 1].isspace() and not parted:
                    message = f"a blank is missing before `{attribute[1].decode()}`"
                    self._add(at, at, " ", message, "write one there", "write a blank")
                end = self._value(tag[2], attribute)
                if end is None:
                    return None
                self._twice(given, attribute.start(1), end)
                at, parted = end, False
            elif junk is not None:
                at, parted = self._between_attributes(junk), True
            elif data[at : at + 1] in (b'"', b"'") and data[at - 1 : at] == data[at : at + 1]:
                self._add(at, at + 1, "", "a quote stands here twice", "write it once", "delete the quote")
                at += 1
            else:
                return self._unended(tag, at)
        return self._taken(begin, stop.end(), None, tag[2], bool(stop[1]))

    def _unended(self, tag: re.Match[bytes], at: int) -> int | None:
        """Look at a start tag in which something else follows than attributes or its end."""
        data, name = self.data, tag[2].decode()
        following, lone = _NEXT_TAG.match(data, at), _LONE_NAME.match(data, at)
        slash = _SLASH.match(data, at)
        if slash is not None:
            message, help = f"`>` is missing at the end of the tag of <{name}>", "write `>` there"
            place, at = tag.start(), slash.end()
            self._add(at, at, ">", message, help, "write `>`", place=place, length=len(name) + 1)
            return self._taken(place, at, None, tag[2], True)
        if following is not None:
            closing = _closing(tag[2], following[1], following[2])
            message, help = f"the tag of <{name}> is not closed before the next `<`", f"write `{closing}` at its end"
            place, length = tag.start(), len(name) + 1
            self._add(at, at, closing, message, help, f"write `{closing}`", place=place, length=length)
            begin = data.index(b"<", at)
            return self._taken(place, begin, None, tag[2], closing == "/>")
        if data[at : at + MAX_VALUE].lstrip().startswith(b"<!--"):
            place = data.index(b"<!--", at)
            self._refuse(place, f"a comment stands in the tag of <{name}>", "move it out of the tag")
        elif lone is not None:
            self._refuse(lone.start(1), f"`{lone[1].decode()}` has no value in quotes", _WITHOUT_VALUE)
        return None

    def _with_other_sign(self, at: int) -> re.Match[bytes] | None:
        """The name of an attribute that has no `=`, or something else in its place."""
        found = _OTHER_SIGN.match(self.data, at)
        if found is not None:
            name = found[1].decode()
            message = f"`{found[2].decode()}` stands behind `{name}`" if found[2] else f"`=` is missing behind `{name}`"
            help, place = "write `=` between name and value", found.start(1)
            self._add(found.end(1), found.end(), "=", message, help, "write `=`", place=place, length=len(name))
        return found

    def _between_attributes(self, junk: re.Match[bytes]) -> int:
        data, end = self.data, junk.end()
        start = end - len(junk[0].lstrip(b" \t\r\n"))
        shown = data[start:end].decode("utf-8", "replace")
        what = f"`{shown}` stands" if shown in ",;" else f"{code_point(shown)} stands"
        blank = data[end : end + 1].isspace() or data[start - 1 : start].isspace()
        help = "attributes have blanks between them, and nothing else"
        title = "delete it" if blank else "write a blank for it"
        self._add(start, end, "" if blank else " ", f"{what} between attributes", help, title)
        return end

    def _value(self, tag: bytes, attribute: re.Match[bytes]) -> int | None:
        """Look at the value of an attribute; where that ends, None where nobody knows."""
        data, at, name = self.data, attribute.end(), attribute[1].decode()
        quoted = _QUOTED.match(data, at, at + MAX_VALUE)
        if quoted is None:
            return self._without_quotes(at, name)
        quote, inside, end = quoted[0][:1].decode(), quoted[0][1:-1], quoted.end()
        lost = _OVER_END.match(inside)
        if lost is not None and not lost[0].endswith(b"<") and _GOES_ON.match(data, end):  # it may end with a `>`
            lost = None
        lost = lost or _OVER_LINE.match(inside)
        if lost is None and data[end : end + 1] not in b" \t\r\n/>?":
            lost = _BEFORE_NEXT.match(inside)
        stop = end - 1
        if lost is not None:
            stop, other = at + 1 + lost.end(1), len(lost[2])
            place, title = attribute.start(1), f"write `{quote}`"
            message, help = f"the value of `{name}` has no closing quote", f"write `{quote}` at its end"
            if other:
                message = f"the value of `{name}` begins with `{quote}` and ends with `{lost[2].decode()}`"
            end = stop + other
            self._add(stop, end, quote, message, help, title, place=place, length=end - place)
        for bad in _BAD.finditer(data, at + 1, stop):
            if bad[0][:2] == b"&#" and _is_character(bad[0]):
                continue
            if tag in _NUMBERED or name == "id":
                return None  # of the numbers that connect layers none can be guessed
            message, help, text = _told(bad[0], f"in the value of `{name}`")
            if bad[0] == b"&" and (entity := _ENTITY.match(data, bad.start())):
                message = f"XML does not define `{entity[0].decode()}`, which stands in the value of `{name}`"
                help = "XML knows &lt; &gt; &amp; &quot; &apos; only; write `&amp;` for a plain &"
            sure = name in _FREE or not text
            if not sure:
                help, text = "delete it, or write what is meant", ""
            title = f"write `{text}`" if text else "delete it"
            self._add(bad.start(), bad.end(), text, message, help, title, sure=sure, safe=sure)
        return end

    def _without_quotes(self, at: int, name: str) -> int | None:
        data = self.data
        curly = _IN_CURLY.match(data, at)
        if curly is not None:
            message, help = f"{code_point(curly[1].decode())} is not allowed here", "write a plain quote"
            self._add(at, curly.end(1), '"', message, help, "write plain quotes")
            self._add(curly.start(3), curly.end(3), '"', "", help, "")
            return curly.end()
        bare = _UNQUOTED.match(data, at)
        if bare is None or data[bare.end() : bare.end() + 1] == b"=":
            self._refuse(data.rindex(name.encode(), 0, at), f"`{name}` has no value in quotes", _WITHOUT_VALUE)
            return None
        end, length = bare.end(), len(bare[0].decode("utf-8", "replace"))
        following = data[end : end + 1]
        if following in (b'"', b"'"):
            message, quote = f"the value of `{name}` has no opening quote", following.decode()
            self._add(at, at, quote, message, f"write `{quote}` before it", f"write `{quote}`", length=length)
            return end + 1
        if following not in b" \t\r\n/>":
            return None
        message, help = f"the value of `{name}` is not in quotes", "write quotes around it"
        self._add(at, at, '"', message, help, "write quotes", length=length)
        self._add(end, end, '"', "", help, "")
        return end

    def _look_for_doubles(self, start: int, end: int) -> None:
        """Look whether a tag that is sound else has an attribute twice."""
        given: dict[bytes, tuple[int, int, bytes]] = {}
        attribute = _ATTRIBUTE.match(self.data, start, end)
        while attribute is not None and len(self.found) < MAX_DAMAGES:
            value = _QUOTED.match(self.data, attribute.end(), end)
            if value is None:
                return
            self._twice(given, attribute.start(1), value.end())
            attribute = _ATTRIBUTE.match(self.data, value.end(), end)

    def _twice(self, given: dict[bytes, tuple[int, int, bytes]], start: int, end: int) -> None:
        """Note down an attribute, and whether its tag has it already."""
        name, _, value = (part.strip() for part in self.data[start:end].partition(b"="))
        value = value.strip(b"\"'")
        first = given.setdefault(name, (start, end, value))
        if first[0] == start:
            return
        message, help = f"`{name.decode()}` is given twice in one tag", "delete one of the two"
        if first[2] != value:
            message += f", as `{first[2].decode('utf-8', 'replace')}` and as `{value.decode('utf-8', 'replace')}`"
            help += ": OpenVINO reads the first"
        begin = start
        while self.data[begin - 1 : begin].isspace():
            begin -= 1
        # what is wrong in a value that is left out matters no more
        while self.found and self.found[-1].start >= begin:
            self.found.pop()
        same = first[2] == value
        title, other = f"delete the second `{name.decode()}`", None if same else first[:2]
        self._add(begin, end, "", message, help, title, place=start, length=end - start, safe=same, other=other)


def _told(bad: bytes, where: str) -> tuple[str, str, str]:
    """What to say of what may not stand somewhere, what to do, and what is meant by it."""
    if bad == b"<":
        return f"`<` stands {where}", "write `&lt;` for it", "&lt;"
    if bad == b"&":
        return f"`&` stands {where}", "write `&amp;` for it", "&amp;"
    if bad == b"]]>":
        return f"`]]>` stands {where}", "delete it", ""
    if bad[:1] == b"&":
        return f"`{bad.decode()}` stands {where}, which is no character", "delete it", ""
    help = "delete it: XML has no control characters, not even as references"
    return f"{code_point(bad.decode())} stands {where}", help, ""


def _is_character(reference: bytes) -> bool:
    """Whether a reference to the number of a character stands for one that XML has."""
    digits = reference[2:-1].decode()
    if len(digits) > 9:
        return False
    code = int(digits[1:], 16) if digits[:1] == "x" else int(digits)
    return code in (9, 10, 13) or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000


def _closing(tag: bytes, slash: bytes, following: bytes) -> str:
    """How the tag of an element ends that is not closed, by what follows it."""
    if slash and following == tag:
        return ">"
    if tag == b"port":
        return ">" if following in (b"dim", b"rt_info") else "/>"
    return "/>" if slash or childless(tag.decode()) else ">"
