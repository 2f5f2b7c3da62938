"""Writes the loops of a CUDA kernel over the points of its result. Pure.

A thread takes every n-th point, where n is the number of threads. If the body is short, the memory is what limits a
kernel, and a thread has few loads under way at a time. So it takes several points at once: it loads the inputs of all
of them before it stores the first result. The compiler may not move a load before a store, because it does not know
that no thread reads what another one writes.
"""

from __future__ import annotations

from collections.abc import Iterable

from fusewire_kernels.codegen.cuda.entry import LET_NEXT_START
from fusewire_kernels.codegen.dialect import CUDA
from fusewire_kernels.codegen.expressions import TYPES
from fusewire_kernels.codegen.statements import UNLESS_IN_PLACE, AnalysedKernel
from fusewire_kernels.codegen.text import Lines
from fusewire_kernels.ir.kernel import ArgumentKind

_AT_ONCE = 4  # points of a thread
_MOST_INPUTS, _MOST_WEIGHT = 4, 24  # of a short body


def write_pointwise(lines: Lines, body: AnalysedKernel) -> None:
    """Writes the loop over all points. The statements before it have read the arguments."""
    lines.add(f"const int64_t points = {product_of(range(body.dims))};", LET_NEXT_START)
    if body.kernel.is_copy:
        lines.add(UNLESS_IN_PLACE)
    inputs = _inputs_at_once(body)
    if inputs:
        _write_several_points(lines, body, inputs)
        return
    lines.add("#pragma unroll 1  /* an unrolled loop begins with a division, to count its trips */")
    with lines.block(f"for (int64_t point = {CUDA.index}; point < points; point += {CUDA.count})"):
        write_positions(lines, range(body.dims))
        lines.add(*(body.declaration(value) for value in body.all_needed))
        lines.add(*(body.storing(output) for output in range(len(body.stored))))


def is_short(body: AnalysedKernel) -> bool:
    """Returns whether a body may be written out for several points, because it takes longer to load than to compute."""
    return sum(body.weight(value) for value in body.all_needed if not body.is_reduction(value)) <= _MOST_WEIGHT


def _inputs_at_once(body: AnalysedKernel) -> list[int]:
    """Returns the inputs that a thread loads for several points at once. There are none if it takes one at a time."""
    arrays = [value for value in body.all_needed if body.node(value) is None and body.levels[value] > 0]
    gathers = any(argument.kind is ArgumentKind.GATHERED for argument in body.kernel.inputs)
    is_wide = body.dims != 1 or len(arrays) > _MOST_INPUTS
    return arrays if is_short(body) and not is_wide and not gathers else []


def _write_several_points(lines: Lines, body: AnalysedKernel, inputs: list[int]) -> None:
    """Writes a loop in which a thread takes `_AT_ONCE` points at once. `k0[n]` is the input `a0` at its n-th point."""
    others = [value for value in body.all_needed if value not in inputs]
    lines.add(*(body.declaration(value) for value in others if body.levels[value] == 0))
    lines.add(f"const int64_t apart = {CUDA.count};")
    lines.add("#pragma unroll 1  /* an unrolled loop begins with a division, to count its trips */")
    with lines.block(f"for (int64_t first = {CUDA.index}; first < points; first += {_AT_ONCE} * apart)"):
        lines.add(*(f"{TYPES[body.dtype(value)].value} k{value}[{_AT_ONCE}];" for value in inputs))
        lines.add("#pragma unroll")
        with lines.block(f"for (int n = 0; n < {_AT_ONCE}; n++)"):
            lines.add("const int64_t i0 = first + n * apart;")
            with lines.block("if (i0 < points)"):
                for value in inputs:
                    lines.add(body.declaration(value), f"k{value}[n] = v{value};")
        lines.add("#pragma unroll")
        with lines.block(f"for (int n = 0; n < {_AT_ONCE}; n++)"):
            lines.add("const int64_t i0 = first + n * apart;")
            with lines.block("if (i0 < points)"):
                lines.add(*(f"const {TYPES[body.dtype(value)].value} v{value} = k{value}[n];" for value in inputs))
                lines.add(*(body.declaration(value) for value in others if body.levels[value] > 0))
                lines.add(*(body.storing(output) for output in range(len(body.stored))))


def product_of(dims: Iterable[int]) -> str:
    return " * ".join([f"n{dim}" for dim in dims]) or "(int64_t)1"


def write_positions(lines: Lines, dims: range) -> None:
    """Writes the statements that turn the number `point`, in row-major order, into its positions along `dims`."""
    if not dims:
        return
    if len(dims) == 1:
        lines.add(f"const int64_t i{dims[0]} = point;")
        return
    lines.add("int64_t rest = point;")
    for dim in reversed(dims[1:]):
        lines.add(f"const int64_t i{dim} = fw_split_index(&rest, n{dim});")
    lines.add(f"const int64_t i{dims[0]} = rest;")
