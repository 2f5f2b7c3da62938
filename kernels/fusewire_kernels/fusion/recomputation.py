"""What a kernel that reduces computes more than once: values at inner points, which several reductions or stores need.

A kernel walks its inner dimension once for each phase of its reductions (those that wait for no other are one phase)
and once more to store; what a walk needs at its points it computes there. That saves memory as long as it is little.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import prod

from fusewire_kernels.codegen.bodies import weight
from fusewire_kernels.graph.graph import POINTWISE, REDUCTION, Value

MOST_RECOMPUTED = 40  # of a kernel, in weights of scalar bodies: some functions, as softmax needs its exponential again


def recomputed_weight(
    values: Sequence[Value], members: Iterable[int], elements: int, is_stored: Callable[[int], bool]
) -> int:
    """How much work at a point is done again by a kernel of these members, which has so many inner points."""
    needed: dict[int, int] = {}  # by member: the bits of what must be computed at a point to have it
    phase_of: dict[int, int] = {}  # by member: the first that knows it
    bits_of_weight: defaultdict[int, int] = defaultdict(int)
    walks: defaultdict[int | None, int] = defaultdict(int)  # by phase, None for the stores: what it computes
    for bit, number in enumerate(members):
        value = values[number]
        inside = [operand.value for operand in value.operands if operand.value in needed]
        phase = max((phase_of[base] for base in inside), default=0)
        bits = 0
        for base in inside:
            bits |= needed[base]
        if value.form is REDUCTION:
            walks[phase] |= bits
            phase, bits = phase + 1, 0
        elif prod(value.shape) == elements:
            bits |= 1 << bit
            bits_of_weight[_weight(value)] |= 1 << bit
            if is_stored(number):
                walks[None] |= bits
        else:
            bits = 0  # computed between the walks
        needed[number], phase_of[number] = bits, phase
    once = 0
    for bits in walks.values():
        once |= bits
    return sum(_total(bits, bits_of_weight) for bits in walks.values()) - _total(once, bits_of_weight)


def _weight(value: Value) -> int:
    has_body = value.form is POINTWISE and value.body != "cast"
    return weight(value.body, value.dtype) if has_body else 1


def _total(bits: int, bits_of_weight: dict[int, int]) -> int:
    return sum(each * (bits & of_weight).bit_count() for each, of_weight in bits_of_weight.items())
