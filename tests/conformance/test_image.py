"""Image ops, against OpenVINO."""

from dataclasses import replace
from functools import partial

import ml_dtypes
import numpy as np
from openvino import opset1, opset8, opset9, opset11
from openvino.utils.node_factory import NodeFactory
from openvino.utils.types import as_nodes

from conformance.harness import ANY_INTEGER, Case, Const, Departure, conformance, with_attribute, without_conversions

random = np.random.default_rng(7)
TRANSFORMS = ("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")
ATTRS = {
    "coordinate_transformation_mode": "half_pixel",
    "nearest_mode": "round_prefer_floor",
    "antialias": False,
    "pads_begin": [0],
    "pads_end": [0],
    "cube_coeff": -0.75,
}
IMAGE = random.standard_normal((1, 2, 5, 6)).astype(np.float32)
BYTES = (random.integers(0, 128, (1, 2, 5, 6)) * 2).astype(np.uint8)  # even, so that no result ends in a half
SPATIAL = Const(np.array([2, 3]))


def interpolate(op, title, data, targets, mode, axes=SPATIAL, dynamic=False, deviates=None, expected=None, **attrs):
    targets = np.asarray(targets)
    by = "scales" if targets.dtype.kind == "f" else "sizes"
    narrow = not isinstance(data, Const) and data.dtype.itemsize == 2
    loose = {"rtol": 2e-3, "atol": 2e-2} if narrow else {"rtol": 1e-4, "atol": 1e-4}
    if by == "scales":
        targets = targets.astype(np.float32)
    if op == "Interpolate-11":

        def build(*nodes):
            return opset11.interpolate(*nodes[:2], mode, by, axes=nodes[2] if len(nodes) > 2 else None, **attrs)

        inputs = [data, Const(targets)]
    else:

        def build(*nodes):
            modes = {"mode": mode, "shape_calculation_mode": by}
            return NodeFactory("opset4").create("Interpolate", as_nodes(*nodes), ATTRS | modes | attrs)

        unused = [np.array([1, 1]), np.array([1, 1], np.float32)]
        inputs = [data, *(Const(targets if (by == "sizes") is (i == 0) else unused[i]) for i in (0, 1))]
    return Case(op, title, build, [*inputs, axes] if axes is not None else inputs, dynamic, deviates, expected, **loose)


CASES = [
    interpolate(
        *(op, f"nearest {rounding} {transform} to {sizes}", IMAGE, sizes, "nearest"),
        coordinate_transformation_mode=transform,
        nearest_mode=rounding,
    )
    for op, sizes in (("Interpolate-4", [9, 4]), ("Interpolate-11", [1, 12]))
    for transform in TRANSFORMS
    for rounding in ROUNDINGS
]
CASES += [
    interpolate(op, f"{mode} {transform} to {sizes}", IMAGE, sizes, mode, coordinate_transformation_mode=transform)
    for op, sizes in (("Interpolate-4", [9, 4]), ("Interpolate-11", [1, 12]))
    for transform in TRANSFORMS
    for mode in ("linear", "linear_onnx", "cubic")
]
CASES += [
    case
    for op in ("Interpolate-4", "Interpolate-11")
    for case in (
        interpolate(op, "scales", IMAGE, [1.7, 0.5], "linear"),
        interpolate(op, "scales, nearest", IMAGE, [0.6, 2.0], "nearest"),
        interpolate(op, "scales, cubic", IMAGE, [2.0, 1.3], "cubic", cube_coeff=-0.5),
        interpolate(op, "pads", IMAGE, [8, 9], "linear_onnx", pads_begin=[0, 0, 1, 2], pads_end=[0, 0, 2, 0]),
        interpolate(op, "pads, nearest", IMAGE, [8, 9], "nearest", pads_begin=[0, 0, 1, 2], pads_end=[0, 0, 2, 0]),
        interpolate(op, "channels last", IMAGE, [4, 5], "linear", Const(np.array([1, 2]))),
        interpolate(op, "axes backwards", IMAGE, [11, 3], "cubic", Const(np.array([3, 2]))),
        interpolate(op, "all axes", IMAGE, [1, 2, 10, 3], "linear_onnx", None),
        interpolate(op, "one axis", IMAGE, [12], "nearest", Const(np.array([3]))),
        interpolate(op, "dynamic", IMAGE, [8, 3], "linear_onnx", dynamic=True),
        interpolate(op, "dynamic scales", IMAGE, [2.0, 0.5], "nearest", dynamic=True),
        interpolate(op, "f16", IMAGE.astype(np.float16), [8, 3], "cubic"),
        interpolate(op, "bf16", IMAGE.astype(ml_dtypes.bfloat16), [8, 3], "nearest"),
        interpolate(op, "u8", BYTES, [7, 11], "linear_onnx"),
        interpolate(op, "u8 cubic saturates", BYTES, [13, 11], "cubic"),
        interpolate(
            *(op, "u8, halves", np.array([[[[0, 1]]]], np.uint8), [1, 3], "linear"),
            deviates=Departure(
                "rounds halves to even; the reference rounds them away from zero",
                "result is i8, u8, i32, i64; mode != nearest; result is rounded from a half",
            ),
            expected=[np.array([[[[0, 1, 1]]]], np.uint8)],
        ),
        interpolate(
            *(op, "i32, halves", np.array([[[[0, -1]]]], np.int32), [1, 3], "cubic"),
            deviates=Departure(
                "rounds halves to even; in mode linear the reference rounds them away from zero",
                "result is i8, u8, i32, i64; mode != nearest; result is rounded from a half",
            ),
            expected=[np.array([[[[0, -1, -1]]]], np.int32)],
        ),
        interpolate(op, "i32", BYTES.astype(np.int32) - 98, [7, 11], "linear"),
        interpolate(
            op,
            "5D",
            random.standard_normal((1, 2, 3, 4, 5)).astype(np.float32),
            [5, 3, 7],
            "linear_onnx",
            Const(np.array([2, 3, 4])),
        ),
    )
]
CASES += [
    interpolate("Interpolate-11", f"bilinear_pillow to {sizes}", IMAGE, sizes, "bilinear_pillow", cube_coeff=-0.5)
    for sizes in ([9, 4], [2, 12], [5, 3])
]
CASES += [
    interpolate("Interpolate-11", f"bicubic_pillow to {sizes}", IMAGE, sizes, "bicubic_pillow", cube_coeff=-0.5)
    for sizes in ([9, 4], [2, 12], [5, 3])
]
CASES += [
    interpolate("Interpolate-11", "bilinear_pillow u8", BYTES, [3, 5], "bilinear_pillow"),
    interpolate("Interpolate-11", "bicubic_pillow u8", BYTES, [3, 11], "bicubic_pillow", cube_coeff=-0.5),
    interpolate("Interpolate-11", "pillow channels last", IMAGE, [4, 5], "bilinear_pillow", Const(np.array([1, 2]))),
    interpolate("Interpolate-11", "pillow 2D without axes", IMAGE[0, 0], [4, 9], "bilinear_pillow", None),
    interpolate("Interpolate-11", "antialias, enlarging", IMAGE, [8, 9], "linear", antialias=True),
]


PADDED = np.arange(12, dtype=np.float32).reshape(1, 2, 3, 2)
CASES += [
    interpolate(
        *("Interpolate-11", "pads, axes 1 and 2", PADDED, [2, 3], "nearest"),
        axes=Const(np.array([1, 2])),
        pads_begin=[0, 0, 1, 0],
        pads_end=[0, 0, 0, 1],
        nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
        deviates=Departure(
            "pads other axes than those that the pads are of, where it resizes axes 1 and 2; "
            "the page has a pad for each axis of the data",
            "rank of image = 4; axes = 1; pads_begin != 0 | pads_end != 0",
        ),
        expected=[np.pad(PADDED, [(0, 0), (0, 0), (1, 0), (0, 1)])[:, :, [0, 1, 2]]],
    ),
    Case(
        *("Interpolate-11", "cubic, channels"),
        partial(opset11.interpolate, mode="cubic", shape_calculation_mode="sizes", axes=np.array([1, 2, 3])),
        [np.ones((1, 1, 1, 2), np.float32), Const(np.array([2, 2, 2]))],
        deviates=Departure(
            "leaves a part of the result as it is in memory where it resizes channels; the page has any axes",
            "mode = cubic; rank of image = 4; axis 1 of image != axis 1 of result",
        ),
        expected=[np.ones((1, 2, 2, 2), np.float32)],
        crashes=True,
    ),
]


def interpolate_1(title, data, sizes, axes=(2, 3), dynamic=False, **attrs):
    attrs = {"axes": list(axes), "pads_begin": [0] * data.ndim, "pads_end": [0] * data.ndim} | attrs

    def build(image, output_shape):
        return opset1.interpolate(image, output_shape, attrs)

    return Case("Interpolate-1", title, build, [data, Const(np.array(sizes))], dynamic, rtol=1e-4, atol=1e-4)


VOLUME = random.standard_normal((1, 2, 3, 4, 5)).astype(np.float32)
CASES += [
    interpolate_1(f"{mode} {align} to {sizes}", IMAGE, sizes, mode=mode, align_corners=align)
    for mode in ("nearest", "linear", "cubic")
    for align in (True, False)
    for sizes in ([9, 4], [3, 12])
]
CASES += [
    interpolate_1("dynamic", IMAGE, [8, 9], mode="linear", dynamic=True),
    interpolate_1("5D", VOLUME, [6, 3, 4], (2, 3, 4), mode="linear", align_corners=False),
    interpolate_1("5D aligned", VOLUME, [6, 3, 4], (2, 3, 4), mode="linear", align_corners=True),
    interpolate_1("3D", VOLUME[0, 0], [6, 3], (1, 2), mode="linear", align_corners=False),
]


def grid_sample(title, data, grid, dynamic=False, deviates=None, expected=None, **attrs):
    build = partial(opset9.grid_sample, attributes=attrs)
    return Case("GridSample-9", title, build, [data, grid], dynamic, deviates, expected, rtol=1e-4, atol=1e-4)


GRID = random.uniform(-1.9, 1.9, (1, 4, 5, 2)).astype(np.float32)
CASES += [
    grid_sample(f"{mode} {padding} {aligned}", IMAGE, GRID, mode=mode, padding_mode=padding, align_corners=aligned)
    for mode in ("bilinear", "bicubic", "nearest")
    for padding in ("zeros", "border", "reflection")
    for aligned in (False, True)
]
CASES += [
    grid_sample("two images, dynamic", np.repeat(IMAGE, 2, 0), np.concatenate([GRID, -GRID]), dynamic=True),
    grid_sample("defaults", IMAGE, GRID / 2),
    grid_sample("i32 of one colour", np.full((1, 2, 6, 7), 36, np.int32), GRID / 4),
]
STEPS = np.array([-0.8, -0.55, -0.25, 0.1, 0.35], np.float32)  # between the pixels of a row
CASES += [
    grid_sample(
        *(f"{type} between pixels", np.array([[[[0, 7, 14]]]], dtype), np.stack([STEPS, 0 * STEPS], -1)[None, None]),
        padding_mode="border",
        deviates=Departure(
            "rounds to the nearest; the reference truncates", "data is i8, u8; mode = bilinear, bicubic"
        ),
        expected=[np.trunc(np.interp(STEPS * 1.5 + 1, [0, 1, 2], [0, 7, 14])).astype(dtype)[None, None, None]],
    )
    for type, dtype in (("i8", np.int8), ("u8", np.uint8))
]


def colour(op, title, *planes, dynamic=False, **rest):
    make = {
        "NV12toRGB-8": opset8.nv12_to_rgb,
        "NV12toBGR-8": opset8.nv12_to_bgr,
        "I420toRGB-8": opset8.i420_to_rgb,
        "I420toBGR-8": opset8.i420_to_bgr,
    }[op]
    return Case(op, title, make, list(planes), dynamic, rtol=1e-4, atol=1e-3, **rest)


def plane(*shape, dtype=np.uint8):
    return random.integers(0, 256, shape).astype(dtype)


for op in ("NV12toRGB-8", "NV12toBGR-8", "I420toRGB-8", "I420toBGR-8"):
    halves = [(2, 2, 3, 2)] if op.startswith("NV12") else [(2, 2, 3, 1)] * 2
    CASES += [
        colour(op, "one tensor", plane(2, 6, 6, 1)),
        colour(op, "planes", plane(2, 4, 6, 1), *(plane(*half) for half in halves)),
        colour(op, "f32", plane(2, 6, 6, 1, dtype=np.float32)),
        colour(
            op, "f32 planes, dynamic", *(plane(*s, dtype=np.float32) for s in [(2, 4, 6, 1), *halves]), dynamic=True
        ),
        colour(
            *(op, "u8, halves", np.array([4, 4, 4, 4, 154, 154], np.uint8).reshape(1, 3, 2, 1)),
            deviates=Departure(
                "rounds halves to even; the reference rounds them away from zero",
                "data is u8; result is rounded from a half",
            ),
            expected=[np.tile(np.array([28, 0, 39] if "RGB" in op else [39, 0, 28], np.uint8), (1, 2, 2, 1))],
        ),
    ]

# the layers and shapes are OpenVINO's, the pixels those of the reference kernel
PIXELS = np.array([[[[200, 80, 60], [10, 250, 0]], [[0, 0, 255], [255, 255, 255]]]], np.uint8)


def to_nv12(op, title, dtype, luma, colours, single_plane=True, dynamic=False):
    def build(image):
        return NodeFactory("opset17").create(op.removesuffix("-17"), as_nodes(image), {"single_plane": single_plane})

    image = PIXELS if op.startswith("RGB") else PIXELS[..., ::-1]
    planes = [np.array(luma, dtype).reshape(1, 2, 2, 1), np.array(colours, dtype).reshape(1, 1, 1, 2)]
    if single_plane:
        planes = [np.concatenate([planes[0], planes[1].reshape(1, 1, 2, 1)], axis=1)]
    reason = Departure("refuses to compute the op, which has no kernel; the page defines it")
    return Case(op, title, build, [image.astype(dtype)], dynamic, reason, planes)


BYTES_OF_PIXELS = ([[114, 145], [41, 235]], [131, 115])
FLOATS_OF_PIXELS = ([[113.6, 144.57], [40.99, 235.045]], [130.79375, 115.09625])
CASES += [
    case
    for op in ("RGBtoNV12-17", "BGRtoNV12-17")
    for case in (
        to_nv12(op, "one tensor", np.uint8, *BYTES_OF_PIXELS),
        to_nv12(op, "planes", np.uint8, *BYTES_OF_PIXELS, single_plane=False),
        to_nv12(op, "f32, dynamic", np.float32, *FLOATS_OF_PIXELS, dynamic=True),
        to_nv12(op, "f64 planes, dynamic", np.float64, *FLOATS_OF_PIXELS, single_plane=False, dynamic=True),
    )
]

RISING = np.arange(1, 8, dtype=np.float32).reshape(1, 1, 1, 7)
CASES += [
    interpolate(
        *(op, f"antialias, shrinking{of}", RISING, sizes, "linear"),
        antialias=True,
        deviates=Departure(
            "widens no triangle when shrinking; the page and the reference do with antialias",
            f"antialias = true; mode = linear; shape of result < shape of {image} + pads_begin + pads_end",
        ),
        expected=[np.array(expected, np.float32)],
        **pads,
    )
    for op, image in (("Interpolate-4", "data"), ("Interpolate-11", "image"))
    for of, sizes, pads, expected in (
        ("", [1, 3], {}, [[[[13 / 7, 4, 43 / 7]]]]),
        (" what is padded", [1, 3], {"pads_begin": [0] * 4, "pads_end": [0, 0, 0, 2]}, [[[[2.25, 5, 2.5]]]]),
    )
]
CASES += [
    interpolate(
        *("Interpolate-11", "bicubic_pillow with cube_coeff", np.array([[[[0, 0, 64, 0]]]], np.float32), [1, 2]),
        "bicubic_pillow",
        cube_coeff=-0.75,
        deviates=Departure(
            "computes with -0.5 whatever cube_coeff says; the page has it as a parameter",
            "mode = bicubic_pillow; cube_coeff != -0.5",
        ),
        expected=[np.array([[[[8.751020, 29.387755]]]], np.float32)],
    )
]

LINE = np.array([[[[1, 3]]]], np.float32)
ENLARGED = [np.array([[[[1, 1, 3, 3]]]], np.float32)]
FEW_TYPES = "the page has any integer type"


def of_types(op, title, deviates, sizes=np.int64, scales=np.float32, axes=np.int64, data=np.float32, by="sizes"):
    """A line whose elements are doubled, by inputs of types that OpenVINO's reader refuses."""
    known = {"sizes": "i64", "scales": "f32", "axes": "i64"}
    given = {"sizes": np.array([4], sizes), "scales": np.array([2], scales), "axes": np.array([3], axes)}
    names = ["sizes", "scales", "axes"] if op == "Interpolate-4" else [by, "axes"]

    def build(image, *others):
        taken = [opset1.convert(node, known[name]) for node, name in zip(others, names, strict=True)]
        if op == "Interpolate-11":
            return opset11.interpolate(opset1.convert(image, "f32"), taken[0], "nearest", by, axes=taken[1])
        nodes = as_nodes(opset1.convert(image, "f32"), *taken)
        return NodeFactory("opset4").create(
            "Interpolate", nodes, ATTRS | {"mode": "nearest", "shape_calculation_mode": by}
        )

    inputs = [Const(LINE.astype(data)), *(Const(given[name]) for name in names)]
    expected = [ENLARGED[0].astype(data)]
    return Case(op, title, build, inputs, False, deviates, expected, edit=without_conversions)


CASES += [
    case
    for op, data, sizes, scales in (
        ("Interpolate-4", "data", "sizes", "scales"),
        ("Interpolate-11", "image", "scales_or_sizes", "scales_or_sizes"),
    )
    for case in (
        of_types(
            *(op, "f64 scales", Departure("refuses scales of f64; the page has any float type", f"{scales} is f64")),
            scales=np.float64,
            by="scales",
        ),
        of_types(
            *(op, "u8 sizes", Departure(f"refuses sizes of few bits; {FEW_TYPES}", f"{sizes} is i8, i16, u8, u16")),
            sizes=np.uint8,
        ),
        of_types(
            *(op, "u8 axes", Departure(f"refuses axes of few bits; {FEW_TYPES}", "axes is i8, i16, u8, u16")),
            axes=np.uint8,
        ),
        of_types(
            *(
                op,
                "u16",
                Departure("refuses i16, u16, u32 and u64; the page has any type", f"{data} is i16, u16, u32, u64"),
            ),
            data=np.uint16,
        ),
        interpolate(
            *(op, "u8, folded", Const(np.array([[[[10, 13, 20, 27]]]], np.uint8)), [1, 7], "linear_onnx"),
            deviates=Departure(
                "cuts integers towards 0 where it computes them before a run; in runs they are rounded",
                f"layer is constant; {data} is {ANY_INTEGER}; mode = linear_onnx, cubic; result is rounded",
            ),
            expected=[np.array([[[[10, 11, 13, 17, 21, 25, 27]]]], np.uint8)],
        ),
    )
]


def halved(case):
    """The same, and half of it in f32."""
    half = opset1.constant(np.array(0.5, np.float32))
    return replace(
        case, build=lambda *nodes: opset1.multiply(opset1.convert(case.build(*nodes).output(0), "f32").output(0), half)
    )


CASES += [
    halved(
        interpolate(
            *(op, "u8 that becomes f32", np.array([[[[0, 254, 254, 0]]]], np.uint8), [1, 6], "cubic"),
            dynamic=True,
            deviates=Departure(
                "neither rounds nor saturates integers, as it is computed in one with what reads it; "
                "the page has the type of the data",
                f"{data} is i8, u8; {data} is dynamic; mode != nearest; result is not handed out; "
                "(it becomes f32, and goes into element-wise ops)",
            ),
            expected=[np.array([[[[0, 63.5, 127.5, 127.5, 63.5, 0]]]], np.float32)],
        )
    )
    for op, data in (("Interpolate-4", "data"), ("Interpolate-11", "image"))
]
DOWN = Const(np.array([3, 2]))
FOUR_ROWS = np.array(
    [[[217, 163, 130, 69, 78], [10, 19, 4, 44, 208], [166, 233, 128, 155, 248], [186, 161, 139, 143, 239]]], np.uint8
)[np.newaxis]
BACKWARDS = np.array(
    [[[159, 135, 107, 92, 60, 77, 111], [77, 108, 110, 61, 78, 161, 241], [190, 194, 179, 143, 142, 193, 249]]],
    np.uint8,
)[np.newaxis]
CASES += [
    interpolate(
        *("Interpolate-11", "pillow, axes backwards", FOUR_ROWS, [7, 3], "bicubic_pillow", DOWN),
        cube_coeff=-0.5,
        deviates=Departure(
            "goes along the last axis first whatever their order is; the reference goes along the second one first",
            f"mode = bicubic_pillow, bilinear_pillow; image is {ANY_INTEGER}; axes has numbers out of order",
        ),
        expected=[BACKWARDS],
    )
]


def with_axes_backwards(root):
    """An edit for what OpenVINO does not write: it sorts axes."""
    with_attribute("axes", "3,2")(root)
    (layer,) = (layer for layer in root.iter("layer") if layer.get("type") == "Interpolate")
    ends = {(edge.get("from-layer"), edge.get("to-layer")) for edge in root.iter("edge")}
    results = {reader for source, reader in ends if source == layer.get("id")}
    readers = [each for each in root.iter("layer") if each.get("id") in results]
    for port in [*layer.findall("output/port"), *(port for each in readers for port in each.findall("input/port"))]:
        sizes = port.findall("dim")
        sizes[2].text, sizes[3].text = sizes[3].text, sizes[2].text


CASES += [
    replace(
        interpolate_1("axes backwards", np.array([[[[1, 3]]]], np.float32), [4, 2], mode="nearest"),
        deviates=Departure(
            "takes the sizes for axes in ascending order; the page has a size for each axis",
            "axes has numbers out of order",
        ),
        expected=[np.array([[[[1, 1, 1, 3], [1, 1, 1, 3]]]], np.float32)],
        edit=with_axes_backwards,
    ),
    replace(
        interpolate_1(
            *("one pad", np.array([[[[1, 3]]]], np.float32), [2, 3]), mode="nearest", pads_begin=[1], pads_end=[0]
        ),
        deviates=Departure(
            "takes one pad for that of the first axis; the page has it for each axis that is resized",
            "size of pads_begin = 1; pads_begin > 0 | pads_end > 0",
        ),
        expected=[np.array([[[[0, 0, 0], [0, 1, 3]]]], np.float32)],
    ),
]

test_agrees_with_openvino = conformance(CASES)
