"""Which layers are computed together: an op, and the element-wise ops that take its result and nothing else does.

An engine gets the whole chain offered, and may take less of it. So a convolution is fused with its bias, the activation
behind it and the sum with a residual, and a chain of element-wise ops goes over memory once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from irrun.engines.work import Post
from irrun.run.plan import NOT_CONNECTED, Plan, Step
from irrun.spec.dtypes import ELEMENT_TYPES

MOST_POSTS = 12
"""Element-wise ops in one chain; a longer one goes on in a next one."""

UNARY = frozenset(
    {
        *("Abs-1", "Ceiling-1", "Clamp-1", "Elu-1", "Erf-1", "Exp-1", "Floor-1", "Gelu-2", "Gelu-7", "HSigmoid-5"),
        *("HSwish-4", "Log-1", "Mish-4", "Negative-1", "ReLU-1", "Round-5", "Sigmoid-1", "SoftPlus-4", "Sqrt-1"),
        *("Swish-4", "Tanh-1"),
    }
)
BINARY = frozenset(
    {
        *("Add-1", "Divide-1", "Maximum-1", "Minimum-1", "Multiply-1", "PReLU-1", "Power-1", "SquaredDifference-1"),
        "Subtract-1",
    }
)
"""Element-wise ops that may follow another op; PReLU's slopes broadcast in a way of their own and must be constant."""


def closed(step: Step) -> bool:
    """Whether all about a step is known before the run, so that only its numbers are left to compute."""
    return settled(step) and not step.recheck


def settled(step: Step) -> bool:
    """Whether the types and shapes of a step are known before the run; its data may break a constraint still."""
    op = step.node.op
    return (
        not step.bodies
        and op.pure
        and op.context <= {"types"}
        and all(tensor.static and tensor.type in ELEMENT_TYPES for tensor in step.node.outputs)
        and "string" not in (*step.types, *(tensor.type for tensor in step.node.outputs))
    )


def chains(plan: Plan) -> list[list[Step]]:
    """The steps of a plan, those that belong together in one list, each list where its last step was."""
    readers: Counter[int] = Counter(plan.results)
    reader: dict[int, int] = {}
    for number, step in enumerate(plan.steps):
        for slot in step.inputs:
            readers[slot] += 1
            reader[slot] = number
    heads: dict[int, list[Step]] = {}
    taken: set[int] = set()
    for number, step in enumerate(plan.steps):
        if number in taken:
            continue
        chain, last = [step], number
        while len(chain) <= MOST_POSTS and settled(chain[-1]) and not chain[0].node.op.view_of:
            result = chain[-1].outputs[0]
            follower = reader.get(result)
            if readers[result] != 1 or follower is None or follower in taken:
                break
            if not _follows(plan.steps[follower], chain[-1]):
                break
            chain.append(plan.steps[follower])
            taken.add(follower)
            last = follower
        heads[last] = chain
    return [heads[number] for number in sorted(heads)]


def _follows(step: Step, before: Step) -> bool:
    """Whether `step` can be done to each element of what the step before it gives."""
    if len(before.outputs) != 1 or not closed(step):
        return False
    name, attrs = step.node.op.name, step.node.attrs
    if name in BINARY:
        if attrs.get("auto_broadcast", "numpy") == "pdpd" or (
            name == "PReLU-1" and step.inputs[0] != before.outputs[0]
        ):
            return False
    elif name not in UNARY or len([slot for slot in step.inputs if slot != NOT_CONNECTED]) > 1:
        return False
    (given,), (result,) = before.node.outputs, step.node.outputs
    return given.shape == result.shape and given.type == result.type


def posts(chain: Sequence[Step], first_operand: int) -> tuple[list[Post], list[int]]:
    """What follows the head of a chain, and the slots of its operands, which are inputs from `first_operand` on."""
    found: list[Post] = []
    slots: list[int] = []
    result = chain[0].outputs[0]
    for step in chain[1:]:
        node = step.node
        if node.op.name in BINARY:
            reflected = step.inputs[0] != result
            slots.append(step.inputs[0] if reflected else step.inputs[1])
            found.append(Post(node.op.name, node.attrs, first_operand + len(slots) - 1, reflected))
        else:
            found.append(Post(node.op.name, node.attrs))
        result = step.outputs[0]
    return found, slots
