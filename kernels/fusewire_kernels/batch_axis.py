"""The first axis of a group of loops, mostly that of a batch: it has the same kernels whatever its length, 1 included.

An axis of length 1 has no stride, and where everything has it nothing is lost with it: what remains is contiguous. But
what broadcasts along a batch of many (a bias) does not move along its axis, while the others do; and rows that are
reduced to one number each are walked one after another. Of a batch of one no number tells that. So an axis along which
all values of a group work is a loop of its own at any length (one of one step, if the next can hold both); and of what
is reduced along it, operands that have the axis are told from those that were broadcast along it by their shapes.

Shapes alone do not tell everything: what is one element long as the batch is may belong to it or broadcast along it. A
wrong guess costs a kernel that is compiled for 1 and not used for n, and nothing else: no second step is ever taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from fusewire_kernels.graph import INPUT, Value
from fusewire_kernels.placement import Placement, Walk
from fusewire_kernels.views import Layout


class BatchAxis(NamedTuple):
    """The first axis of a group's values: everything is done along it, or else (`is_reduced`) the reductions are.

    These reduce along no other axis then.
    """

    length: int
    is_reduced: bool


def batch_axis(members: Sequence[tuple[Value, Placement]], walk: Walk | None, elements: int) -> BatchAxis | None:
    """The first axis of the group of so many elements in which these values are computed, placed so; None: it has none.

    What is reduced along it and along others is one walk at any length.
    """
    length = next((value.domain[0] for value, _ in members if value.domain), 0)
    if not length or not elements:
        return None
    reductions = [value for value, _ in members if value.axes]
    if reductions and all(value.domain[:1] == (length,) and 0 in value.axes for value in reductions):
        return BatchAxis(length, is_reduced=True) if walk is not None and walk.extent == length else None
    stride = elements // length
    is_looped = all(
        value.domain[:1] == (length,) and 0 not in value.axes and (length == 1 or placement[0] == stride)
        for value, placement in members
    )
    return BatchAxis(length, is_reduced=False) if is_looped else None


def step_of(value: Value, layout: Layout, *, is_gathered: bool = False) -> int:
    """By how many elements a view of a value would move along a first axis of length 1, 0 if it would not."""
    if layout.shape[:1] != (1,) or not _has_first_axis(value, layout, is_gathered=is_gathered):
        return 0
    whole, seen = value.shape, layout.shape
    if len(whole) >= len(seen):
        return prod(whole[len(whole) - len(seen) + 1 :])
    return prod(dim for dim, stride in zip(seen[1:], layout.strides[1:], strict=True) if stride)


def is_repeated(value: Value, layout: Layout) -> bool:
    """Whether a view of a value repeats it along a first axis that the value has, of length 1: a bias of its own rank.

    With a batch of one nothing told it from what has an element for each of the batch.
    """
    shape = layout.shape
    is_stretched = bool(shape) and shape[0] > 1 and not layout.strides[0] and value.shape[:1] == (1,)
    return is_stretched and len(value.shape) >= len(shape) and _has_first_axis(value, layout)


def _has_first_axis(value: Value, layout: Layout, *, is_gathered: bool = False) -> bool:
    whole, seen = value.shape, layout.shape
    if 0 in value.axes:
        return False
    if is_gathered and whole[:1] != (1,):
        return False  # the axis is that of the indices
    if len(whole) >= len(seen):
        return True
    # Else the axis was put in front of what there is; an integer is an index or a label, one for each row.
    return whole[:1] == (1,) and not (whole == (1,) and value.form is INPUT and value.dtype.is_floating)
