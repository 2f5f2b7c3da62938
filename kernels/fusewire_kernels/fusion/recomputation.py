"""Counts the work that a kernel with reductions does more than once.

The reductions of a kernel run in phases. A phase is a set of reductions that do not wait for one another. The kernel
passes through its inner dimension once for each phase, and once more to store results. Each pass computes the values
that it needs at the inner points, so a value that several passes need is computed several times. If the computation is
short, this is faster than to keep the value in a buffer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import prod

from fusewire_kernels.graph.graph import POINTWISE, REDUCTION, Value
from fusewire_kernels.ops.bodies import HEAVY_WEIGHT, weight

MOST_RECOMPUTED = 40  # weight of the repeated work of a kernel; softmax, for example, computes its exponential twice


def recomputed_weight(
    values: Sequence[Value], members: Iterable[int], elements: int, is_stored: Callable[[int], bool]
) -> int:
    """Returns the weight of the work that a kernel of these members repeats at one point.

    `elements` is the number of points of the kernel's space. `is_stored` tells whether a member needs a store.
    """
    needed: dict[int, int] = {}  # by member: bits of the members that a pass computes to get its value
    phase_of: dict[int, int] = {}  # by member: the first phase in which its operands are known
    bits_of_weight: defaultdict[int, int] = defaultdict(int)
    passes: defaultdict[int | None, int] = defaultdict(int)  # by phase (None: stores): bits of the members to compute
    for bit, number in enumerate(members):
        value = values[number]
        inside = [operand.value for operand in value.operands if operand.value in needed]
        phase = max((phase_of[base] for base in inside), default=0)
        bits = 0
        for base in inside:
            bits |= needed[base]
        if value.form is REDUCTION:
            passes[phase] |= bits
            phase, bits = phase + 1, 0
        elif prod(value.shape) == elements:
            bits |= 1 << bit
            bits_of_weight[_weight(value)] |= 1 << bit
            if is_stored(number):
                passes[None] |= bits
        else:
            bits = 0  # the member is computed between two passes
        needed[number], phase_of[number] = bits, phase
    once = 0
    for bits in passes.values():
        once |= bits
    return sum(_total(bits, bits_of_weight) for bits in passes.values()) - _total(once, bits_of_weight)


def is_heavy(value: Value) -> bool:
    """Returns whether computing the value again at each use costs more than reading it."""
    return _weight(value) >= HEAVY_WEIGHT


def _weight(value: Value) -> int:
    has_body = value.form is POINTWISE and value.body != "cast"
    return weight(value.body, value.dtype) if has_body else 1


def _total(bits: int, bits_of_weight: dict[int, int]) -> int:
    return sum(each * (bits & of_weight).bit_count() for each, of_weight in bits_of_weight.items())
