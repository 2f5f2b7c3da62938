"""Counts the work that a kernel with reductions does more than once.

A kernel runs through its inner dimension once for each phase of its reductions, and once more to store. (A phase is a
set of reductions that do not wait for one another.) Each pass computes the values that it needs at inner points, so a
value that several passes need is computed several times. That is faster than a buffer as long as the work is little.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import prod

from fusewire_kernels.codegen.bodies import weight
from fusewire_kernels.graph.graph import POINTWISE, REDUCTION, Value

MOST_RECOMPUTED = 40  # of a kernel, in weights of scalar bodies: softmax, for one, computes its exponential twice


def recomputed_weight(
    values: Sequence[Value], members: Iterable[int], elements: int, is_stored: Callable[[int], bool]
) -> int:
    """The weight of the work at one point that a kernel of these members repeats.

    `elements` is the number of points of the kernel's space; `is_stored` tells whether a member needs a store.
    """
    needed: dict[int, int] = {}  # by member: bits of the members that a pass computes to have it
    phase_of: dict[int, int] = {}  # by member: the first phase in which its operands are known
    bits_of_weight: defaultdict[int, int] = defaultdict(int)
    passes: defaultdict[int | None, int] = defaultdict(int)  # by phase (None: the stores): bits of what it computes
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
            bits = 0  # computed between two passes
        needed[number], phase_of[number] = bits, phase
    once = 0
    for bits in passes.values():
        once |= bits
    return sum(_total(bits, bits_of_weight) for bits in passes.values()) - _total(once, bits_of_weight)


def _weight(value: Value) -> int:
    has_body = value.form is POINTWISE and value.body != "cast"
    return weight(value.body, value.dtype) if has_body else 1


def _total(bits: int, bits_of_weight: dict[int, int]) -> int:
    return sum(each * (bits & of_weight).bit_count() for each, of_weight in bits_of_weight.items())
