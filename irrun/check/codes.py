"""The table of diagnostic codes, with an explanation of each for `irrun explain`; what finds them is elsewhere."""

from __future__ import annotations

from irrun.records import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """What a code stands for; `example` is a broken snippet and the mended one.

    `by_place` says that its messages tell names and numbers of the place, and nothing else that sets them apart;
    `anywhere` that what its message says has one cause whatever layers it is said of.
    """

    title: str
    explanation: str
    example: tuple[str, str]
    by_place: bool = False
    anywhere: bool = False


CODES: dict[str, Code] = {
    "E101": Code(
        "not well-formed XML",
        "The text breaks the rules of XML. Where it leaves one reading all the same, such as with a plain & in a name "
        "or a value without quotes, it is read so and the rest is checked; else nothing after this place can be "
        "trusted, and reading stops here. Of an attribute that is given twice OpenVINO reads the first. "
        "OpenVINO's parser is laxer about some of it (attributes given twice, undefined entities, bytes that are "
        "not UTF-8), other tools are not. Samples on the operation specification pages are abbreviated with `...` "
        "and have ports that are closed too early: complete them before you use them.",
        ('<layer ... type="ReLU">', '<layer id="1" name="relu" type="ReLU" version="opset1">'),
    ),
    "E102": Code(
        "no such file",
        "There is nothing at the path of the model. Relative paths are taken from the current directory. An IR is "
        "an .xml file, with the weights in a .bin file of the same name beside it.",
        ("irrun validate modle.xml", "irrun validate model.xml"),
    ),
    "E103": Code(
        "not a readable file",
        "The path leads to a directory, a pipe or a device, or the system refuses to read it. irrun opens regular "
        "files only, as anything else may block or never end. Give the .xml file itself, and check its "
        "permissions; `irrun validate` also takes a directory for the models in it, and - for standard input.",
        ('irrun.validate("models/")', 'irrun.validate("models/model.xml")'),
    ),
    "E104": Code(
        "file beyond the limits",
        "The file is larger, has more elements or nests them deeper than any real IR, so reading it could exhaust "
        "the memory. The limits are far above the largest language models. Such a file is either damaged or not "
        "an IR.",
        ("<a><a><a>... 300 deep", '<net name="m" version="11"><layers>...</layers><edges>...</edges></net>'),
    ),
    "E105": Code(
        "DOCTYPE declaration",
        "A document type declaration can define entities that grow without bound or fetch other files, so irrun "
        "passes over it and expands nothing. OpenVINO expands no entities and leaves them as they are "
        "written. An IR needs no declaration: delete it.",
        ('<!DOCTYPE net [<!ENTITY n "7">]><net version="11"/>', '<net version="11"/>'),
    ),
    "E106": Code(
        "content after the root element",
        "An XML file has one root element, here <net>, and nothing but comments after it. OpenVINO ignores the "
        "rest, so a second model in the same file would be lost without a word. Often two files were written one "
        "over the other.",
        ('<net version="11">...</net></net>', '<net version="11">...</net>'),
    ),
    "E107": Code(
        "not an .xml file",
        "The file is not XML text. Usually the .bin, which holds only the weights, was given in place of the "
        ".xml, or a model of another format, which must be converted to an IR first. Nothing but comments and the XML "
        "declaration may stand before the root element, either.",
        ("irrun validate model.bin", "irrun validate model.xml"),
    ),
    "E108": Code(
        "the root element is not <net>",
        "An IR is one element <net> that holds <layers> and <edges>; OpenVINO compares the tag without regard to "
        "case. A lone <layer>, as in the operation specification, is not a model: wrap it, with Parameters and "
        "Results.",
        ('<layer id="0" .../>', '<net version="11"><layers><layer id="0" .../></layers><edges/></net>'),
    ),
    "E109": Code(
        "unsupported IR version",
        "OpenVINO reads versions 10 and 11 and rejects all others. Version 10 differs in that rt_info is ignored "
        "and inputs and outputs are converted to the types of the old API. Files up to version 9 stem from before "
        "2020 and describe layers in another way: convert the original model again.",
        ('<net name="m" version="7">', '<net name="m" version="11">'),
    ),
    "E110": Code(
        "execution graph",
        "The file was written from a compiled model: its layers have times and kernels of a device, but no opset "
        "versions and no weights. It is a report, not a model, and neither OpenVINO nor irrun can run it. Use the "
        "IR that was compiled; `irrun inspect` tells what stands in the report.",
        ('<layer id="0" name="x" type="Input"><data execTimeMcs="3"/></layer>', "the model.xml that was compiled"),
    ),
    "E111": Code(
        "no <layers>",
        "A model, or a body, keeps its layers in <layers>. Without any in it OpenVINO loads a model of no layers, "
        "which fails only much later or does nothing. Check the spelling and the nesting.",
        ('<net version="11"><layer .../></net>', '<net version="11"><layers><layer .../></layers><edges/></net>'),
    ),
    "E112": Code(
        "no <edges>",
        "Connections between layers stand in <edges>, apart from the layers. There are layers with input ports "
        "here, but no <edges>, or none in it, so none has an input. Bodies of Loop, TensorIterator and If need their "
        "own.",
        ("<net><layers>...</layers></net>", "<net><layers>...</layers><edges><edge .../></edges></net>"),
    ),
    "E201": Code(
        "missing attribute",
        "A layer needs `id`, `name`, `type` and `version`; a port `id`; an edge both layers and both ports; an "
        "entry of a port map `external_port_id` and `internal_layer_id`. OpenVINO rejects the file without saying "
        "where.",
        ('<layer id="3" name="relu" type="ReLU">', '<layer id="3" name="relu" type="ReLU" version="opset1">'),
        anywhere=True,
    ),
    "E202": Code(
        "not an integer",
        "Ids are whole numbers from 0 to 2**63 - 1; the positions of a port map (`axis`, `start`, `end`, "
        "`stride`, `part_size`) may be negative. Anything else cannot name a layer or a port, and OpenVINO "
        "rejects it.",
        ('<edge from-layer="relu" .../>', '<edge from-layer="3" .../>'),
    ),
    "E203": Code(
        "layer id used twice",
        "Edges name layers by id, so an id belongs to one layer of a graph. OpenVINO keeps only the last layer of "
        "an id and forgets the others, and edges meant for them go to it. A body has ids of its own, which may "
        "repeat those outside.",
        ('<layer id="3" .../> <layer id="3" .../>', '<layer id="3" .../> <layer id="4" .../>'),
    ),
    "E204": Code(
        "port id used twice",
        "Edges name ports by id, so within the <input> of a layer, and within its <output>, each id stands once. "
        "Of two ports with one id only the first can have an edge.",
        ('<port id="0"/> <port id="0"/>', '<port id="0"/> <port id="1"/>'),
    ),
    "E205": Code(
        "edge to or from a missing layer",
        "The edge names a layer id that this graph does not have. OpenVINO ignores an edge into a missing layer "
        "and fails with an unrelated message on one from it. Edges cannot cross into bodies: values enter these "
        "by port maps.",
        ('<edge from-layer="99" .../>', '<edge from-layer="9" .../>'),
        anywhere=True,
    ),
    "E206": Code(
        "edge to or from a missing port",
        "The layer exists, but has no port of that id on that side. `from-port` names an output port, `to-port` an "
        "input port. Ids, not positions, count: outputs usually go on where the inputs end, so the output of a layer "
        "with two inputs has id 2. A Result has no outputs, though old files declare one.",
        ('<edge from-layer="3" from-port="0" .../>', '<edge from-layer="3" from-port="2" .../>'),
    ),
    "E207": Code(
        "two edges into one port",
        "An input has one source. OpenVINO counts edges to find how many inputs a layer has, and then fails on an "
        "index that is one too large. Delete one of the edges or let it lead to the port that it was meant for.",
        ('<edge ... to-layer="3" to-port="0"/> twice', '<edge ... to-port="0"/> <edge ... to-port="1"/>'),
    ),
    "E208": Code(
        "input port without an edge",
        "The layer declares the input, but nothing leads there. OpenVINO reports it as an inconsistent layer or "
        "an index out of range. An optional input that is not used is left out altogether, port and edge.",
        ('<port id="1"/> and no edge to it', '<edge from-layer="0" from-port="0" to-layer="3" to-port="1"/>'),
    ),
    "E209": Code(
        "cycle",
        "Each of these layers waits for another, so none can run. OpenVINO fails with a node that is not in the "
        "graph. Repetition is expressed by Loop or TensorIterator, recurrence between runs by ReadValue and "
        "Assign.",
        (
            '<edge from-layer="1" ... to-layer="2" .../> <edge from-layer="2" ... to-layer="1" .../>',
            '<edge from-layer="0" ... to-layer="1" .../> <edge from-layer="1" ... to-layer="2" .../>',
        ),
    ),
    "E210": Code(
        "missing or unknown output precision",
        "Every output port states the type of its elements as `precision`; OpenVINO rejects unknown ones such as "
        "MIXED. That of an input port is not read. For a type that is only known at run time write UNSPECIFIED.",
        ('<port id="1" precision="FLOAT">', '<port id="1" precision="FP32">'),
        anywhere=True,
    ),
    "E211": Code(
        "unreadable dimension",
        "A <dim> holds one size in digits, or -1 for one that is not known. OpenVINO rejects an empty one and "
        "`?`, but reads `3x` and `1..3` as far as the digits go. Ranges are written in the `shape` of a Parameter "
        "only.",
        ("<dim>?</dim>", "<dim>-1</dim>"),
        anywhere=True,
    ),
    "E212": Code(
        "no Result",
        "What a model or a body returns ends in layers of type Result. Without one, and without an Assign that "
        "keeps state, no layer has an effect: OpenVINO loads such a model as an empty one.",
        (
            '<layer id="8" name="probabilities" type="SoftMax" version="opset8">, the last one',
            '<layer id="9" name="out" type="Result" version="opset1"> with an edge from the SoftMax',
        ),
    ),
    "E213": Code(
        "wrong entry of a port map",
        "`internal_layer_id` is the id of a Parameter (for <input>) or a Result (for <output>) of the body. "
        "`external_port_id` of an <input> is the position of an input of the layer, from 0 on, not the id of its "
        "port; outputs are numbered by ascending `external_port_id`, and each output port has one entry, as has each "
        "input of a loop. What counts iterations is not sliced. OpenVINO fails with `unordered_map::at`, or not "
        "at all.",
        (
            '<input external_port_id="20" internal_layer_id="0"/>',
            '<input external_port_id="2" internal_layer_id="0"/>',
        ),
    ),
    "E214": Code(
        "mapped twice",
        "An input or output of the layer, a Parameter of the body, or a Result of a branch stands in two entries of a "
        "port map, or two results are to decide whether a Loop goes on. Of two <input> with one `external_port_id` "
        "OpenVINO drops the second without a word, and what it should have fed has no value.",
        (
            '<input external_port_id="1" internal_layer_id="0"/> <input external_port_id="1" internal_layer_id="3"/>',
            '<input external_port_id="1" internal_layer_id="0"/> <input external_port_id="2" internal_layer_id="3"/>',
        ),
    ),
    "E215": Code(
        "back edge without a partner",
        "A back edge leads from a Result of the body to a Parameter of the body, which it gives the next "
        "iteration's value. An <input> of the port map must give that Parameter its first value. OpenVINO loads "
        "back edges that name missing layers without a word.",
        ('<edge from-layer="99" to-layer="0"/>', '<edge from-layer="5" to-layer="0"/>'),
    ),
    "E216": Code(
        "missing body or port map",
        "TensorIterator and Loop need <body> and <port_map>; If needs <then_body>, <else_body>, <then_port_map> "
        "and <else_port_map>. They are children of the <layer>, beside <input> and <output>.",
        ('<layer type="If"><then_body>...', "<then_body>... <else_body>... <then_port_map>... <else_port_map>..."),
    ),
    "E217": Code(
        "Constant instead of Const",
        "In an IR constants are of type `Const`, in exactly this case. OpenVINO accepts `Constant`, which is the name "
        "of the operation, but then never fills it: the weights are whatever lay in memory, different in every run, "
        "and nothing is reported. Other cases of `Const` it rejects.",
        ('<layer type="Constant" .../>', '<layer type="Const" .../>'),
    ),
    "E218": Code(
        "Parameter of a body without a value",
        "Layers of the body read this Parameter, but no <input> of the port map feeds it. Values reach a body "
        "through its port map only, even those of the enclosing model.",
        (
            '<layer id="3" type="Parameter" ...> in a body, and no entry with internal_layer_id="3"',
            '<input external_port_id="2" internal_layer_id="3"/> in the port map',
        ),
    ),
    "E219": Code(
        "variable that is stored, but not read",
        "An Assign stores a value for the next run, which a ReadValue of the same `variable_id`, in the same graph, "
        "reads. Without one, or where it reaches no Result or Assign, so that it is not built, OpenVINO fails with "
        "`map::at`. Names are compared as they are written.",
        (
            '<layer type="ReadValue" ...><data variable_id="hidden"/> <layer type="Assign" ...><data variable_id="h"/>',
            '<layer type="ReadValue" ...><data variable_id="h"/> <layer type="Assign" ...><data variable_id="h"/>',
        ),
    ),
    "E220": Code(
        "misspelt or second element that holds what the graph needs",
        "A graph has one <layers> of elements <layer> and one <edges> of elements <edge>, a layer one <input> and one "
        "<output> of elements <port>, and its attributes in <data>, all in lower case. OpenVINO passes over what "
        "stands in an element of another name, or in a second one, so layers, edges or ports are missing without a "
        "word. irrun reads them as what they are meant for, by name or by what they hold, and goes on checking.",
        ("<outputs><port .../></outputs>", "<output><port .../></output>"),
    ),
    "E221": Code(
        "Result or Assign in another case",
        "OpenVINO starts from the layers of type `Result` and `Assign`, in exactly this case, and builds what leads to "
        "them. A layer `result` is dropped without a word, and with it all that nothing else needs: the model lacks an "
        "output, or loses its state.",
        (
            '<layer id="9" name="out" type="result" version="opset1">',
            '<layer id="9" name="out" type="Result" version="opset1">',
        ),
    ),
    "E222": Code(
        "runtime info that OpenVINO refuses",
        "The <rt_info> of a layer or a port has two attributes of one name and version, or a `layout` that is none or "
        "has another number of axes than the port has dimensions. OpenVINO refuses to read such a file. It passes over "
        "attributes that it does not know, and over all of them in files of version 10.",
        (
            '<attribute name="layout" version="0" layout="[N,C"/>',
            '<attribute name="layout" version="0" layout="[N,C,H,W]"/>',
        ),
    ),
    "E223": Code(
        "name of an input or output that another one has",
        "In a file of version 10, the layers that begin and end a model give their names to its inputs and outputs, "
        "beside the names of the ports. OpenVINO refuses a file in which such a name is already that of another input "
        "or output, or one tensor with a name of its own is two of them. Version 11 allows all that.",
        (
            'a layer named "mask" that gives an output, and a port of an input with names="mask"',
            'a layer named "mask_out"',
        ),
    ),
    "E224": Code(
        "means that OpenVINO cannot take",
        "A <pre-process>, which converters wrote until 2019, has OpenVINO subtract means from an input: one number for "
        "each channel, or an image of them in the .bin. The file is refused where the input is not there, has unknown "
        "sizes or other channels, and where a mean is no number or its image does not lie in the .bin. Where all is "
        "right it is W907, as irrun does not take them: build them into the model.",
        ('<channel id="3"> of an input with 3 channels', '<channel id="2">'),
    ),
    "E225": Code(
        "output that is lost",
        "The layer has `output_names`, as a Result has that ends the graph in an output of these names, and it has no "
        "outputs of its own, but another type. OpenVINO does not build it: the model has one output less.",
        ('<layer ... type="ReLU" output_names="probs">', '<layer ... type="Result" output_names="probs">'),
    ),
    "E226": Code(
        "layer ids that are shifted against the edges",
        "Edges name layers by ids. From one layer on, or for some in a row, the ids in <layers> are all higher or all "
        "lower by the same number than those in <edges>, whose ports and types fit otherwise. This comes of a layer "
        "that was inserted or deleted by hand, with the layers behind it counted anew and the edges left as they were, "
        "or the other way round. Ids need not be consecutive: give a new layer one that is free, and leave all others "
        "as they are.",
        ('<layer id="3"> that the edges call 2, <layer id="4"> that they call 3', '<layer id="2">, <layer id="3">'),
    ),
    "E301": Code(
        "unknown operation",
        "No op of this type is in the operation set that `version` names. `opsetN` means the table of that opset, "
        "so an op that came later is not in it, and opset17 holds seven ops only. OpenVINO refuses to read such a "
        "layer if a Result needs it, and never looks at it otherwise. Ops of your own come from a module given "
        "with --ops. `extension` is the version of ops that a package brings along, as openvino-tokenizers does.",
        ('type="Relux" version="opset1"', 'type="ReLU" version="opset1"'),
        anywhere=True,
    ),
    "E302": Code(
        "wrong number of inputs or outputs",
        "The op takes another number of inputs, or has another number of outputs, than the layer has ports. Inputs "
        "are counted by the position of their port, so an optional input in the middle cannot be left out. Compare "
        "the layer with `irrun ops NAME`.",
        (
            '<layer type="Add" ...><input><port id="0"/></input>',
            '<layer type="Add" ...><input><port id="0"/><port id="1"/></input>, and an edge to each',
        ),
    ),
    "E303": Code(
        "element type not allowed",
        "The op does not take tensors of this type at this port, or two inputs that must have one type have two. "
        "OpenVINO inserts no conversions. The note names the layer that the tensor comes from: change its type, or "
        "put a Convert between.",
        (
            '<data element_type="f32" .../> on the indices of a Gather',
            '<data element_type="i64" .../> on the indices of a Gather',
        ),
    ),
    "E304": Code(
        "sizes that disagree",
        "A dimension has one size in one input and another in a second one, although the specification calls both by "
        "the same name; the message gives the name, both sizes and both ports. It may also be one that a Parameter of "
        "a body or a variable declares in another way than what it gets, or one that the results of all iterations of "
        "a loop do not join to.",
        (
            '<data shape="4" .../> of a layer for `values`, and <data shape="3,2" .../> of one for `indices`',
            '<data shape="3" .../> of a layer for `values`, and <data shape="3,2" .../> of one for `indices`',
        ),
    ),
    "E305": Code(
        "wrong rank",
        "The input has more or fewer dimensions than the op takes there. A scalar has no dimensions at all: a port "
        "with <dim>1</dim>, or <dim>0</dim>, is no scalar.",
        (
            '<data shape="1" .../> of a Const for `default_value`',
            '<data shape="" .../> of a Const for `default_value`, whose port has no <dim>',
        ),
    ),
    "E306": Code(
        "missing attribute",
        "The specification requires the attribute. OpenVINO goes on with whatever its C++ class starts with, such as "
        "zero or an empty list, so the model may load and compute something else. The attribute may be misspelt, or "
        "stand on the <layer> or in a second <data>, where nothing reads it.",
        ('<layer type="Clamp" ...><data max="6"/>', '<layer type="Clamp" ...><data min="0" max="6"/>'),
    ),
    "E307": Code(
        "unreadable attribute",
        "The text is no value of the attribute's kind, or lies outside its range. OpenVINO reads the front part of "
        "some numbers (1.7 becomes 1) and ignores unreadable booleans, so the layer may not do what the file seems "
        "to say.",
        ('keep_dims="yes"', 'keep_dims="true"'),
    ),
    "E308": Code(
        "tensor beyond all memory",
        "By its inputs and attributes the output has more elements than any machine could hold, most often because a "
        "size is wrong by a factor: a bit pattern read as a number, a pad or a repetition that was meant for another "
        "axis. OpenVINO computes such sizes modulo 2^64 and goes on with a wrong shape.",
        ("Tile of [1000] with repeats 9223372036854775807", "Tile of [1000] with repeats 7"),
    ),
    "E309": Code(
        "an op that cannot be checked",
        "The rule of the op, which says what shapes it takes and gives, ended with an error of its own instead of an "
        "answer. That is a mistake in the op's module: in the one given with --ops, or in irrun, which would like to "
        "hear of it. What the layer gives is taken as unknown, so that the rest of the model is checked all the same.",
        ("a rule that divides by an attribute that may be 0", "a rule that requires it to be above 0 first"),
    ),
    "E310": Code(
        "layer that gives what its readers cannot take, and not what it declares",
        "A layer gives a tensor of another type or shape than its port declares, and a layer that reads it, or what is "
        "made of it, cannot be computed with that, but could if it were as declared. So the mistake is likely not in "
        "the layer that OpenVINO names when it refuses the model, but here: in an attribute, or in what this layer "
        "reads. The note says what breaks.",
        (
            '<layer type="Convert" ...><data destination_type="i32"/> whose port is FP32, before a Convolution',
            '<data destination_type="f32"/>',
        ),
    ),
    "E401": Code(
        "broken constraint",
        "The layer breaks a rule of its operation's specification that goes beyond types and shapes of single "
        "ports. The label (C1, C2, ...) is that of the op's documentation: `irrun ops NAME` lists the constraints.",
        (
            'a SoftMax with <data axis="3"/> and an input of rank 3',
            'a SoftMax with <data axis="2"/> and an input of rank 3',
        ),
    ),
    "E501": Code(
        "missing .bin",
        "The model has constants whose data are in the weights file, but there is none. It lies beside the .xml "
        "under the same name with the ending .bin, unless its path is given. A model without constants needs no "
        ".bin.",
        ("irrun validate model.xml, alone in its folder", "irrun validate model.xml --bin other/model.bin"),
    ),
    "E502": Code(
        "unreadable .bin",
        "The path of the weights leads to a directory, a pipe or a device, or the system refuses to read it. The "
        "weights are mapped into memory, which needs a regular file. Or the file was written to while it was read: "
        "what was read may be of no state that it had.",
        ("--bin models/", "--bin models/model.bin"),
    ),
    "E503": Code(
        "Const beyond the end of the .bin",
        "`offset` plus `size` lies past the end of the file. The .bin is usually that of another model, or was "
        "cut short when it was copied or fetched; files kept by Git LFS are small texts until they are pulled.",
        ('<data offset="96" size="8" .../> and a .bin of 100 bytes', '<data offset="92" size="8" .../>'),
    ),
    "E504": Code(
        "Const too small for its shape",
        "`size` is the number of bytes in the .bin, which must hold all elements: the product of `shape` times "
        "the bits of the type, rounded up to bytes. u3 and u6 are stored in groups of three bytes, which count "
        "whole.",
        (
            '<data element_type="f32" shape="2,3" size="12" .../>',
            '<data element_type="f32" shape="2,3" size="24" .../>',
        ),
    ),
    "E505": Code(
        "incomplete <data> of a Const",
        "A Const needs `element_type`, `shape`, `offset` and `size`. Older versions of OpenVINO silently skipped "
        "loading the data of a Const without one of the first two; since 2026 it is rejected.",
        ('<data offset="0" size="4"/>', '<data element_type="f32" shape="" offset="0" size="4"/>'),
    ),
    "E506": Code(
        "malformed number in a Const",
        "`offset` and `size` are whole numbers of bytes; `shape` is a list of sizes separated by commas, without "
        "brackets, and empty for a scalar. A Const has a fixed shape: -1 and ? are not allowed.",
        ('<data shape="[2,3]" .../>', '<data shape="2,3" .../>'),
    ),
    "E507": Code(
        "inline value in a Const",
        "OpenVINO prefers an attribute `value` to the .bin and takes the bytes of its text as the data, so "
        'value="1.0" as f32 is not 1. Write the data to the .bin and give their offset and size.',
        ('<data value="1.0" element_type="f32" .../>', '<data element_type="f32" shape="" offset="0" size="4"/>'),
    ),
    "E508": Code(
        "unknown element type of a Const",
        "Element types of constants are written in lower case: f32, f16, bf16, i64, u8, boolean, string and so "
        "on; OpenVINO rejects `F32` and `FP32` here, and takes capitals only of some others. `dynamic` is no type that "
        "data can have, though OpenVINO loads it.",
        ('<data element_type="FP32" .../>', '<data element_type="f32" .../>'),
    ),
    "E509": Code(
        "damaged strings",
        "A constant of strings holds, as 32-bit integers, the number of strings, a 0, and where each string ends; "
        "then their UTF-8 text. Here the ends do not ascend, lie outside the blob, or the text is not UTF-8.",
        ("2, 0, 5, 2, then 5 bytes", "2, 0, 2, 5, then 5 bytes"),
    ),
    "E510": Code(
        "number of strings differs from the shape",
        "The blob says how many strings it holds, and the product of `shape` says another number. OpenVINO goes "
        "by the shape and does not compare the two. One of them is wrong, or `offset` points to other data.",
        ('shape="3" and 2 strings', 'shape="2" and 2 strings'),
    ),
    "E511": Code(
        "Const that cannot be what its shape and type say",
        "The bytes of a constant do not fit its `shape` and `element_type` (`size` has more than the elements take), "
        "or are also those of another one, or its port declares another shape or element type, and with what they "
        "say something that depends on it cannot be computed. "
        "One of the attributes was changed, or is wrong. OpenVINO goes by them and refuses the model.",
        (
            '<data element_type="f16" shape="2" size="8" .../>, added to f32',
            '<data element_type="f32" shape="2" size="8" .../>',
        ),
        by_place=True,
    ),
    "E602": Code(
        "a layer failed in the run",
        "The kernel of the op could not compute its result, most often for lack of memory, or that of a custom op "
        "gives another type or shape than it declares. If the message does not tell what is wrong with the model or "
        "its inputs, please report it with the model.",
        ("a Broadcast to [100000, 100000, 100000]", "a Broadcast to a shape that fits into memory"),
    ),
    "E603": Code(
        "more memory than allowed",
        "What the layer is about to make does not fit beside what is in use into the memory that a run may take: "
        "--max-memory, or else the physical memory of the machine. Nothing has been allocated. If the size is not what "
        "you expect, look for the input that it comes from; `irrun validate --shapes` prints the shape of every layer. "
        "Counted are results of layers and constants that are copied out of the .bin, not what a layer needs besides "
        "while it computes.",
        ("a Range from 0 to 10000000000000", "a Range from 0 to 1000"),
    ),
    "E604": Code(
        "an engine disagrees with the kernels of the ops",
        "With --engine check every layer is computed twice, by the engine that takes it and by the kernels of its ops, "
        "which go by the specification, for the same inputs. This is the first element in which the two differ by more "
        "than rounding; layers that were computed together are listed. It is a mistake in irrun, not in the model: run "
        "it with --engine reference, and please report it with the model and its inputs. The one difference that is "
        "known: oneDNN may make a number of the NaN of a product or a convolution, in what it computes with it.",
        ("--engine check, which stops at a layer", "--engine reference, which computes it by its op's kernel"),
    ),
    "E605": Code(
        "not a language model that generates",
        "Generation needs a decoder: an input `input_ids` [batch, length] (or `decoder_input_ids`), an output `logits` "
        "[batch, length, vocabulary], and a cache of what came before, in variables (ReadValue, Assign) or as inputs "
        "such as `past_key_values.0.key` with outputs such as `present.0.key`. Export the model with its cache, as "
        "optimum-intel does for the task text-generation-with-past. `irrun execute` runs any other model.",
        ("--task text-generation", "--task text-generation-with-past"),
    ),
    "E606": Code(
        "the logits are not numbers",
        "A logit of the next token is NaN, so that no token is the most likely one. Most often a row has nothing that "
        "it may attend to, or an f16 or bf16 tensor has overflowed on the way. Look for the first layer whose result "
        "is NaN with `irrun execute --check-finite`.",
        ("a mask of -inf for a whole row", "a mask that leaves the token itself visible"),
    ),
    "E607": Code(
        "a tensor is not finite",
        "With --check-finite or --check-range this is the first tensor of the run that has NaN or infinity although "
        "nothing that its layer has read has. A sum or a product beyond the largest number is infinite; NaN comes of "
        "0/0, of the difference of infinities, of 0 times infinity, of the logarithm or the root of what is negative, "
        "and of a Softmax over a row of nothing but -inf. Infinities that a constant or an input has, such as a mask "
        "of scores, and -inf among zeros are left alone until NaN comes of them.",
        ("Sqrt of a variance that rounding has made negative", "Sqrt of what Maximum holds at 0 or above"),
    ),
    "E608": Code(
        "a tensor leaves the range of a type",
        "With --check-range f16 this is the first tensor that has numbers above 65504 in magnitude although nothing "
        "that its layer has read has: a device that computes in f16 makes infinity of them, and NaN behind that. bf16 "
        "has numbers up to 3.39e38, and what is rounded to more is infinite. Keep the layer in f32 where that can be "
        "said, as by the mark `precise` in its <rt_info>, or scale what it reads.",
        ("x * x, for x of 300 in f16", "(x / 16) * (x / 16), and the scale in what follows"),
    ),
    "W901": Code(
        "second <data>",
        "Only the first <data> of a layer is read; the attributes of others are lost without a word, and the op "
        "runs with its defaults. Put all attributes into one element. Where one is required, it is error E306.",
        ('<data axis="1"/> <data batch_dims="1"/>', '<data axis="1" batch_dims="1"/>'),
    ),
    "W902": Code(
        "attribute on <layer>",
        "A <layer> has `id`, `name`, `type` and `version`, and on a Result `output_names`. Other attributes there "
        "are not read, by OpenVINO neither: those of the op belong on its <data>.",
        ('<layer id="1" ... axis="1"/>', '<layer id="1" ...><data axis="1"/></layer>'),
    ),
    "W903": Code(
        "layer name used twice",
        "Names may repeat, as edges go by ids. But tools and messages name layers by them, and so do the outputs "
        "of a run, which then have to be told apart by a suffix.",
        (
            '<layer id="3" name="relu" .../> <layer id="5" name="relu" .../>',
            '<layer id="3" name="relu_1" .../> <layer id="5" name="relu_2" .../>',
        ),
        by_place=True,
    ),
    "W904": Code(
        "unreachable layer",
        "No path leads from this layer to a Result or an Assign, so it has no effect. OpenVINO does not build "
        "such layers, and does not check them either. It is left over from editing, or an edge is missing. Unused "
        "Parameters are inputs still, and not reported. What else is wrong with such layers is a warning, unless one "
        "of them may be a misspelt Result.",
        (
            '<layer id="5" type="ReLU" ...> and no edge with from-layer="5"',
            '<edge from-layer="5" from-port="1" to-layer="6" to-port="0"/>, to a Result, or no such layer',
        ),
        by_place=True,
    ),
    "W905": Code(
        "Const larger than its shape",
        "`size` has more bytes than the elements take. OpenVINO reads as many as it needs and ignores the rest, "
        "so nothing fails if `shape` or `element_type` is wrong.",
        ('<data element_type="f16" shape="2" size="8" .../>', '<data element_type="f32" shape="2" size="8" .../>'),
        by_place=True,
    ),
    "W906": Code(
        "tensor name used twice",
        "`names` of an output port name the tensor for users of the model, so they should be unique. OpenVINO "
        "renames one by adding `_1`, and a program that asks for the name gets the other: an input or output of the "
        "model if it is one, else the first.",
        ('names="out" on two ports', 'names="out" and names="aux"'),
        by_place=True,
    ),
    "W907": Code(
        "unknown or repeated element",
        "The element is not one of those that are read where it stands, or a second one: a model has <layers>, "
        "<edges> and <rt_info>, a layer <data>, <input>, <output>, <rt_info> and what its bodies need, a port <dim> "
        "and <rt_info>. The name may be misspelt, or the element stand a level too high or too deep.",
        ('<layer ...><datas axis="1"/></layer>', '<layer ...><data axis="1"/></layer>'),
    ),
    "W908": Code(
        "word in another case",
        "OpenVINO looks many words up without regard to case: types of layers, but for `Const`, `Parameter`, `Result` "
        "and a few more, element types of attributes, the root <net>, and some precisions of ports. Other tools that "
        "read the file do not, so write them as the specification spells them.",
        (
            '<layer id="1" name="r" type="relu" version="opset1">',
            '<layer id="1" name="r" type="ReLU" version="opset1">',
        ),
    ),
    "W909": Code(
        "Consts that share some of their bytes",
        "Two constants overlap in the .bin, but are not the same blob. Equal constants share their bytes on purpose, "
        "whole; an overlap in part comes from an `offset`, a shape or an element type that is wrong, and the values "
        "are then not the ones that were meant. Offsets need not be aligned.",
        (
            '<data shape="4" element_type="f32" offset="0" .../> <data shape="4" element_type="f32" offset="12" .../>',
            '<data shape="4" element_type="f32" offset="0" .../> <data shape="4" element_type="f32" offset="16" .../>',
        ),
        by_place=True,
    ),
    "W910": Code(
        "output of a port map under another number",
        "The outputs of a port map are numbered by ascending `external_port_id`, whatever ports these name, so an id "
        "that belongs to no port, or to another one, may swap two outputs without a word. Tools write the ids of the "
        "output ports, which go on where the inputs end.",
        (
            '<output external_port_id="9" .../> <output external_port_id="4" .../> and output ports 3 and 4',
            '<output external_port_id="3" .../> <output external_port_id="4" .../> and output ports 3 and 4',
        ),
    ),
    "W911": Code(
        "variable that is read, but not stored",
        "A ReadValue gives what an Assign of the same `variable_id` stored in the run before. Where there is none in "
        "the same graph, the layer gives its initial value in every run, so the state of the model is lost."
        " Add the Assign, or delete the layer.",
        (
            '<layer type="ReadValue" ...><data variable_id="h" .../>, and no Assign',
            '<layer type="ReadValue" ...><data variable_id="h" .../> <layer type="Assign" ...><data variable_id="h"/>',
        ),
        by_place=True,
    ),
    "W912": Code(
        "variable that is stored or read twice",
        "Two Assigns of one graph store the same variable, or two ReadValues read it. Which value the next run finds "
        "depends on the order in which the Assigns happen to run, and OpenVINO's CPU plugin runs no model with two "
        "ReadValues of a variable. Keep one of them, or give the other one a variable of its own.",
        (
            '<layer type="Assign" ...><data variable_id="h"/> <layer type="Assign" ...><data variable_id="h"/>',
            '<layer type="Assign" ...><data variable_id="h"/> <layer type="Assign" ...><data variable_id="c"/>',
        ),
        by_place=True,
    ),
    "W913": Code(
        "weights that are no numbers",
        "A constant holds NaN or infinity. They spread to almost all that is computed of them, so the results of the "
        "model are likely to be NaN: a training that diverged, a conversion to f16 of values that it cannot hold, or a "
        "wrong `offset`. Constants of nothing but zeros and infinities are left alone, as masks of scores are such. "
        "The first 64 MiB of weights are searched; `--deep` searches all.",
        ("a weight [0.1, nan, 0.3]", "a weight [0.1, 0.2, 0.3]"),
        by_place=True,
    ),
    "W914": Code(
        "bytes that are no booleans",
        "A boolean constant has bytes other than 0 and 1. irrun takes them for true. OpenVINO's ops do not agree on "
        "them: a Select takes 255 for false, a LogicalNot for true, and a Convert gives 2 and -1. Most often the bytes "
        "are of another constant, or were written as u8.",
        ("a boolean constant of the bytes 0, 255", "the bytes 0, 1"),
        by_place=True,
    ),
    "W915": Code(
        "bytes of the .bin that no Const reads",
        "More of the .bin is unread than writers leave between constants. OpenVINO writes no bytes that nothing reads: "
        "the .bin may be that of another model, a Const may have been deleted, or have the `offset` of another one, "
        "whose data it then has, too.",
        ('two Consts with offset="0" size="4096", the .bin has 8192 bytes', 'the second one with offset="4096"'),
    ),
    "W916": Code(
        "weights that are zero to the end of the .bin",
        "The last constants of floats in the .bin are all zero. Weights are not, but for a bias here and there: the "
        "file was made as long as it should be, and not filled to its end, as when a download breaks off.",
        ("a .bin of 1 GB whose last 300 MB are zero", "the whole file"),
    ),
    "W917": Code(
        "tensor name with blanks around it",
        "`names` is a list separated by commas without blanks. A blank after a comma, or before the "
        "first name, is part of the name, so that OpenVINO does not find the tensor by the name that was meant.",
        ('names="logits, probabilities"', 'names="logits,probabilities"'),
    ),
    "W930": Code(
        "unknown attribute",
        "The op has no attribute of this name, so nothing reads it: it may be misspelt, named as elsewhere, or belong "
        "to another version of the op. Ports, edges and entries of port maps have a few attributes each, too. Names "
        "are case-sensitive.",
        ('<data stride="2,2" .../> of a Convolution', '<data strides="2,2" .../>'),
    ),
    "W931": Code(
        "declared shape contradicts inference",
        "The dimensions of the port cannot be those of the tensor that flows there; none at all are those of a "
        "scalar. OpenVINO ignores them and infers the shape anew, but people and other tools believe the file. Often "
        "a layer was edited and those behind it were not; where two edges seem to be exchanged, that is said.",
        ("a port of [1, 10] behind a MatMul that gives [1, 12]", "a port of [1, 12]"),
        by_place=True,
    ),
    "W932": Code(
        "declared type contradicts inference",
        "The precision of the port is not the element type of the tensor that flows there, or no precision at all. "
        "OpenVINO ignores it and infers the type anew.",
        ('precision="FP16" on the output of a Convert to f32', 'precision="FP32"'),
    ),
    "W933": Code(
        "floating-point types mixed",
        "The specification has one type for inputs that have several here, such as f16 data and f32 slopes of a PReLU. "
        "Converters up to 2021 wrote that where they compressed weights to f16, and OpenVINO takes it for these ops. "
        "They are computed in the widest of the types, and the results have that of the first input. All such layers "
        "of a model are one warning.",
        (
            '<data element_type="f32" .../> on the slopes of a PReLU whose data are f16',
            '<data element_type="f16" .../>, or a Convert between',
        ),
    ),
    "I901": Code(
        "attribute that a converter has left",
        "The op has no attribute of this name, and nothing reads it. Converters up to 2021 wrote some on every layer "
        "of a type, such as `output_padding` on a Convolution, and what Caffe has on a DetectionOutput. With the value "
        "that is there it says nothing that the layer does not do, so the model is as it was meant; with another one "
        "it is warning W930. Infos are shown with --verbose, and never fail a check.",
        ('<data output_padding="0,0" strides="1,1" .../> of a Convolution', '<data strides="1,1" .../>'),
    ),
    "I902": Code(
        "type declared of an output that nothing reads",
        "The precision of the port is not the element type of the output, as in W932, but no layer reads this output. "
        "Tools that quantize wrote FP32 for the indices of a MaxPool. Infos are shown with --verbose, and never fail a "
        "check.",
        ('<port id="2" precision="FP32"> for the indices of a MaxPool', '<port id="2" precision="I64">'),
    ),
    "I904": Code(
        "type declared of a constant that was compressed",
        "The output is a constant that was converted into a smaller type when the model was saved, and a Convert makes "
        "it what it was. OpenVINO, which writes such files, declares the smaller type for the Convert where it leads "
        "to a Result. The output is of the type that the Convert gives.",
        ("a Convert to f32, marked as decompression, whose port is FP16, before a Result", "FP32"),
    ),
    "I903": Code(
        "declared shape or type that another one has led to",
        "The port declares another shape or type than is inferred, as in W931 and W932, but it would be right if what "
        "the layer reads, or what numbers that it reads are sizes of, were as its own ports declare. A layer before it "
        "has such a warning: an attribute, or what a Parameter is, was changed there, and what was declared behind it "
        "does not hold any more. Mend the cause; "
        "`--fix` declares what is inferred. Infos are shown with --verbose, and never fail a check.",
        ('<port id="1"><dim>112</dim> behind a layer whose strides are 1', '<port id="1"><dim>224</dim>'),
        by_place=True,
    ),
    "W940": Code(
        "Parameter of a body that gets another shape than it declares",
        "The port map gives the Parameter a tensor, or a slice of one, whose shape cannot be the one that it declares. "
        "OpenVINO reads the body by what it declares and computes it with what it gets; other readers go by the file. "
        "Where the body does not fit together by what it declares, this is error E304. Where the ports outside fit "
        "what the Parameter declares, too, the entry of the port map is told; where a back edge may hand on another "
        "shape than the first iteration gets, or than its Parameter declares, the edge.",
        (
            '<data shape="3,2" .../> of a Parameter that gets slices [1, 2] of [3, 2]',
            '<data shape="1,2" .../>',
        ),
    ),
    "W941": Code(
        "loop that hands nothing on",
        "An output of the loop is the value of the last iteration, but no iteration gets anything from the one before "
        "that this value depends on. So all but the last one do nothing for it: most often the back edge is missing "
        "that gives a Parameter its next value, or an `axis` along which the values of all iterations are joined.",
        (
            '<output external_port_id="3" internal_layer_id="6"/>, and no back edge',
            '<back_edges><edge from-layer="6" to-layer="1"/></back_edges>',
        ),
    ),
    "W942": Code(
        "purpose that means nothing",
        "In the port map of a Loop an <input> may have the purpose `current_iteration`, and an <output> "
        "`execution_condition`. Other words, these on the other kind of entry, and any in other layers are not read. "
        'They may be misspelt. An <output> with external_port_id="-1" is there for its purpose alone.',
        ('<input ... purpose="current_iter"/>', '<input ... purpose="current_iteration"/>'),
    ),
    "W943": Code(
        "back edge into a sliced input",
        "A Parameter of the body gets a slice of an input in each iteration, so the value that a back edge hands on "
        "to it is never read. OpenVINO passes over it, too. The `axis` of the <input> or the back edge is too much.",
        (
            '<input axis="0" ... internal_layer_id="1"/> and <edge from-layer="6" to-layer="1"/>',
            '<input ... internal_layer_id="1"/> and <edge from-layer="6" to-layer="1"/>',
        ),
    ),
    "W944": Code(
        "slices that mean nothing, or not what ports declare",
        "`start`, `end`, `stride` and `part_size` say how an input is sliced, or where results are put, along an "
        "`axis`. Without one they are not read, and no branch of an If has any; on an output of a Loop OpenVINO looks "
        "at the direction only, so that other numbers than those of the whole axis change nothing. Also told are "
        "slices of a part of an input, and results that are joined or not, where an output port declares the sizes "
        "that come of it otherwise.",
        ('<input start="1" stride="2" .../>', '<input axis="0" start="1" stride="2" .../>'),
    ),
    "W945": Code(
        "Result with an output port",
        "A Result ends the graph and gives nothing on. Converters up to 2021 wrote an output port all the same, and "
        "OpenVINO passes over it. In a file of version 11 it is left over from editing.",
        (
            '<layer type="Result" ...><input>...</input><output><port id="1" .../></output></layer>',
            '<layer type="Result" ...><input>...</input></layer>',
        ),
    ),
    "W946": Code(
        "fewer output ports than outputs",
        "The op has more outputs than the layer has output ports. Outputs go by the position of the port, not by its "
        "id, so where one in the middle was deleted, those behind it stand for others. OpenVINO writes them all, read "
        "or not.",
        ("a Split into 3 with 2 output ports", "3 output ports, one of which no edge begins at"),
    ),
    "W947": Code(
        "constant in an order that is not expected",
        "The specification expects the elements of this constant in ascending order, such as the ids of segments, but "
        "does not say what comes of others. irrun computes what sorted ids would give; OpenVINO gives something else. "
        "In a row that is searched, both find what a search happens on. Sort them, and what belongs to them.",
        ("segment_ids [1, 0, 0]", "segment_ids [0, 0, 1], and the indices in the same order"),
    ),
    "W948": Code(
        "several updates for one place",
        "Two of the indices lead to one place, with updates that differ or may differ. The specification does not say "
        "which of them counts. irrun and OpenVINO's CPU plugin take the last one; other devices need not.",
        ("indices [1, 1] of a ScatterUpdate", "indices [1, 2], or a reduction where the op has one"),
    ),
    "W949": Code(
        "number of which the specification says nothing",
        "The specification leaves it to the processor what comes of this number, such as a shift by less than 0 bits, "
        "or by as many as the type has. The message says what irrun computes; other devices give something else.",
        ("BitwiseLeftShift of i32 by 32", "a shift by 0 to 31 bits, or a constant of zeros"),
    ),
    "W950": Code(
        "missing attribute that OpenVINO has a value for",
        "The specification requires the attribute and gives no default, but OpenVINO takes a value of its own where a "
        "file lacks it, which the message names. irrun takes the same. Write it down: other tools need not agree.",
        ("<data/> of a ScaledDotProductAttention", '<data causal="false"/>'),
    ),
    "W951": Code(
        "broken constraint that OpenVINO computes",
        "The layer breaks a constraint of the specification, by its label as in E401, but OpenVINO does not insist on "
        "it and computes what the help says. irrun computes the same. Other devices and tools go by the specification.",
        ("ReduceSum over the axes [1, 1]", "over the axis [1]"),
    ),
    "W952": Code(
        "element type that OpenVINO takes",
        "The specification does not have this element type for the input, or has one type for inputs that have two, "
        "but OpenVINO computes with it: axes and sizes are taken for whole numbers whatever their type is. irrun does "
        "so, too.",
        ("Squeeze with axes of f32", "axes of i64"),
    ),
    "W953": Code(
        "attribute out of range that OpenVINO takes",
        "The value is outside what the specification allows, but OpenVINO computes with it as with any other, or does "
        "not read it, as pads where auto_pad says them. irrun does the same. Other tools go by the specification.",
        ("an Elu with alpha -1", "an alpha of 0 or more"),
    ),
    "W954": Code(
        "constant that is seldom meant",
        "The op is defined with this constant, and OpenVINO computes what irrun does, but little comes of it: zeros "
        "for an index behind the end of the data, NaN for a negative variance, no box that hides another, a Reshape "
        "that only data without elements fit (with -1 beside a 0 for data of unknown sizes, which OpenVINO refuses). "
        "A cube_coeff that is not Pillow's for the mode bicubic_pillow OpenVINO's CPU plugin does not go by. "
        "Most often it is the constant of another layer, counts from 1, or has another unit. Constants alone are "
        "looked at; such data of a run are computed without a word.",
        ("a NonMaxSuppression with the iou_threshold 50", "0.5"),
    ),
    "W955": Code(
        "missing attribute that OpenVINO insists on",
        "The specification has a default for the attribute, by which irrun goes, but OpenVINO refuses a file "
        "without it, crashes, or takes another value. Write it down: the file means the same then, and every reader "
        "takes it.",
        ("<data/> of a ShapeOf of opset3", '<data output_type="i64"/>'),
    ),
    "E701": Code(
        "the other side failed",
        "The device, model or tool that a model is compared with could not be asked: it refused the model, ended with "
        "an error or a crash, or took longer than --timeout. What it said is told with it, at the layer that it names, "
        "if it names one. It runs in a process of its own, so nothing else is lost. The exit status is 3.",
        ("irrun compare model.xml ov:GPU --inputs x.npz", "irrun compare model.xml ov:CPU --inputs x.npz"),
    ),
    "N101": Code(
        "explained by rounding",
        "The layer's own result differs from ours by no more than the precision that it was computed in allows, or "
        "than the layer itself makes of rounding, as a difference of large numbers does. Nothing is wrong. Where "
        "these digits count, keep the layer in f32: mark it `precise` in the IR, or run with "
        "INFERENCE_PRECISION_HINT=f32.",
        ("bf16 where eight more bits count", '<rt_info><attribute name="precise" version="0"/></rt_info>'),
    ),
    "N102": Code(
        "error that came with the inputs",
        "Given the other side's inputs, our kernel gives what the layer gave there: its own error is small, and "
        "what differs from our own run was there before it. Where all layers on the way say so, rounding has added "
        "up; otherwise the layer to look at is the first one that does not.",
        ("the last layer, which differs most", "the first layer whose own error is over the tolerance"),
    ),
    "N103": Code(
        "a tie",
        "The layer chooses: the largest elements, the boxes that stay, the integer to round to. What it chose "
        "between is closer together than the error of its inputs, so either choice is right, and all that follows "
        "from it may differ widely. Compare scores instead of indices, or choose inputs with clear winners.",
        ("TopK of 0.50001 and 0.50002 in bf16", "TopK of 0.3 and 0.7"),
    ),
    "N104": Code(
        "a known deviation of the device",
        "The device is known to compute this op otherwise than the specification on such inputs. The model gives "
        "another result there, and will as long as the device does that. The notes say what it does; avoid the "
        "case in the model if it matters.",
        ("an op in the case that the note names", "the same written with ops that all devices compute alike"),
    ),
    "N105": Code(
        "varies from run to run, within rounding",
        "Two equal runs on the other side are not equal, but closer together than rounding may bring them: sums "
        "are added up in another order each time. Nothing is wrong, but no comparison can be sharper than that.",
        ("equal bits expected of sums over threads", "a tolerance, or one thread"),
    ),
    "N106": Code(
        "a cache of fewer bits",
        "The device keeps what attention has seen of earlier steps, keys and values, in a type of fewer bits than it "
        "computes in: 8-bit integers on processors, which INFERENCE_PRECISION_HINT leaves as they are. Kept in f32, "
        "with nothing else changed, the output is right, so no layer is at fault, and none has to be marked. Compare "
        "with KV_CACHE_PRECISION=f32; whether 8 bits are good enough, the task says.",
        ("--config INFERENCE_PRECISION_HINT=f32", "the same and --config KV_CACHE_PRECISION=f32"),
    ),
    "N200": Code(
        "output that differs",
        "An output of the model is farther from that of the other side than it may be: than --tol says, or by default "
        "than the least precise type that any layer is computed in explains (80 dB of signal to noise for f32, 40 for "
        "f16, 25 for bf16, 20 where the model is quantized to 8 bits and the other side may round to other steps). The "
        "layers that are at fault, if any are, are told before it. Where none is, rounding has added up "
        "on the way: at full precision the output agrees then.",
        ("irrun compare model.xml ov:CPU --inputs x.npz", "irrun compare model.xml ov:CPU --inputs x.npz --tol bf16"),
    ),
    "N201": Code(
        "NaN or infinity is born here",
        "The inputs of the layer are finite, or such that our kernel gives finite results, and the other side's "
        "are NaN or infinite. The message says of what, where the inputs show it: 0/0, inf - inf, 0 * inf, a "
        "negative number, a row that is masked whole. What reads the result is NaN from there on. Guard the "
        "operation.",
        ("x / sqrt(variance)", "x / sqrt(variance + epsilon)"),
    ),
    "N202": Code(
        "overflow",
        "Results, or sums and squares on the way to them, are larger than the type holds that the layer was "
        "computed in: 65,504 in f16. They are infinite, NaN, or clamped to the largest number. Keep the layer in "
        "f32, or scale its inputs down.",
        ("x^2 with x up to 300, in f16", '<rt_info><attribute name="precise" version="0"/></rt_info> on the layer'),
    ),
    "N203": Code(
        "underflow to zero",
        "Numbers are smaller than the type holds that the layer was computed in, and became zero: below 6e-8 in "
        "f16, and below 6e-5 where subnormal numbers are flushed. A division by such a number, or a logarithm, is "
        "infinite then. Use a larger epsilon, or keep the layer in f32.",
        ("an epsilon of 1e-12, in f16", "an epsilon of 1e-5"),
    ),
    "N204": Code(
        "another layout",
        "The elements are right, but in other places: axes in another order, memory that is read as if it were "
        "laid out otherwise (NCHW and NHWC), reversed channels, slices or elements that are mixed up. Look at the "
        "layouts that both sides assume, and at Reshape and Transpose next to the layer.",
        ("an image [1, 224, 224, 3] given as [1, 3, 224, 224]", "the same transposed to [1, 3, 224, 224]"),
    ),
    "N205": Code(
        "a factor or an offset",
        "The result is the expected one times a number, plus a number, for the whole tensor or for each slice "
        "along an axis. A normalization, a scale of attention or a dequantization is done twice, not at all, or "
        "with other numbers.",
        ("pixels from 0 to 255", "pixels divided by 255"),
    ),
    "N206": Code(
        "a part of the tensor is wrong",
        "Some slices, a box or a tail are wrong, and all the rest is right. That is how a kernel fails that splits "
        "its work among threads, blocks or batches, and does not see to one of them. Try a size that is a multiple "
        "of 64, batch 1, or one thread, and report it with the layer cut out.",
        ("rows 8 to 10 of 11, where 8 are computed at a time", "all 11 rows"),
    ),
    "N207": Code(
        "off by one",
        "The result is the expected one moved by one place along an axis, or that of indices that are one more or "
        "less. One side counts from 1, or pads, crops or rounds a size otherwise.",
        ("indices 1, 2, 3 of a table of 3", "indices 0, 1, 2"),
    ),
    "N208": Code(
        "integers saturate or wrap around",
        "Results are beyond the range of an integer type that is narrower than the declared one, and are clipped "
        "to it or wrap around: i64 that is computed as i32, u8 images above 255, or sums of two products of 8-bit "
        "codes in 16 bits, on processors without VNNI. Use a wider type, or quantize weights to 7 bits for such "
        "processors.",
        ("an i64 of 2^31, on a device that has i32", "an i64 below 2^31"),
    ),
    "N209": Code(
        "the other side is not deterministic",
        "Two equal runs give results that are further apart than rounding may bring them. Comparing it with "
        "anything tells nothing before that is mended: a race between threads, memory that is read before it is "
        "written, or a random op without a seed. Try one thread and one stream.",
        ("a buffer that two streams share", "one stream, or a buffer for each"),
    ),
    "N210": Code(
        "stale values",
        "The tensor is that of an earlier step, iteration or request, or is computed with a state or an input of "
        "an earlier one. Reset the state between sequences; where it is not that, a buffer is reused too early.",
        ("a second sequence without reset_state()", "reset_state() before each sequence"),
    ),
    "N211": Code(
        "a wrong input",
        "With two inputs swapped, or one read twice, our kernel gives the other side's result; or the result is an "
        "input as it is. Edges are connected otherwise there than in this file, or inputs are given by position in "
        "another order.",
        ("b - a", "a - b"),
    ),
    "N212": Code(
        "the weights differ",
        "The other side's constants are not those of the model, or it reads them in another order or type: another "
        ".bin, weights compressed to f16, or a transposed matrix. With its constants our kernel gives its result.",
        ("model.xml of today with model.bin of yesterday", "both of one export"),
    ),
    "N213": Code(
        "the model's input differs",
        "What the other side was given is not what ours was, before any layer has computed: u8 against f32, BGR "
        "against RGB, another order of axes, a scale. Mend that first: everything behind it differs.",
        ("BGR from OpenCV", "image[..., ::-1], which is RGB"),
    ),
    "N214": Code(
        "fusion",
        "The tensor is wrong only as long as its neighbours are not outputs, or only when they are: the layers are "
        "computed together in one of these cases, and alone in the other. Look at the fused layers as one, and "
        "report them cut out together.",
        ("one layer of a fused group, alone", "the whole group"),
    ),
    "N215": Code(
        "a transformation changes the value",
        "Of the graphs that the compiler goes through, the one before this pass gives the right value and the one "
        "after it does not. Report it with both, reduced to the layers that the pass has touched.",
        ("the graph after the pass", "the graph before it"),
    ),
    "N216": Code(
        "another shape or type",
        "The tensor does not have the shape that is expected, and is not the expected one with its axes in another "
        "order, or one side has texts and the other numbers. A size is inferred otherwise, or another tensor was "
        "taken for this one by its name. Compare the shapes layer by layer.",
        ("f32[1, 1000] beside f32[1, 1001]", "two tensors of one shape"),
    ),
    "N217": Code(
        "an output without its array",
        "No array of the other side goes by a name of this output, so nothing was compared with it, and there are "
        "arrays that go by no name of the model: one of these may be it. An output is found by its names, by "
        "`LAYER:PORT`, or by its place, as `output_0`. Call the array by one of these, or leave out what is nothing of "
        "the model.",
        ("an array `logit` for the output `logits`", "an array `logits`"),
    ),
    "N218": Code(
        "another layer in the other model",
        "The layer is not the same in both models: another op, an attribute of another value, or other layers before "
        "it in the other one, such as a FakeQuantize of a model that was quantized. What it computes may be right "
        "there. `irrun diff` tells all that differs between the two files.",
        ("a model beside one that was converted with another epsilon", "both converted alike"),
    ),
    "N219": Code(
        "one number everywhere",
        "All of the tensor is one number, most often 0, where different ones are expected: memory that nobody has "
        "written, an input that was lost, or a factor that is 0. Look at who writes the tensor, and whether that is "
        "done before it is read.",
        ("a buffer that is handed over before it is filled", "the same after the request has ended"),
    ),
    "N220": Code(
        "clipped on one side alone",
        "Where numbers are beyond a bound they are that bound on one side, and all others are right. One side "
        "does a ReLU or a Clamp that the other does not, or has it fused into another layer.",
        ("a ReLU that is fused into a convolution and into what reads it", "one ReLU"),
    ),
    "N221": Code(
        "beyond the tolerance of a layer",
        "A tolerance was given for this layer by its name, and its own result is further off, though perhaps by no "
        "more than the precision that it was computed in explains. Without that tolerance nothing is wrong. Keep the "
        "layer in f32 if these digits count: mark it `precise` in the IR.",
        ("--tol 'fc1:exact' for a layer that is computed in bf16", "--tol 'fc1:bf16'"),
    ),
    "N222": Code(
        "an attribute that is read otherwise",
        "With another value of one attribute, such as `reverse`, our kernel gives the other side's result. The other "
        "side was given that value, takes another one by default, or does not look at the attribute at all. Cut the "
        "layer out and try it with either value.",
        ("a device on which exclude-pad changes nothing", "a device that leaves padded elements out"),
    ),
    "N299": Code(
        "unexplained",
        "The layer's own result is wrong, and none of the causes that are tried explains all of it. That is most "
        "often a mistake in a kernel. Cut the layer out with its inputs, make sure that it is still wrong alone, "
        "and reduce it.",
        ("a report that a model is wrong", "a report with one layer, its inputs and both results"),
    ),
    "N301": Code(
        "an output that was not compared",
        "The other side has nothing for this output, or not in every run: it was not recorded, or the other model has "
        "no such output. The verdict is about the rest. Record it as well, where it counts.",
        ("np.savez(path, logits=logits)", "np.savez(path, logits=logits, hidden=hidden)"),
    ),
    "D101": Code(
        "OpenVINO is known to do otherwise",
        "OpenVINO's CPU plugin gives something else for this layer than the operation specification says, refuses it, "
        "or crashes, whatever the data are. irrun goes by the specification, so the two differ here, and neither the "
        "model nor irrun is at fault. It was seen with the version that is named, in a case of irrun's conformance "
        "suite; other devices and versions may do otherwise again. `irrun ops NAME` lists what is known of an op. Only "
        "`irrun validate --deviations` says this, for information: the exit status stays as it is.",
        (
            'a MaxPool-8 with auto_pad="same_lower" whose image is of unknown sizes',
            "the same with known sizes, or with explicit pads",
        ),
    ),
    "D102": Code(
        "OpenVINO is known to do otherwise with some data",
        "As D101, but it depends on the data of a run: the message says on what, such as NaN, infinity, or integers "
        "beyond 32 bits. Where no such data come, OpenVINO and irrun agree. `--ignore D102` leaves these out.",
        ("a ReLU, which OpenVINO's CPU plugin makes 0 of NaN", "data without NaN"),
    ),
    "T101": Code(
        "beyond the release that was asked about",
        "`irrun inspect --target RELEASE` asks whether a release of OpenVINO reads a model. Each layer says by its op, "
        "its operation set and its element types which release is the first to read it; this one needs a newer one. "
        "Convert the model with the older release, replace the op, or update what runs it: drivers of NPUs have an "
        "OpenVINO of their own, which may be older than the one installed.",
        ("a layer of opset15 for 2024.2", "--target 2024.5, the first release that reads opset15 whole"),
    ),
}
