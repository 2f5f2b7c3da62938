"""A product kernel as CUDA: one entry point for each size of tile, all with the same bits.

Every element is one chain of fma over ascending k, in one thread. The threads of a block bring parts of a and b into
shared memory, as deep as a tile says, and each keeps its elements of the tile in registers.
"""

from __future__ import annotations

from importlib.resources import files
from string import Template

from fusewire_kernels.codegen import templates
from fusewire_kernels.codegen.bodies import TYPES, loaded
from fusewire_kernels.codegen.geometry import TILES, Tile
from fusewire_kernels.codegen.loops_cuda import PARAMETERS, instance_lines
from fusewire_kernels.codegen.product import accumulator_of, finished, multiply_add, product_size_names
from fusewire_kernels.codegen.text import Lines
from fusewire_kernels.kernel import ProductKernel
from fusewire_protos.dtypes import DType

_TILE_PARAMETERS = ("height", "width", "thread_height", "thread_width", "depth")


def cuda_product_text(kernel: ProductKernel) -> str:
    """The CUDA entry points of a product kernel, behind the machinery of its dtype."""
    lines = Lines()
    lines.add(f"template <{', '.join(f'int {name}' for name in _TILE_PARAMETERS)}>")
    with lines.block(f"FW_FN void {kernel.key}_any({PARAMETERS})"):
        _write_tiles(lines, kernel)
    for tile in TILES:
        _write_entry(lines, kernel, tile)
    return _machinery(kernel.dtype) + lines.text()


def _write_entry(lines: Lines, kernel: ProductKernel, tile: Tile) -> None:
    head = f'extern "C" __global__ void __launch_bounds__({tile.threads}) {kernel.key}_{tile.entry}({PARAMETERS})'
    with lines.block(head):
        numbers = ", ".join(str(getattr(tile, name)) for name in _TILE_PARAMETERS)
        lines.add(f"{kernel.key}_any<{numbers}>(sizes, operands, slots, columns);")


def _write_tiles(lines: Lines, kernel: ProductKernel) -> None:
    """The tiles of a block, every so many-th of all."""
    text_type = TYPES[kernel.dtype]
    lines.add(*instance_lines(arity=3))
    names = ["result_columns" if name == "columns" else name for name in product_size_names(kernel)]
    lines.add(*(f"const int64_t {name} = sizes[{position}];" for position, name in enumerate(names)))
    for number, (name, constant) in enumerate((("a", "const "), ("b", "const "), ("out", ""))):
        address = f"slots[operands[{number}].column] + operands[{number}].byte_offset"
        lines.add(f"{constant}{text_type.stored} *{name} = ({constant}{text_type.stored} *)({address});")
    lines.add("const int64_t down = (rows + height - 1) / height, across = (result_columns + width - 1) / width;")
    batches = " * ".join([f"n{dim}" for dim in range(kernel.batch_rank)] or ["1"])
    lines.add(f"const int64_t tiles = down * across * {batches};")
    with lines.block("for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)"):
        lines.add("int64_t batch = tile;")
        lines.add("const int64_t column = fw_split_index(&batch, across) * width;")
        lines.add("const int64_t row = fw_split_index(&batch, down) * height;")
        lines.add(f"{text_type.stored} *result = out + batch * rows * result_columns;")
        _write_tile(lines, kernel)


def _write_tile(lines: Lines, kernel: ProductKernel) -> None:
    t = TYPES[kernel.dtype].suffix
    lines.add(f"fw_matrix_{t} left = {{a, a_row, a_inner}};")
    lines.add(f"fw_matrix_{t} right = {{b, b_inner, {'1' if kernel.b_is_unit else 'b_column'}}};")
    for dim in reversed(range(kernel.batch_rank)):
        lines.add(f"const int64_t i{dim} = fw_split_index(&batch, n{dim});")
        lines.add(f"left.start += i{dim} * as{dim}, right.start += i{dim} * bs{dim};")
    parameters = ", ".join(_TILE_PARAMETERS)
    lines.add(f"fw_tile_{t}<{parameters}>(left, right, result, rows, result_columns, inner, row, column);")


def _machinery(dtype: DType) -> str:
    text_type, accumulator = TYPES[dtype], accumulator_of(dtype)
    template = Template(files(templates).joinpath("product.cu").read_text(encoding="utf-8"))
    return template.substitute(
        t=text_type.suffix,
        S=text_type.stored,
        A=accumulator.name,
        loaded=loaded("*element", dtype),
        finished=finished("value", dtype),
        multiply_add=multiply_add(dtype, "left", "right", "sums[r][c]"),
    )
