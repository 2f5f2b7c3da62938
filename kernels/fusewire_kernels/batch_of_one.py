"""A batch of one: its axis is walked as that of a batch of many is, so that both have the same kernels.

An axis of length 1 has no stride, and where everything has it nothing is lost with it: what remains is contiguous. But
what broadcasts along a batch of many (a bias) does not move along its axis, while the others do; and rows that are
reduced to one number each are walked one after another. Of a batch of one no number tells that. So here the shapes are
asked whether the first axis is one of length 1 along which the others work, and it is given a loop of one step.

Shapes alone do not tell where an operand has the axis and means to broadcast along it. A wrong guess costs a kernel
that is compiled for 1 and not used for n, and nothing else: no second step is ever taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import prod

from fusewire_kernels.graph import INPUT, Value
from fusewire_kernels.placement import Walk
from fusewire_kernels.views import Layout

# Of an instance. What takes longer is run in pieces along the first loop, which must be a long one then.
MOST_OPERATIONS, MOST_PRODUCT_OPERATIONS = 500_000, 5_000_000


class BatchOfOne(Enum):
    """Whether the first axis of a group of loops is that of a batch of one, and what is done along it."""

    NONE = "none"
    LOOPED = "looped"  # everything
    REDUCED = "reduced"  # the reductions


def batch_of_one(values: Sequence[Value], walk: Walk | None, elements: int) -> BatchOfOne:
    """What the first axis is to a group in which these values are computed."""
    if elements * len(values) > MOST_OPERATIONS:
        return BatchOfOne.NONE
    reductions = [value for value in values if value.axes]
    if walk is not None and walk.extent == 1 and all(_is_first_of_one(each) and 0 in each.axes for each in reductions):
        return BatchOfOne.REDUCED
    is_looped = all(_is_first_of_one(value) and 0 not in value.axes for value in values)
    return BatchOfOne.LOOPED if is_looped else BatchOfOne.NONE


def step_of(value: Value, layout: Layout, *, is_gathered: bool = False) -> int:
    """By how many elements a view of a value would move along a first axis of length 1, 0 if it would not."""
    whole, seen = value.shape, layout.shape
    if seen[:1] != (1,) or 0 in value.axes:
        return 0
    if is_gathered and whole[:1] != (1,):
        return 0  # the axis is that of the indices
    if len(whole) >= len(seen):
        return prod(whole[len(whole) - len(seen) + 1 :])
    if whole[:1] != (1,) or (whole == (1,) and value.form is INPUT and value.dtype.is_floating):
        return 0  # the axis was put in front of what there is; an integer is an index or a label, one for each row
    return prod(dim for dim, stride in zip(seen[1:], layout.strides[1:], strict=True) if stride)


def _is_first_of_one(value: Value) -> bool:
    return value.domain[:1] == (1,)
