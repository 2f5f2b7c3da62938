"""Generates the CUDA text of a kernel of lines. Pure.

A scan runs in segments, one a warp: a block scans a line of several segments, and each warp of it a line of one
segment. A block sorts a run of a line in shared memory. A thread merges one element: the elements of the other run that
go before it are counted by bisection, so it knows its place. A warp reduces a segment, whose first and last elements it
finds by bisection.
"""

from __future__ import annotations

from collections.abc import Callable

from fusewire_kernels.codegen.cuda.entry import LET_NEXT_START, WAIT, instance_lines
from fusewire_kernels.codegen.cuda.geometry import SCANNING_WARPS, SEGMENT_WARPS, SORTING_THREADS
from fusewire_kernels.codegen.dialect import CUDA
from fusewire_kernels.codegen.expressions import TYPES
from fusewire_kernels.codegen.lines import definitions, names, reduction_of
from fusewire_kernels.codegen.templates import template
from fusewire_kernels.codegen.text import Lines
from fusewire_kernels.ir.kernel import LineKernel
from fusewire_kernels.ops.order import LANES, SORTED_RUN

_SIZES = ("before", "length", "behind", "run", "segments")
_MERGING_THREADS = 256


def cuda_line_text(kernel: LineKernel) -> str:
    """Returns the CUDA entry point of a kernel of lines, after the functions that it calls."""
    lines = Lines()
    lines.add(f"#ifndef FW_SCAN_SEGMENT\n{template('lines.cu')}#endif")
    lines.add(*definitions(kernel))
    text_type = TYPES[kernel.operand_dtype]
    if kernel.sorts:
        lines.add(f"FW_BITONIC_SORT({kernel.key}_sort, {text_type.value}, FW_LINE_PRECEDES)")
    elif not kernel.reduces_segments:
        types = f"{text_type.value}, {text_type.stored}"
        lines.add(f"FW_SCAN_SEGMENT({kernel.key}_segment, {types}, FW_LINE_COMBINE, FW_LINE_LOADED)")
    threads, write = _entry_of(kernel)
    with lines.block(CUDA.head_of(kernel.key, threads)):
        _write_arguments(lines, kernel)
        write(lines, kernel)
    lines.add(*(f"#undef {name}" for name in names(kernel)))
    return lines.text()


def _entry_of(kernel: LineKernel) -> tuple[int, Callable[[Lines, LineKernel], None]]:
    """Returns the threads of a block, and what writes their work."""
    if kernel.merges:
        return _MERGING_THREADS, _write_merge
    if kernel.sorts:
        return SORTING_THREADS, _write_sort
    return (
        (SEGMENT_WARPS * LANES, _write_segments) if kernel.reduces_segments else (SCANNING_WARPS * LANES, _write_scan)
    )


def _write_arguments(lines: Lines, kernel: LineKernel) -> None:
    arguments = kernel.argument_dtypes
    lines.add(*instance_lines(len(_SIZES), len(arguments)))
    lines.add(*(f"const int64_t {name} = sizes[{position}];" for position, name in enumerate(_SIZES)))
    second = ("place",) if kernel.reduces_segments else ("order",) if kernel.merges else ()
    for number, (name, dtype) in enumerate(zip(("from", *second, "to"), arguments, strict=True)):
        stored = TYPES[dtype].stored
        address = f"slots[operands[{number}].column] + operands[{number}].byte_offset"
        constant = "" if name == "to" else "const "
        lines.add(f"{constant}{stored} *{name} = ({constant}{stored} *)__cvta_global_to_generic({address});")
    lines.add(WAIT, LET_NEXT_START)
    lines.add("const int64_t all = before * behind;")


def _write_scan(lines: Lines, kernel: LineKernel) -> None:
    value, stored = TYPES[kernel.operand_dtype].value, TYPES[kernel.dtype].stored
    segment = f"{kernel.key}_segment"
    lines.add("const int warp = threadIdx.x / FW_SCAN_LANES, warps = blockDim.x / FW_SCAN_LANES;")
    lines.add("const int first = threadIdx.x % FW_SCAN_LANES * FW_SCAN_ELEMENTS;")
    lines.add("const int most = FW_SCAN_LANES * FW_SCAN_ELEMENTS;")
    lines.add(f"{value} own[FW_SCAN_ELEMENTS] = {{}}, total;")
    with lines.block("if (length <= most)"):
        with lines.block(
            "for (int64_t line = (int64_t)blockIdx.x * warps + warp; line < all; line += gridDim.x * warps)"
        ):
            lines.add("const int64_t at = line / behind * length * behind + line % behind;")
            lines.add(f"{segment}(from + at, behind, (int)length, own, &total);")
            lines.add(f"{stored} *target = to + at;")
            with lines.block("for (int i = 0; i < FW_SCAN_ELEMENTS && first + i < length; i++)"):
                lines.add("target[(first + i) * behind] = FW_LINE_STORED(own[i]);")
        lines.add("return;")
    lines.add(f"__shared__ {value} totals[{SCANNING_WARPS}];")
    with lines.block("for (int64_t line = blockIdx.x; line < all; line += gridDim.x)"):
        lines.add("const int64_t at = line / behind * length * behind + line % behind;")
        lines.add(f"{value} before_chunk = 0;")
        with lines.block("for (int64_t chunk = 0; chunk < length; chunk += (int64_t)warps * most)"):
            lines.add("const int64_t begin = chunk + (int64_t)warp * most, left = length - begin;")
            lines.add("const int count = left >= most ? most : left > 0 ? (int)left : 0;")
            lines.add(f"{segment}(from + at + begin * behind, behind, count, own, &total);")
            lines.add("if (threadIdx.x % FW_SCAN_LANES == 0) totals[warp] = total;")
            lines.add(CUDA.barrier)
            lines.add(f"{value} ahead = before_chunk;")
            lines.add("bool has_ahead = chunk > 0;")
            with lines.block("for (int w = 0; w < warps; w++)"):
                lines.add("if (w == warp) break;")
                lines.add("ahead = has_ahead ? FW_LINE_COMBINE(ahead, totals[w]) : totals[w];")
                lines.add("has_ahead = true;")
            lines.add("before_chunk = chunk > 0 ? FW_LINE_COMBINE(before_chunk, totals[0]) : totals[0];")
            lines.add("for (int w = 1; w < warps; w++) before_chunk = FW_LINE_COMBINE(before_chunk, totals[w]);")
            lines.add(CUDA.barrier)
            with lines.block("for (int i = 0; i < FW_SCAN_ELEMENTS && first + i < count; i++)"):
                lines.add(f"const {value} found = has_ahead ? FW_LINE_COMBINE(ahead, own[i]) : own[i];")
                lines.add("to[at + (begin + first + i) * behind] = FW_LINE_STORED(found);")


def _write_segments(lines: Lines, kernel: LineKernel) -> None:
    value = TYPES[kernel.operand_dtype].value
    lines.add("const int lane = threadIdx.x % FW_LANES, warps = blockDim.x / FW_LANES;")
    lines.add("const int64_t first = (int64_t)blockIdx.x * warps + threadIdx.x / FW_LANES;")
    lines.add(f"{TYPES[kernel.dtype].stored} *target = to;")
    with lines.block("for (int64_t at = first; at < all * segments; at += (int64_t)gridDim.x * warps)"):
        lines.add("const int64_t segment = at / behind % segments;")
        lines.add("const int64_t begin = fw_first_of_segment(place, length, segment);")
        lines.add("const int64_t end = fw_first_of_segment(place, length, segment + 1);")
        lines.add("const int lanes = end - begin < FW_LANES ? (int)(end - begin) : FW_LANES;")
        line = "at / (segments * behind) * length * behind + at % behind"
        lines.add(f"const {TYPES[kernel.operand_dtype].stored} *source = from + {line};")
        lines.add(f"{value} own = {reduction_of(kernel).of_nothing};")
        lines.add("if (lane < lanes) own = FW_LINE_LOADED(source[(begin + lane) * behind]);")
        with lines.block("for (int64_t i = begin + FW_LANES + lane; i < end; i += FW_LANES)"):
            lines.add("own = FW_LINE_COMBINE(own, FW_LINE_LOADED(source[i * behind]));")
        with lines.block("for (int offset = FW_LANES / 2; offset > 0; offset /= 2)"):
            lines.add(f"const {value} other = __shfl_down_sync(0xffffffffu, own, offset);")
            lines.add("if (lane < offset && lane + offset < lanes) own = FW_LINE_COMBINE(own, other);")
        lines.add("if (lane == 0) target[at] = FW_LINE_STORED(own);")


def _write_sort(lines: Lines, kernel: LineKernel) -> None:
    value = TYPES[kernel.operand_dtype].value
    lines.add(f"__shared__ {value} key[{SORTED_RUN}];", f"__shared__ int place[{SORTED_RUN}];")
    lines.add("const int64_t runs = (length + run - 1) / run;")
    with lines.block("for (int64_t part = blockIdx.x; part < all * runs; part += gridDim.x)"):
        lines.add("const int64_t line = part / runs, begin = part % runs * run, left = length - begin;")
        lines.add("const int count = left < run ? (int)left : (int)run;")
        lines.add("const int64_t at = line / behind * length * behind + line % behind + begin * behind;")
        lines.add("int size = 1;", "while (size < count) size *= 2;")
        with lines.block("for (int i = threadIdx.x; i < size; i += blockDim.x)"):
            lines.add(f"key[i] = i < count ? ({value})FW_LINE_LOADED(from[at + i * behind]) : ({value})0;")
            lines.add("place[i] = i;")
        lines.add(f"{kernel.key}_sort(key, place, size, count);")
        lines.add("for (int i = threadIdx.x; i < count; i += blockDim.x) to[at + i * behind] = begin + place[i];")
        lines.add(CUDA.barrier)


def _write_merge(lines: Lines, kernel: LineKernel) -> None:
    value = TYPES[kernel.operand_dtype].value
    lines.add(f"const int64_t points = all * length, stride = {CUDA.count};")
    with lines.block(f"for (int64_t point = {CUDA.index}; point < points; point += stride)"):
        lines.add("const int64_t line = point / length, own = point % length;")
        lines.add("const int64_t at = line / behind * length * behind + line % behind;")
        lines.add(
            "const int64_t begin = own / (2 * run) * (2 * run), middle = begin + run < length ? begin + run : length;"
        )
        lines.add("const int64_t end = middle + run < length ? middle + run : length;")
        lines.add("const int64_t position = order[at + own * behind];")
        lines.add(f"const {value} key = FW_LINE_LOADED(from[at + position * behind]);")
        lines.add("const bool is_left = own < middle;")
        lines.add("const int64_t other = is_left ? middle : begin;")
        lines.add("int64_t low = other, high = is_left ? end : middle;")
        with lines.block("while (low < high)"):
            lines.add("const int64_t half = low + (high - low) / 2;")
            lines.add(f"const {value} found = FW_LINE_LOADED(from[at + order[at + half * behind] * behind]);")
            lines.add(
                "const bool goes_before = is_left ? FW_LINE_PRECEDES(found, key) : !(FW_LINE_PRECEDES(key, found));"
            )
            lines.add("if (goes_before) low = half + 1;", "else high = half;")
        lines.add("const int64_t target = (is_left ? own : begin + own - middle) + low - other;")
        lines.add("to[at + target * behind] = position;")
