"""Generates the CUDA text of a product kernel, with one entry point for each size of tile. Pure.

The kernel computes `a @ b`. The dimension that a and b share is k. One thread computes each element of the result, as
one chain of fused multiply-adds over ascending k. So every size of tile gives the same bits.

A tile is the part of the result that a block of threads computes at a time. The threads of a block load pieces of a and
b into shared memory, and each thread keeps its elements of the tile in registers.
"""

from __future__ import annotations

from importlib.resources import files
from string import Template

from fusewire_kernels.codegen import templates
from fusewire_kernels.codegen.bodies import TYPES, loaded
from fusewire_kernels.codegen.geometry import THREADS_ACROSS, THREADS_DOWN, TILES, Tile
from fusewire_kernels.codegen.kernel import ProductKernel
from fusewire_kernels.codegen.loops_cuda import PARAMETERS, instance_lines
from fusewire_kernels.codegen.product import accumulator_of, finished, multiply_add, product_size_names
from fusewire_kernels.codegen.text import Lines
from fusewire_protos.dtypes import DType

_TILE_PARAMETERS = ("side", "depth", "steps")
_BLOCKS_AT_ONCE = 2  # blocks on a multiprocessor: one block computes while the other block waits


def cuda_product_text(kernel: ProductKernel) -> str:
    """Returns the CUDA entry points of a product kernel, after the shared functions of its dtype."""
    lines = Lines()
    lines.add(f"template <{', '.join(f'int {name}' for name in _TILE_PARAMETERS)}>")
    with lines.block(f"FW_FN void {kernel.key}_any({PARAMETERS})"):
        _write_tiles(lines, kernel)
    for tile in TILES:
        _write_entry(lines, kernel, tile)
    return _machinery(kernel.dtype) + lines.text()


def _write_entry(lines: Lines, kernel: ProductKernel, tile: Tile) -> None:
    bounds = f"__launch_bounds__({THREADS_DOWN * THREADS_ACROSS}, {_BLOCKS_AT_ONCE})"
    with lines.block(f'extern "C" __global__ void {bounds} {kernel.key}_{tile.entry}({PARAMETERS})'):
        fitting = _fitting(kernel.dtype, tile)
        numbers = ", ".join(str(getattr(fitting, name)) for name in _TILE_PARAMETERS)
        lines.add(f"{kernel.key}_any<{numbers}>(sizes, operands, slots, columns);")


def _fitting(dtype: DType, tile: Tile) -> Tile:
    """Returns the tile, or a smaller tile if the elements are too large for the registers and the shared memory.

    A smaller tile needs no larger grid, because each block computes several tiles if there are more tiles than blocks.
    """
    if dtype.itemsize_bytes < 8:
        return tile
    return tile._replace(side=min(tile.side, 4), depth=max(tile.depth // 2, 16), steps=max(tile.steps // 2, 4))


def _write_tiles(lines: Lines, kernel: ProductKernel) -> None:
    """Writes the loop over the tiles of a block. Block x computes the tiles x, x + n, …, where n is the grid's size."""
    text_type = TYPES[kernel.dtype]
    lines.add(*instance_lines(arity=3))
    names = ["result_columns" if name == "columns" else name for name in product_size_names(kernel)]
    lines.add(*(f"const int64_t {name} = fw_read_now(sizes + {position});" for position, name in enumerate(names)))
    for number, name in enumerate(("a", "b", "out")):
        fields = ", ".join(f"fw_read_now(&operands[{number}].{field})" for field in ("column", "byte_offset"))
        lines.add(f"const fw_operand {name}_at = {{{fields}}};")
    for name in ("a", "b", "out"):
        address = f"fw_read_now(slots + {name}_at.column) + {name}_at.byte_offset"
        lines.add(f"{text_type.stored} *{name} = ({text_type.stored} *)__cvta_global_to_generic({address});")
    lines.add(f"const int height = {THREADS_DOWN} * side, width = {THREADS_ACROSS} * side;")
    lines.add("const int64_t tiles_down = (rows + height - 1) / height;")
    lines.add("const int64_t tiles_across = (result_columns + width - 1) / width;")
    batches = " * ".join([f"n{dim}" for dim in range(kernel.batch_rank)] or ["1"])
    lines.add(f"const int64_t tiles = tiles_down * tiles_across * {batches};")
    with lines.block("for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)"):
        lines.add("int64_t batch = tile;")
        lines.add("const int64_t column = fw_split_index(&batch, tiles_across) * width;")
        lines.add("const int64_t row = fw_split_index(&batch, tiles_down) * height;")
        lines.add(f"{text_type.stored} *result = out + batch * rows * result_columns;")
        _write_tile(lines, kernel)


def _write_tile(lines: Lines, kernel: ProductKernel) -> None:
    t = TYPES[kernel.dtype].suffix
    if kernel.a_is_transposed:
        lines.add(f"fw_matrix_{t} left = {{a + row, a_inner, 1, rows}};")
    else:
        lines.add(f"fw_matrix_{t} left = {{a + row * a_row, a_row, a_inner, inner}};")
    if kernel.b_is_unit:
        lines.add(f"fw_matrix_{t} right = {{b + column, b_inner, 1, result_columns}};")
    else:
        lines.add(f"fw_matrix_{t} right = {{b + column * b_column, b_column, b_inner, inner}};")
    for dim in reversed(range(kernel.batch_rank)):
        lines.add(f"const int64_t i{dim} = fw_split_index(&batch, n{dim});")
        lines.add(f"left.start += i{dim} * as{dim}, right.start += i{dim} * bs{dim};")
    are_along = (str(not kernel.a_is_transposed).lower(), str(not kernel.b_is_unit).lower())
    parameters = ", ".join((*_TILE_PARAMETERS, *are_along))
    lines.add(f"fw_tile_{t}<{parameters}>(left, right, result, rows, result_columns, inner, row, column);")


def _machinery(dtype: DType) -> str:
    text_type, accumulator = TYPES[dtype], accumulator_of(dtype)
    template = Template(files(templates).joinpath("product.cu").read_text(encoding="utf-8"))
    return template.substitute(
        t=text_type.suffix,
        S=text_type.stored,
        A=accumulator.name,
        is_stored=int(accumulator.is_stored),
        down=THREADS_DOWN,
        across=THREADS_ACROSS,
        minus_zero="0x8000" if dtype.is_half else "-0.0" if dtype.is_floating else "0",
        loaded=loaded("element", dtype),
        finished=finished("value", dtype),
        multiply_add=multiply_add(dtype, "left", "right", "sums[r][c]"),
    )
