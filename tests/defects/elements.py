"""The same few defects in every kind of element that the format has: an attribute that is not known, that is missing, empty,
a word or below zero; a child that is not known; text. Blamed is the line of the element."""

# ruff: noqa: E501 (a row of a table is a line)

import re

from defects import bases
from defects.planting import MARK, Defect, marked

TAG = re.compile(r"<(/?)([\w]+)((?:\s[^<>]*?)?)(/?)>")
FREE = {"name", "names", "variable_id", "auto_broadcast", "transpose_a", "transpose_b", "value"}
OPTIONAL = FREE | {"axis", "start", "end", "stride", "part_size", "purpose", "special_zero", "batch_dims"}
NUMBERS = {"version", "id", "offset", "size", "from-layer", "to-layer", "from-port", "to-port", "internal_layer_id"}
TEXTUAL = {"dim"}
MARK_LINE = "\x02"


def doubt(what: str, path: str) -> str:
    tail = "/".join(path.split("/")[-2:])
    if what.startswith("precision") and tail == "input/port":
        return "nobody reads it"
    if tail.endswith("dim") and what.startswith("unknown"):
        return "nobody reads it"
    if path == "net" and what == "unknown attribute":
        return "nobody reads it"
    if what in ("shape empty", "variable_shape empty"):
        return "an empty shape is a scalar, which contradicts the ports"
    if what.split()[0] in ("axis", "start", "end", "stride", "part_size", "purpose") and what.endswith("empty"):
        return "empty may be as good as missing"
    return ""


def opened(text: str) -> list[tuple[str, re.Match[str]]]:
    """Each opening tag with the path to it."""
    stack: list[str] = []
    found = []
    for match in TAG.finditer(text):
        if match[1]:
            stack.pop()
            continue
        found.append(("/".join([*stack, match[2]]), match))
        if not match[4]:
            stack.append(match[2])
    return found


def within(text: str) -> list[tuple[str, str, str]]:
    """What is planted, the path, and the text with its mark."""
    made = []
    seen: set[tuple[str, str]] = set()

    def add(what: str, path: str, changed: str) -> None:
        if (what, path) not in seen:
            seen.add((what, path))
            made.append((what, path, changed))

    for path, match in opened(text):
        if "rt_info" in path:
            continue
        start, end = match.span()
        name, words, slash = match[2], match[3], match[4]
        close = "/>" if slash else ">"

        def put(inner: str, start: int = start, end: int = end, name: str = name, close: str = close) -> str:
            return f"{text[:start]}{MARK_LINE}<{name}{inner}{close}{text[end:]}"

        add("unknown attribute", path, put(words + ' colour="red"'))
        if slash:
            body = f"{text[:start]}{MARK_LINE}<{name}{words}>%s</{name}>{text[end:]}"
        else:
            body = f"{text[:start]}{MARK_LINE}<{name}{words}>%s{text[end:]}"
        if name not in TEXTUAL:
            add("unknown child", path, body % "<thing/>")
            add("text", path, body % "stray ")
        for key, value in re.findall(r'([\w-]+)="([^"]*)"', words):
            pair = f' {key}="{value}"'
            if key not in OPTIONAL and not (key == "precision" and "input/port" in path):
                add(f"{key} missing", path, put(words.replace(pair, "", 1)))
            if key not in FREE:
                add(f"{key} a word", path, put(words.replace(pair, f' {key}="bogus"', 1)))
                add(f"{key} empty", path, put(words.replace(pair, f' {key}=""', 1)))
            if key in NUMBERS:
                add(f"{key} below zero", path, put(words.replace(pair, f' {key}="-3"', 1)))
                add(f"{key} with a fraction", path, put(words.replace(pair, f' {key}="{value}.5"', 1)))
    return made


def defects() -> list[Defect]:
    made = []
    seen: set[tuple[str, str]] = set()
    for name in ("dense", "state", "branch", "loop", "iterator"):
        base = getattr(bases, name)()
        for what, path, text in within(base.text):
            short = re.sub(r".*body/", "", path.removeprefix("net/"))
            if (what, short) in seen:
                continue
            seen.add((what, short))
            at = text.index(MARK_LINE)
            plain = text.replace(MARK_LINE, "")
            line = plain[:at].count("\n")
            lines = plain.split("\n")
            if "<layer " in lines[line] and what in ("unknown child", "text"):
                lines[line] = lines[line] + MARK
            else:
                lines[line] = lines[line] + MARK if "<layer " not in lines[line] else MARK + lines[line]
            kind = what if what.startswith("un") else what.split(" ", 1)[-1]
            title = f"{what} of {short}"
            made.append(marked(f"elements, {kind}", title, "\n".join(lines), base.weights, None, doubt(what, short)))
    return made
