"""Generates the CUDA texts of a product kernel, one for each size of tile. Pure.

The kernel computes `a @ b`. The dimension that a and b share is k. One thread computes each element of the result, as
one chain of fused multiply-adds over ascending k. So every size of tile gives the same bits.

The right operand may be walked along several axes, as the windows of an array are. Then the threads of a block count
where its loads lie, each for one line, and everything else is the same.

A tile is the part of the result that a block of threads computes at a time. The threads of a block load pieces of a and
b into shared memory, and each thread keeps its elements of the tile in registers. When a tile is finished, its elements
are stored, or the epilogue is computed from them.
"""

from __future__ import annotations

from string import Template

from fusewire_kernels.codegen.cuda.entry import LET_NEXT_START, WAIT, instance_lines
from fusewire_kernels.codegen.cuda.geometry import LOADING_THREADS, Tile
from fusewire_kernels.codegen.dialect import CUDA
from fusewire_kernels.codegen.expressions import TYPES, loaded
from fusewire_kernels.codegen.product import (
    accumulator_of,
    epilogue_arrays,
    finished,
    multiply_add,
    product_size_names,
    walk_names,
)
from fusewire_kernels.codegen.statements import AnalysedKernel, analyse
from fusewire_kernels.codegen.templates import template
from fusewire_kernels.codegen.text import Lines
from fusewire_kernels.ir.kernel import LoopKernel, ProductKernel, Stride
from fusewire_protos.ops.dtypes import DType

_TILE_PARAMETERS = ("down", "across", "high", "wide", "depth", "steps", "kept")
_BLOCKS_AT_ONCE = 2  # blocks on a multiprocessor: one block computes while the other block waits


def cuda_product_text(kernel: ProductKernel, tile: Tile) -> str:
    """Returns the CUDA entry point of a product kernel for a size of tile, after the shared functions of its dtype."""
    lines = Lines()
    # Several tiles of a kernel may be compiled together.
    lines.add(f"#ifndef {kernel.key}_defined", f"#define {kernel.key}_defined")
    lines.add(f"template <{', '.join(f'int {name}' for name in _TILE_PARAMETERS)}>")
    parameters = CUDA.parameters.replace("const __grid_constant__ fw_values values", "const fw_values &values")
    with lines.block(f"FW_FN void {kernel.key}_any({parameters})"):
        _write_tiles(lines, kernel)
    lines.add("#endif")
    _write_entry(lines, kernel, tile)
    return _machinery(kernel) + lines.text()


def _write_entry(lines: Lines, kernel: ProductKernel, tile: Tile) -> None:
    with lines.block(CUDA.head_of(f"{kernel.key}_{tile.entry}", tile.threads, _BLOCKS_AT_ONCE)):
        fitting = _fitting(kernel.dtype, tile)
        numbers = ", ".join(str(getattr(fitting, name)) for name in _TILE_PARAMETERS)
        lines.add(f"{kernel.key}_any<{numbers}>(values, all_sizes, all_operands, slots, columns);")


def _fitting(dtype: DType, tile: Tile) -> Tile:
    """Returns the tile, or a smaller tile if the elements are too large for the registers and the shared memory.

    A smaller tile needs no larger grid, because each block computes several tiles if there are more tiles than blocks.
    """
    if dtype.itemsize_bytes < 8:
        return tile
    smaller = tile._replace(high=min(tile.high, 4), wide=min(tile.wide, 4))
    return smaller._replace(depth=max(tile.depth // 2, 16), steps=max(tile.steps // 2, 4))


def _write_tiles(lines: Lines, kernel: ProductKernel) -> None:
    """Writes the loop over the tiles of a block. Block x computes the tiles x, x + n, …, where n is the grid's size."""
    lines.add(*instance_lines(_count_sizes(kernel), len(kernel.argument_dtypes)))
    names = ["result_columns" if name == "columns" else name for name in product_size_names(kernel)]
    lines.add(*(f"const int64_t {name} = sizes[{position}];" for position, name in enumerate(names)))
    _write_addresses(lines, kernel)
    lines.add(WAIT, LET_NEXT_START)
    lines.add("const int height = down * high, width = across * wide;")
    lines.add("const int64_t tiles_down = (rows + height - 1) / height;")
    lines.add("const int64_t tiles_across = (result_columns + width - 1) / width;")
    batches = " * ".join([f"n{dim}" for dim in range(kernel.batch_rank)] or ["1"])
    lines.add(f"const int64_t tiles = tiles_down * tiles_across * {batches};")
    with lines.block("for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)"):
        lines.add("int64_t batch = tile;")
        lines.add("const int64_t column = fw_split_index(&batch, tiles_across) * width;")
        lines.add("const int64_t row = fw_split_index(&batch, tiles_down) * height;")
        if kernel.epilogue is None:
            lines.add(f"{TYPES[kernel.dtype].stored} *result = out + batch * rows * result_columns;")
        _write_tile(lines, kernel)


def _count_sizes(kernel: ProductKernel) -> int:
    """Returns how many entries of `sizes` the kernel reads."""
    arrays = epilogue_arrays(kernel)
    entries = sum(argument.strides.count(Stride.ANY) for _, argument in arrays)
    return len(product_size_names(kernel)) + len(arrays) * (kernel.batch_rank + 2) + entries


def _write_addresses(lines: Lines, kernel: ProductKernel) -> None:
    """Writes the addresses of all operands. Those of an epilogue's arrays are of the first matrix of the batch."""
    named = [(0, "a", kernel.dtype), (1, "b", kernel.dtype)]
    if kernel.epilogue is None:
        named.append((2, "out", kernel.dtype))
    else:
        named += [(number, f"{name}_first", dtype) for number, name, dtype in _named_arrays(kernel)]
    for number, name, _ in named:
        lines.add(f"const fw_operand {name}_at = operands[{number}];")
    for _, name, dtype in named:
        stored = TYPES[dtype].stored
        address = f"fw_read_now(slots + {name}_at.column) + {name}_at.byte_offset"
        lines.add(f"{stored} *{name} = ({stored} *)__cvta_global_to_generic({address});")


def _named_arrays(kernel: ProductKernel) -> list[tuple[int, str, DType]]:
    """Returns the arrays of an epilogue but the product: the number of the operand, the name in the text, the dtype."""
    assert kernel.epilogue is not None
    inputs = len(kernel.epilogue.inputs)
    return [
        (number, f"a{number - 1}" if number <= inputs else f"o{number - 1 - inputs}", argument.dtype)
        for number, argument in epilogue_arrays(kernel)
    ]


def _suffix(kernel: ProductKernel) -> str:
    """Returns how the names of functions end that kernels of a dtype share: those of walked operands are others."""
    return TYPES[kernel.dtype].suffix + ("" if kernel.walks is None else "_walked")


def _write_right(lines: Lines, kernel: ProductKernel, t: str) -> None:
    if kernel.walks is not None:
        ranks = ", ".join(str(rank) for rank in kernel.walks)
        axes = (
            ", ".join(f"{{{', '.join(f'(int){name}' for name in each)}}}" for each in walk)
            for walk in walk_names(kernel)
        )
        walks = ", ".join(f"{{{each}}}" for each in axes)
        lines.add(f"fw_right_{t}<{ranks}> right = {{b, {walks}, (int)column}};")
    elif kernel.b_is_unit:
        lines.add(f"fw_matrix_{t} right = {{b + column, b_inner, 1}};")
    else:
        lines.add(f"fw_matrix_{t} right = {{b + column * b_column, b_column, b_inner}};")


def _write_tile(lines: Lines, kernel: ProductKernel) -> None:
    t = _suffix(kernel)
    if kernel.a_is_transposed:
        lines.add(f"fw_matrix_{t} left = {{a + row, a_inner, 1}};")
    else:
        lines.add(f"fw_matrix_{t} left = {{a + row * a_row, a_row, a_inner}};")
    _write_right(lines, kernel, t)
    for dim in reversed(range(kernel.batch_rank)):
        lines.add(f"const int64_t batch{dim} = fw_split_index(&batch, n{dim});")
        lines.add(f"left.start += batch{dim} * as{dim}, right.start += batch{dim} * bs{dim};")
    accumulator = accumulator_of(kernel.dtype).name
    if kernel.epilogue is not None:
        _write_epilogue_arguments(lines, kernel, kernel.epilogue)
    lines.add(f"const auto finish = [&](int64_t i0, int64_t i1, {accumulator} sum) {{")
    if kernel.epilogue is None:
        lines.add(f"result[i0 * result_columns + i1] = {finished('sum', kernel.dtype)};")
    else:
        _write_epilogue(lines, kernel.dtype, analyse(kernel.epilogue))
    lines.add("};")
    are_along = (str(not kernel.a_is_transposed).lower(), str(not kernel.b_is_unit).lower())
    unit = "4" if kernel.is_in_fours else "1"
    parameters = ", ".join((*_TILE_PARAMETERS, *are_along, unit))
    lines.add(f"fw_tile_{t}<{parameters}>(left, right, rows, result_columns, inner, row, column, finish);")


def _write_epilogue_arguments(lines: Lines, kernel: ProductKernel, epilogue: LoopKernel) -> None:
    """Writes the arguments of the epilogue for one matrix of the batch, under the names that its statements use."""
    named, rank = _named_arrays(kernel), kernel.batch_rank
    moves = len(product_size_names(kernel))
    for position, (_, name, dtype) in enumerate(named):
        at = moves + position * (rank + 2)
        steps = "".join(f" + batch{dim} * sizes[{at + dim}]" for dim in range(rank))
        constant = "" if name.startswith("o") else "const "
        lines.add(f"{constant}{TYPES[dtype].stored} *{name} = {name}_first{steps};")
    for number, argument in enumerate(epilogue.inputs[1:], 1):
        if not argument.strides:
            stored = TYPES[argument.dtype].stored
            lines.add(f"const {stored} *a{number} = (const {stored} *)(slots + operands[{number + 1}].column);")
    entry = moves + len(named) * (rank + 2)
    for (_, name, _), (_, argument) in zip(named, epilogue_arrays(kernel), strict=True):
        for dim, stride in enumerate(argument.strides):
            if stride is Stride.ANY:
                lines.add(f"const int64_t {name}s{dim} = sizes[{entry}];")
                entry += 1


def _write_epilogue(lines: Lines, dtype: DType, body: AnalysedKernel) -> None:
    """Writes the statements that compute and store the values at row i0 and column i1. Value 0 is the product.

    The inputs are read by `__ldg`, so that the compiler may begin the reads of several elements before it stores the
    first. An output may lie in the memory of an input, but no thread reads an element that another thread writes. The
    kernel ahead may write inputs while this one waits for it, but each read comes after the wait, behind a branch.
    """
    product = loaded(finished("sum", dtype), dtype)
    lines.add(f"const {TYPES[dtype].value} v0 = {product};")
    lines.add(*(body.declaration(value, "__ldg(&{})") for value in body.all_needed if value != 0))
    lines.add(*(body.storing(output) for output in range(len(body.stored))))


def _machinery(kernel: ProductKernel) -> str:
    dtype, t = kernel.dtype, _suffix(kernel)
    text_type, accumulator = TYPES[dtype], accumulator_of(dtype)
    walked, right_parameter, right = "", "", f"fw_matrix_{t}"
    right_slice = f"fw_slice_of_{t}<b_is_along, width, depth, threads, unit>"
    if kernel.walks is not None:
        walked = Template(template("walked_slice.cu")).substitute(t=t, S=text_type.stored, A=accumulator.name)
        right_parameter, right = " typename Right,", "Right"
        right_slice = f"fw_right_slice_of_{t}<b_is_along, width, depth, threads, Right>"
    return template("copies.cu") + Template(template("product.cu")).substitute(
        t=t,
        walked=walked,
        right_parameter=right_parameter,
        right=right,
        right_slice=right_slice,
        S=text_type.stored,
        A=accumulator.name,
        is_stored=int(accumulator.is_stored),
        threads=LOADING_THREADS,
        minus_zero="0x8000" if dtype.is_half else "-0.0" if dtype.is_floating else "0",
        loaded=loaded("element", dtype),
        multiply_add=multiply_add(dtype, "left", "right", "sums[r][c]"),
    )
