"""Generates a product kernel as a C function, for one instance of one row. Pure.

The kernel computes `a @ b`. The dimension that a and b share is k. Each element of the result is one chain of fused
multiply-adds over ascending k. Tiles, blocks and packing never change a bit of the result, because between two blocks
of k the accumulators are stored and loaded exactly.

- A *tile* of up to 8 × 2 vectors of accumulators stays in registers while k runs over a block.
- To *pack* means to copy a block of a matrix so that a tile reads the copy in order of memory. b is packed into panels
  as wide as a tile, and a is packed into columns as high as a tile.
- If the result has at most 32 rows and the elements need no conversion, packing costs more than it saves. Then the
  kernel packs only ragged edges, and all of b if the elements of a row of b are not neighbours in memory. The kernel
  reads the rest in place.
- A product of one row reads whole rows of b, a few rows at a time.
- If the accumulator's type is not the stored type (float16, uint8, …), accumulators lie in scratch memory.

If b is walked along several axes, as the windows of an array are, the places of a block's rows and columns are counted
once, and b is always packed.

A product with an epilogue computes a block of up to 64 rows in scratch memory. Then the epilogue, a kernel of loops,
reads the block as an array.

All product kernels of a dtype share functions. The text of each kernel contains these functions. A macro named after
the dtype keeps the compiler from defining the functions twice.
"""

from __future__ import annotations

from string import Template

from fusewire_kernels.codegen.c.loops import loop_function
from fusewire_kernels.codegen.dialect import C
from fusewire_kernels.codegen.expressions import TYPES, loaded
from fusewire_kernels.codegen.product import (
    accumulator_of,
    epilogue_arrays,
    finished,
    multiply_add,
    product_size_names,
    walk_names,
)
from fusewire_kernels.codegen.templates import template
from fusewire_kernels.codegen.text import Lines
from fusewire_kernels.ir.kernel import LoopKernel, ProductKernel, Stride
from fusewire_protos.ops.dtypes import DType

_TILES = ((8, 2), (8, 1), (4, 2), (4, 1), (1, 2), (1, 1))
_ROWS_OF_K = 4


def product_text(kernel: ProductKernel) -> str:
    """Returns the C function of a product kernel, after the shared functions of its dtype and after its epilogue."""
    lines = Lines()
    with lines.block(C.head_of(kernel.key)):
        _write_batches(lines, kernel)
    epilogue = "" if kernel.epilogue is None else loop_function(kernel.epilogue, _epilogue_signature(kernel))
    walked = "" if kernel.walks is None else _walked_machinery(kernel.dtype)
    return _machinery(kernel.dtype) + walked + epilogue + lines.text()


def _epilogue_signature(kernel: ProductKernel) -> str:
    return "static __attribute__((noinline)) " + C.head_of(f"{kernel.key}_epilogue")


def _write_batches(lines: Lines, kernel: ProductKernel) -> None:
    stored = TYPES[kernel.dtype].stored
    names = product_size_names(kernel)
    of_walks = {name for walk in walk_names(kernel) for each in walk for name in each}
    for position, name in enumerate(names):
        if name not in of_walks:
            lines.add(f"const int64_t {name} = sizes[{position}];")
    arrays = [("a", "const "), ("b", "const ")] + ([] if kernel.epilogue else [("out", "")])
    for number, (name, constant) in enumerate(arrays):
        address = f"slots[operands[{number}].column] + operands[{number}].byte_offset"
        lines.add(f"{constant}{stored} *{name} = ({constant}{stored} *)({address});")
    if kernel.epilogue is not None:
        _write_epilogue_arguments(lines, kernel, kernel.epilogue)
    batch = range(kernel.batch_rank)
    for dim in batch:
        lines.add(f"for (int64_t i{dim} = 0; i{dim} < n{dim}; i{dim}++)")
    with lines.block(""):
        a = " + ".join(["a", *(f"i{dim} * as{dim}" for dim in batch)])
        b = " + ".join(["b", *(f"i{dim} * bs{dim}" for dim in batch)])
        t = TYPES[kernel.dtype].suffix
        if kernel.walks is None:
            unit = "1" if kernel.b_is_unit else "b_column"
            lines.add(f"const fw_matrix_{t} left = {{{a}, a_row, a_inner}}, right = {{{b}, b_inner, {unit}}};")
        else:
            walks = ", ".join(f"{{{len(each[0])}, sizes + {names.index(each[0][0])}}}" for each in walk_names(kernel))
            lines.add(f"const fw_matrix_{t} left = {{{a}, a_row, a_inner}};")
            lines.add(f"const fw_walked_{t} right = {{{b}, {walks}}};")
        if kernel.epilogue is None:
            function = f"fw_product_{t}" if kernel.walks is None else f"fw_walked_product_{t}"
            lines.add(f"{function}(rows, columns, inner, left, right, out);")
            lines.add("out += rows * columns;")
        else:
            _write_blocks(lines, kernel, kernel.epilogue)


def _write_epilogue_arguments(lines: Lines, kernel: ProductKernel, epilogue: LoopKernel) -> None:
    """Writes the parameters of the epilogue, as far as they are the same for all blocks.

    In the generated text, `own_sizes`, `own_operands` and `own_slots` are the parameters. Operand 0 is the product.
    """
    first = len(product_size_names(kernel)) + len(epilogue_arrays(kernel)) * (kernel.batch_rank + 2)
    of_product = epilogue.inputs[0].strides.count(Stride.ANY)
    entries = _entries(epilogue) - of_product
    count = 1 + len(kernel.arguments)
    lines.add(f"int64_t own_sizes[{2 + of_product + entries}], own_slots[{count}];")
    lines.add(f"fw_operand own_operands[{count}];")
    lines.add(f"for (int n = 0; n < {count}; n++) own_operands[n].column = n, own_operands[n].byte_offset = 0;")
    lines.add(f"for (int n = 0; n < {entries}; n++) own_sizes[{2 + of_product} + n] = sizes[{first} + n];")
    for number, argument in enumerate(kernel.arguments, 2):
        if not argument.strides:
            lines.add(f"own_slots[{number - 1}] = slots[operands[{number}].column];")


def _entries(epilogue: LoopKernel) -> int:
    """Returns the number of entries of an epilogue in its sizes behind the extents."""
    arguments = (*epilogue.inputs, *(store.argument for store in epilogue.stores))
    return sum(argument.strides.count(Stride.ANY) for argument in arguments)


def _write_blocks(lines: Lines, kernel: ProductKernel, epilogue: LoopKernel) -> None:
    """Writes the loops over blocks of one product. Each block is computed beside the result, and then the epilogue."""
    t, rank = TYPES[kernel.dtype].suffix, kernel.batch_rank
    is_stored = int(accumulator_of(kernel.dtype).is_stored)
    if kernel.walks is None:
        lines.add(f"const int is_few_rows = {is_stored} && rows <= FW_PRODUCT_FEW_ROWS;")
    lines.add(f"for (int64_t j = 0; j < columns; j += FW_BLOCK_COLUMNS_{t})")
    with lines.block("for (int64_t i = 0; i < rows; i += FW_PRODUCT_SCRATCH_ROWS)"):
        lines.add(f"const int64_t width = columns - j > FW_BLOCK_COLUMNS_{t} ? FW_BLOCK_COLUMNS_{t} : columns - j;")
        lines.add("const int64_t high = rows - i > FW_PRODUCT_SCRATCH_ROWS ? FW_PRODUCT_SCRATCH_ROWS : rows - i;")
        if kernel.walks is None:
            lines.add(f"fw_matrix_{t} block_a = left, block_b = right;")
            lines.add("block_a.start += i * left.row, block_b.start += j * right.column;")
            arguments = "high, width, inner, block_a, block_b, is_few_rows"
            lines.add(f"own_slots[0] = (int64_t)fw_product_beside_{t}({arguments});")
        else:
            lines.add(f"fw_matrix_{t} block_a = left;", "block_a.start += i * left.row;")
            lines.add(f"own_slots[0] = (int64_t)fw_walked_beside_{t}(high, j, width, inner, block_a, right);")
        first = len(product_size_names(kernel))
        for position, (number, argument) in enumerate(epilogue_arrays(kernel)):
            moves = first + position * (rank + 2)
            steps = [*(f"i{dim} * sizes[{moves + dim}]" for dim in range(rank))]
            steps += [f"i * sizes[{moves + rank}]", f"j * sizes[{moves + rank + 1}]"]
            address = f"slots[operands[{number}].column] + operands[{number}].byte_offset"
            lines.add(f"own_slots[{number - 1}] = {address} + ({' + '.join(steps)}) * {argument.dtype.itemsize_bytes};")
        lines.add("own_sizes[0] = high, own_sizes[1] = width;")
        if Stride.ANY in epilogue.inputs[0].strides:
            lines.add("own_sizes[2] = width;")
        lines.add(f"{kernel.key}_epilogue(own_sizes, own_operands, own_slots);")


def _machinery(dtype: DType) -> str:
    text_type, accumulator = TYPES[dtype], accumulator_of(dtype)
    return Template(template("product.c")).substitute(
        t=text_type.suffix,
        S=text_type.stored,
        A=accumulator.name,
        loaded=loaded("*element", dtype),
        finished=finished("value", dtype),
        multiply_add=_vector_multiply_add(dtype),
        is_stored=int(accumulator.is_stored),
        is_to_be_finished_in_place=int(accumulator.is_stored and dtype.is_floating),
        tiles="\n".join(_tile(dtype, rows, vectors) for rows, vectors in _TILES),
        unroll=_ROWS_OF_K,
        rows_of_k=_rows_of_k(dtype),
    )


def _walked_machinery(dtype: DType) -> str:
    text_type, accumulator = TYPES[dtype], accumulator_of(dtype)
    return Template(template("walked_product.c")).substitute(
        t=text_type.suffix,
        S=text_type.stored,
        A=accumulator.name,
        loaded=loaded("*element", dtype),
        is_stored=int(accumulator.is_stored),
        is_to_be_finished_in_place=int(accumulator.is_stored and dtype.is_floating),
    )


def _vector_multiply_add(dtype: DType) -> str:
    if not dtype.is_floating:
        return "return a * b + c;"
    element = multiply_add(dtype, "a", "b[i]", "c[i]")
    return f"for (int i = 0; i < FW_LANES_{TYPES[dtype].suffix}; i++) c[i] = {element};\n    return c;"


def _tile(dtype: DType, rows: int, vectors: int) -> str:
    """Returns the C function that computes a tile in registers. The tile is `rows` high and `vectors` vectors wide."""
    t, accumulator = TYPES[dtype].suffix, accumulator_of(dtype).name
    accumulators = [(row, vector) for row in range(rows) for vector in range(vectors)]
    lines = Lines()
    with lines.block(f"static void fw_tile_{rows}_{vectors}_{t}(const fw_tile_{t} *tile)"):
        lines.add(f"const {accumulator} *a = tile->a, *b = tile->b;")
        lines.add("const int64_t a_row = tile->a_row, a_inner = tile->a_inner, b_inner = tile->b_inner;")
        lines.add("const int64_t inner = tile->inner, out_row = tile->out_row;")
        lines.add(f"{accumulator} *out = tile->out;", f"const fw_vector_{t} zero = {{0}};")
        for row, vector in accumulators:
            place = _vector_at(t, f"out + {row} * out_row", vector)
            lines.add(f"fw_vector_{t} c{row}_{vector} = tile->is_first ? zero : {place};")
        with lines.block("for (int64_t k = 0; k < inner; k++)"):
            for vector in range(vectors):
                lines.add(f"const fw_vector_{t} b{vector} = {_vector_at(t, 'b + k * b_inner', vector)};")
            for row, vector in accumulators:
                element = f"a[{row} * a_row + k * a_inner]"
                lines.add(f"c{row}_{vector} = fw_multiply_add_{t}({element}, b{vector}, c{row}_{vector});")
        for row, vector in accumulators:
            lines.add(f"{_vector_at(t, f'out + {row} * out_row', vector)} = c{row}_{vector};")
    return lines.text()


def _rows_of_k(dtype: DType) -> str:
    """Returns the statements that add products with `_ROWS_OF_K` neighbouring rows of b to a vector of accumulators."""
    t = TYPES[dtype].suffix
    steps = []
    for k in range(_ROWS_OF_K):
        vector = f"*(const fw_vector_{t} *)(b_start + (k + {k}) * b.row + j)"
        steps.append(f"            c = fw_multiply_add_{t}(a_start[(k + {k}) * a.column], {vector}, c);")
    return "\n".join(steps)


def _vector_at(t: str, address: str, vector: int) -> str:
    return f"*(fw_vector_{t} *)({address} + {vector} * FW_LANES_{t})"
