"""Defects of what layers hold: attributes, constants, strings, and the file of weights."""

from defects import bases
from defects.planting import MARK, Base, Defect, marked, plant

CONV = '<data strides="1,1" dilations="1,1" pads_begin="1,1" pads_end="1,1" auto_pad="explicit"/>'

ATTRIBUTES: list[tuple[str, str | None, str, str]] = [
    ("strides in capitals", "conv", 'strides="', 'Strides="'),
    ("stride for strides", "conv", 'strides="', 'stride="'),
    ("dilation for dilations", "conv", 'dilations="', 'dilation="'),
    ("pads for pads_begin", "conv", 'pads_begin="', 'pads="'),
    ("a hyphen for an underscore", "conv", 'pads_begin="', 'pads-begin="'),
    ("brackets around a list", "conv", 'strides="1,1"', 'strides="[1,1]"'),
    ("semicolons in a list", "conv", 'strides="1,1"', 'strides="1;1"'),
    ("blanks for commas", "conv", 'strides="1,1"', 'strides="1 1"'),
    ("two commas", "conv", 'strides="1,1"', 'strides="1,,1"'),
    ("an empty list", "conv", 'strides="1,1"', 'strides=""'),
    ("fractions in a list", "conv", 'strides="1,1"', 'strides="1.5,1"'),
    ("a number beyond 64 bits", "conv", 'strides="1,1"', 'strides="99999999999999999999,1"'),
    ("pads of gigabytes", "conv", 'pads_begin="1,1"', 'pads_begin="9223372036854775807,1"'),
    ("valid that is spelt otherwise", "conv", 'auto_pad="explicit"', 'auto_pad="notset"'),
    ("an attribute that this op has not", "conv", 'auto_pad="explicit"', 'auto_pad="explicit" group="2"'),
    ("an attribute of ONNX", "conv", 'auto_pad="explicit"', 'auto_pad="explicit" kernel_shape="3,3"'),
    ("kernel of an older format", "pool", 'kernel="2,2"', 'kernel-x="2" kernel-y="2"'),
    ("kernel_size for kernel", "pool", 'kernel="2,2"', 'kernel_size="2,2"'),
    ("rounding for rounding_type", "pool", 'rounding_type="floor"', 'rounding-type="floor"'),
    ("an enumeration with a blank", "pool", 'rounding_type="floor"', 'rounding_type="floor "'),
    ("an empty enumeration", "pool", 'auto_pad="explicit"', 'auto_pad=""'),
    ("a boolean with a blank", "flat", 'special_zero="true"', 'special_zero=" true"'),
    ("a boolean yes", "flat", 'special_zero="true"', 'special_zero="yes"'),
    ("a boolean that is empty", "flat", 'special_zero="true"', 'special_zero=""'),
    ("a boolean 1.0", "flat", 'special_zero="true"', 'special_zero="1.0"'),
    ("no data where it is needed", "conv", "^" + CONV, ""),
    ("an int with a plus", "joined", 'axis="1"', 'axis="+1"'),
    ("an int with a fraction", "joined", 'axis="1"', 'axis="1.0"'),
    ("an int in hexadecimal", "joined", 'axis="1"', 'axis="0x1"'),
    ("an empty int", "joined", 'axis="1"', 'axis=""'),
    ("a word for an int", "joined", 'axis="1"', 'axis="C"'),
    ("two numbers for an int", "joined", 'axis="1"', 'axis="1,2"'),
    ("an int of letters behind", "joined", 'axis="1"', 'axis="1x"'),
    ("axes for axis", "joined", 'axis="1"', 'axes="1"'),
    ("num_split for num_splits", "parts", 'num_splits="2"', 'num_split="2"'),
    ("axis as an attribute", "parts", 'num_splits="2"', 'num_splits="2" axis="1"'),
    ("negative parts", "parts", 'num_splits="2"', 'num_splits="-2"'),
    ("batch_dims with a hyphen", "picked", 'batch_dims="0"', 'batch-dims="0"'),
    ("axis of Gather as an attribute", "picked", 'batch_dims="0"', 'batch_dims="0" axis="1"'),
    ("shape of floats", "pixels", 'shape="1,3,8,8"', 'shape="1.0,3,8,8"'),
    ("shape with letters", "pixels", 'shape="1,3,8,8"', 'shape="N,3,8,8"'),
    ("shape with an open end", "pixels", 'shape="1,3,8,8"', 'shape="1,3,8,"'),
    ("shape with two commas", "pixels", 'shape="1,3,8,8"', 'shape="1,,3,8,8"'),
    ("shape with x", "pixels", 'shape="1,3,8,8"', 'shape="1x3x8x8"'),
    ("shape with parentheses", "pixels", 'shape="1,3,8,8"', 'shape="(1,3,8,8)"'),
    ("shape with one bracket", "pixels", 'shape="1,3,8,8"', 'shape="[1,3,8,8"'),
    ("shape with a negative size", "pixels", 'shape="1,3,8,8"', 'shape="1,-3,8,8"'),
    ("an interval that runs backwards", "pixels", 'shape="1,3,8,8"', 'shape="5..3,3,8,8"'),
    ("an interval with blanks", "pixels", 'shape="1,3,8,8"', 'shape="1 .. 2,3,8,8"'),
    ("an interval with three points", "pixels", 'shape="1,3,8,8"', 'shape="1...2,3,8,8"'),
    ("dots behind sizes", "pixels", 'shape="1,3,8,8"', 'shape="1,..."'),
    ("a shape beyond 64 bits", "pixels", 'shape="1,3,8,8"', 'shape="99999999999999999999,3,8,8"'),
    ("no shape", "pixels", 'shape="1,3,8,8" ', ""),
    ("no element_type", "pixels", ' element_type="f32"', ""),
    ("the element type of ports", "pixels", 'element_type="f32"', 'element_type="FP32"'),
    ("float32", "pixels", 'element_type="f32"', 'element_type="float32"'),
    ("an empty element type", "pixels", 'element_type="f32"', 'element_type=""'),
    ("element type with a blank", "pixels", 'element_type="f32"', 'element_type="f32 "'),
    ("bool", "pixels", 'element_type="f32"', 'element_type="bool"'),
    ("precision for element_type", "pixels", 'element_type="f32"', 'precision="f32"'),
    ("dims for shape", "pixels", 'shape="1,3,8,8"', 'dims="1,3,8,8"'),
]  # fmt: skip
ARGUABLE = {
    "an enumeration with a blank": "whether blanks are trimmed is not written",
    "an int in hexadecimal": "blame is sure, not what it is read as",
    "shape with one bracket": "brackets are optional",
    "pads of gigabytes": "a legal number, nobody can compute it",
    "element type with a blank": "whether blanks are trimmed is not written",
    "shape with an open end": "one trailing comma is fine in lists of attributes",
}

CONSTS: list[tuple[str, str | None, str, str]] = [
    ("no offset", "weights", ' offset="0"', ""),
    ("no size", "weights", ' size="48"', ""),
    ("no shape", "weights", ' shape="3,4"', ""),
    ("no element_type", "weights", 'element_type="f32" ', ""),
    ("no data", "weights", '^<data element_type="f32" shape="3,4" offset="0" size="48"/>', ""),
    ("a negative offset", "weights", 'offset="0"', 'offset="-4"'),
    ("an offset that is a word", "weights", 'offset="0"', 'offset="start"'),
    ("an empty offset", "weights", 'offset="0"', 'offset=""'),
    ("an offset beyond 64 bits", "weights", 'offset="0"', 'offset="99999999999999999999"'),
    ("an offset at the end", "weights", 'offset="0"', 'offset="64"'),
    ("an offset behind the end", "weights", 'offset="0"', 'offset="1000"'),
    ("the last bytes beyond the end", "bias", 'offset="48"', 'offset="52"'),
    ("an offset that overflows with the size", "weights", 'offset="0"', 'offset="18446744073709551600"'),
    ("an offset in hexadecimal", "weights", 'offset="0"', 'offset="0x0"'),
    ("an offset with a fraction", "weights", 'offset="0"', 'offset="0.5"'),
    ("a size too small", "weights", 'size="48"', 'size="44"'),
    ("a size of zero", "weights", 'size="48"', 'size="0"'),
    ("a negative size", "weights", 'size="48"', 'size="-48"'),
    ("a size beyond the file", "weights", 'size="48"', 'size="4800"'),
    ("a size that is a word", "weights", 'size="48"', 'size="all"'),
    ("an empty size", "weights", 'size="48"', 'size=""'),
    ("a size in elements", "weights", 'size="48"', 'size="12"'),
    ("a size larger than needed", "weights", 'size="48"', 'size="52"'),
    ("a shape larger than the size", "weights", 'shape="3,4"', 'shape="3,5"'),
    ("a shape smaller than the size", "weights", 'shape="3,4"', 'shape="3,3"'),
    ("a shape of floats", "weights", 'shape="3,4"', 'shape="3.0,4"'),
    ("a shape with an unknown size", "weights", 'shape="3,4"', 'shape="?,4"'),
    ("a shape with minus one", "weights", 'shape="3,4"', 'shape="-1,4"'),
    ("a shape in brackets", "weights", 'shape="3,4"', 'shape="[3,4]"'),
    ("a shape with a semicolon", "weights", 'shape="3,4"', 'shape="3;4"'),
    ("a shape of any rank", "weights", 'shape="3,4"', 'shape="..."'),
    ("a shape with an interval", "weights", 'shape="3,4"', 'shape="3..3,4"'),
    ("a shape whose product overflows", "weights", 'shape="3,4"', 'shape="4294967296,4294967296,4"'),
    ("F32 in capitals", "weights", 'element_type="f32"', 'element_type="F32"'),
    ("FP32", "weights", 'element_type="f32"', 'element_type="FP32"'),
    ("half the bytes are needed", "weights", 'element_type="f32"', 'element_type="f16"'),
    ("twice the bytes are needed", "weights", 'element_type="f32"', 'element_type="f64"'),
    ("dynamic type", "weights", 'element_type="f32"', 'element_type="dynamic"'),
    ("a type of no list", "weights", 'element_type="f32"', 'element_type="f31"'),
    ("an empty type", "weights", 'element_type="f32"', 'element_type=""'),
    ("strings in bytes of floats", "weights", 'element_type="f32"', 'element_type="string"'),
    ("integers of the same width", "weights", 'element_type="f32"', 'element_type="i32"'),
    ("an inline value", "weights", 'size="48"', 'size="48" value="1"'),
    ("precision for element_type", "weights", 'element_type="f32"', 'precision="FP32"'),
    ("an attribute that is not known", "weights", 'size="48"', 'size="48" endian="big"'),
    ("bytes of another constant", "weights", 'offset="0"', 'offset="16"'),
]  # fmt: skip
CONST_ARGUABLE = {
    "a size larger than needed": "legal, but nobody writes it",
    "a shape smaller than the size": "blame may be the readers of the shape",
    "half the bytes are needed": "blame may also be readers of another type",
    "bytes of another constant": "overlap is legal",
    "integers of the same width": "blame is the port or the reader: the bytes may be either",
}

STRINGS: list[tuple[str, int, bytes, str]] = [
    ("a count of three for two", 0, b"\x03\0\0\0", ""),
    ("a count of one for two", 0, b"\x01\0\0\0", "loads with the shape"),
    ("a negative count", 0, b"\xff\xff\xff\xff", ""),
    ("a count of 2^31-1", 0, b"\xff\xff\xff\x7f", ""),
    ("a first begin that is not zero", 4, b"\x01\0\0\0", ""),
    ("an end behind the bytes", 12, b"\x40\0\0\0", ""),
    ("a negative end", 8, b"\xfe\xff\xff\xff", ""),
    ("ends that run backwards", 8, b"\x05\0\0\0\x02\0\0\0", ""),
    ("bytes that are no UTF-8", 16, b"\xff\xfe", "strings are bytes to some"),
    ("a character cut in two", 16, b"a\xc3", "strings are bytes to some"),
]  # fmt: skip


def strings() -> list[Defect]:
    base = bases.texts()
    text = base.text.replace('<layer id="0"', MARK + '<layer id="0"')
    made = []
    for name, at, patch, arguable in STRINGS:
        data = bytearray(base.weights)
        data[at : at + len(patch)] = patch
        made.append(marked("strings", name, text, bytes(data), "words", arguable))
    short = text.replace('size="21"', 'size="6"')
    made.append(marked("strings", "a header cut short", short, base.weights, "words"))
    made.append(marked("strings", "a size of zero", text.replace('size="21"', 'size="0"'), base.weights, "words"))
    made.append(marked("strings", "symbols cut short", text.replace('size="21"', 'size="19"'), base.weights, "words"))
    wide = text.replace('element_type="string" shape="2"', 'element_type="string" shape="3"')
    made.append(marked("strings", "a shape of three for two", wide, base.weights, "words"))
    return made


def files() -> list[Defect]:
    """The .bin as a whole; blamed is the constant that cannot be read."""
    base = bases.dense()
    first = base.text.replace('<layer id="1"', MARK + '<layer id="1"')
    last = base.text.replace('<layer id="3"', MARK + '<layer id="3"')
    both = first.replace('<layer id="3"', MARK + '<layer id="3"')
    nan = b"\0\0\xc0\x7f" + base.weights[4:]
    infinite = base.weights[:-4] + b"\0\0\x80\x7f"
    return [
        marked("weights file", "no file", both, None),
        marked("weights file", "an empty file", both, b""),
        marked("weights file", "one byte too short", last, base.weights[:-1], "bias"),
        marked("weights file", "half of it", both, base.weights[: len(base.weights) // 2]),
        marked("weights file", "NaN among the weights", first, nan, "weights"),
        marked("weights file", "infinity among the weights", last, infinite, "bias"),
        marked(
            "weights file",
            "a pointer of Git LFS",
            both,
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
        ),
        marked("weights file", "the .xml by mistake", first, base.text.encode()[:64], None, "any bytes are numbers"),
    ]


def inside() -> list[Defect]:
    """Attributes each on a line of its own: the line of the attribute is to be blamed."""
    base = bases.image()
    spread = (
        "<data\n"
        + "\n".join(f"\t\t\t\t{word}" for word in CONV.removeprefix("<data ").removesuffix("/>").split(" "))
        + "\n\t\t\t/>"
    )
    wide = Base(base.text.replace(CONV, spread), base.weights)
    return plant(
        "attributes on lines", wide,
        [
            ("strides of three", "conv", 'strides="1,1"', 'strides="1,1,1"'),
            ("dilations of a word", "conv", 'dilations="1,1"', 'dilations="a,1"'),
            ("pads_end misspelt", "conv", 'pads_end="', 'pads_ends="'),
            ("auto_pad that is none", "conv", 'auto_pad="explicit"', 'auto_pad="some"'),
            ("negative pads", "conv", 'pads_begin="1,1"', 'pads_begin="-1,x"'),
            ("an attribute too much", "conv", 'auto_pad="explicit"', 'auto_pad="explicit"\n\t\t\t\t¤pad="1"'),
        ],
        {"strides of three": "blame may be the layer: two constraints speak of it"},
    )  # fmt: skip


def defects() -> list[Defect]:
    return [
        *plant("attributes", bases.image(), ATTRIBUTES, ARGUABLE),
        *inside(),
        *plant("constants", bases.dense(), CONSTS, CONST_ARGUABLE),
        *strings(),
        *files(),
    ]
