"""What the models of kinds.py are made with: exports of torch modules, and layers with seeded weights made of ops."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import openvino as ov
import torch
from export import Arrays, varied
from openvino import opset16 as op
from openvino.utils.node_factory import NodeFactory
from torch import nn


@dataclass(frozen=True)
class Made:
    """A model, its inputs by name, and inputs of other shapes where it takes them. `compress` saves weights as f16."""

    model: ov.Model
    inputs: Arrays
    others: Sequence[Arrays] = ()
    compress: bool = False


Kind = Callable[[np.random.Generator], Made]

OTHERS = 24
"""Inputs of other shapes that a model is given, where any sizes will do."""


def drawn(rng: np.random.Generator, *between: tuple[int, int], step: int = 1) -> list[tuple[int, ...]]:
    """Sizes for `OTHERS` runs: multiples of `step`, each between two numbers, the second one included."""
    sizes = [step * rng.integers(-(-low // step), high // step + 1, OTHERS) for low, high in between]
    return [tuple(map(int, own)) for own in zip(*sizes, strict=True)]


@torch.no_grad()
def settled(module: Any, *inputs: torch.Tensor) -> Any:
    """`module` ready to run, with batch norms that have seen `inputs`: those of random weights let activations grow."""
    varied(module)
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            part.momentum = None  # the mean of what is seen, in place of what was there
    module.train()
    module(*inputs)
    return module.eval()


def exported(
    module: Any, inputs: Arrays, open: Mapping[str, Sequence[int]] | None = None, others: Sequence[Arrays] = ()
) -> Made:
    """Trace a torch module, or take one that is scripted, with positional inputs. `open` are axes of unknown size."""
    tensors = tuple(map(torch.from_numpy, inputs.values()))
    shapes = [
        ov.PartialShape([-1 if axis in (open or {}).get(name, ()) else size for axis, size in enumerate(array.shape)])
        for name, array in inputs.items()
    ]
    scripted = isinstance(module, torch.jit.ScriptModule)
    types = [(shape, ov.Type(array.dtype)) for shape, array in zip(shapes, inputs.values(), strict=True)]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of the tracer, about sizes that become constants
        model = ov.convert_model(module.eval(), example_input=None if scripted else tensors, input=types)
    for port, name in zip(model.inputs, inputs, strict=True):
        port.get_tensor().set_names({name})
    return Made(model, inputs, others)


def parameter(name: str, shape: Sequence[int], dtype: Any = np.float32) -> ov.Node:
    """An input that has its name as that of its tensor."""
    node = op.parameter(ov.PartialShape(list(shape)), dtype, name=name)
    node.output(0).set_names({name})
    return node


def taking(inputs: Arrays, open: Mapping[str, Sequence[int]] | None = None) -> list[ov.Node]:
    """Parameters for `inputs`; `open` are axes of unknown size."""
    return [
        parameter(
            name, [-1 if axis in (open or {}).get(name, ()) else size for axis, size in enumerate(array.shape)],
            array.dtype,
        )
        for name, array in inputs.items()
    ]  # fmt: skip


def created(opset: str, type: str, *inputs: Any, **attributes: Any) -> ov.Node:
    """An op by its type, where openvino has no function for it or one that takes less."""
    nodes = [node if isinstance(node, ov.Output) else as_output(node) for node in inputs]
    return NodeFactory(opset).create(type, nodes, attributes)


def as_output(node: Any) -> ov.Output:
    return (node if isinstance(node, ov.Node) else op.constant(node)).output(0)


class Layers:
    """Layers with weights drawn from `rng`, as functions of a node; they keep the size of activations."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def weights(self, *shape: int, terms: int = 1) -> np.ndarray:
        """Random numbers for sums of so many terms."""
        return self.rng.standard_normal(shape, np.float32) * np.float32(terms**-0.5)

    def convolution(
        self, x: Any, channels: int, kernel: int = 3, stride: int = 1, groups: int = 1, active: bool = True
    ) -> ov.Node:
        """A convolution that keeps sizes, or divides them by the stride, its bias, and a ReLU where it is `active`."""
        own = channels_of(x) // groups
        pads, ones = [kernel // 2] * 2, [1, 1]
        terms = own * kernel * kernel
        if groups == 1:
            weights = self.weights(channels, own, kernel, kernel, terms=terms)
            node = op.convolution(x, weights * np.float32(2**0.5), [stride] * 2, pads, pads, ones)
        else:
            weights = self.weights(groups, channels // groups, own, kernel, kernel, terms=terms)
            node = op.group_convolution(x, weights * np.float32(2**0.5), [stride] * 2, pads, pads, ones)
        node = op.add(node, self.weights(1, channels, 1, 1) * np.float32(0.1))
        return op.relu(node) if active else node

    def separable(self, x: Any, channels: int, stride: int = 1) -> ov.Node:
        """A convolution by channels and one of 1 x 1."""
        return self.convolution(self.convolution(x, channels_of(x), 3, stride, channels_of(x)), channels, 1)

    def dense(self, x: Any, features: int, active: bool = False) -> ov.Node:
        """A product with a matrix, its bias, and a ReLU where it is `active`."""
        own = sizes_of(x)[-1]
        node = op.add(op.matmul(x, self.weights(features, own, terms=own), False, True), self.weights(features) * 0.1)
        return op.relu(node) if active else node


def sizes_of(x: Any) -> list[int]:
    """The sizes of a node's first output, or of an output; -1 where one is unknown."""
    shape = (x if isinstance(x, ov.Output) else x.output(0)).partial_shape
    return [size.get_length() if size.is_static else -1 for size in shape]


def channels_of(x: Any) -> int:
    return sizes_of(x)[1]
