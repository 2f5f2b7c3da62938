"""Defines a kernel before its text is generated: the work of one launch for one instance. Pure.

A kernel contains no sizes and no addresses. There are four families of kernels. A `LoopKernel` computes all points of
an iteration space. It may mix pointwise work, moves, and reductions along the innermost dimension. A `ProductKernel` is
one matrix product. A `LineKernel` sorts lines, or combines their first elements. A `MatrixKernel` decomposes small
matrices. Code generation turns a kernel of any family into source for a dialect. Equal kernels give equal text, so they
have the same `key`, which is the name of the compiled function.

The iteration space of a loop kernel has `rank` outer dimensions, perhaps none. If `has_inner` is true, it then has one
inner dimension, and reductions run along this dimension. An *inner* value has one element for each point of the whole
space. An *outer* value has one element for each point of the outer dimensions. A reduction turns an inner value into an
outer value. Nodes that compute inner values may use this outer value again.

Arguments at run time. The int64 array `sizes` first holds the extent of each dimension: the outer dimensions, then the
inner dimension. Then it holds entries for each array argument: for the inputs in order, then for the outputs in order.
The entries of an argument are its element strides, one for each dimension whose `Stride` is `Stride.ANY`. A gathered
input has two more entries: the extent and the element stride of the gathered axis. Strides may be negative, and extents
may be zero. Lowering uses another `Stride` than `Stride.ANY` only along the last outer dimension and the inner
dimension. So the same kernels serve arrays that broadcast along other dimensions and arrays that do not.

Aliasing. In a kernel without an inner dimension, an output may occupy exactly the memory of an array input that has the
same strides and item size. So the code of every point reads its inputs before it writes. Apart from that, an output of
an instance overlaps no other argument of this instance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType

MOST_DIGITS = 4  # of a walk, along k or along the columns of the right operand of a product


class Stride(Enum):
    """The stride of an argument along one dimension: a constant in the kernel's text, or an argument at run time."""

    ZERO = "0"  # every step reads or writes the same element, because the argument is broadcast
    UNIT = "1"  # each step goes on by one element
    ANY = "s"  # the stride is in `sizes`


class ArgumentKind(Enum):
    ARRAY = "array"  # the slot holds an address, and the strides give the element at each point
    SCALAR = "scalar"  # the slot holds the value itself
    GATHERED = "gathered"  # as ARRAY, but the kernel's body computes the position along one axis


class Argument(NamedTuple):
    """An input or output of a loop kernel.

    `strides` has one entry for each dimension of the iteration space. It is empty for a scalar.
    """

    kind: ArgumentKind
    dtype: DType
    strides: tuple[Stride, ...]


class Node(NamedTuple):
    """One computed value of a loop kernel's body, which is the code that runs at each point.

    `op` names a scalar body (`ops/bodies.py`), or one of the forms below. `operands` holds the numbers of the values
    that the node uses. The values of a body are numbered: first the inputs of the kernel, then the nodes in order. A
    scalar input is an outer value. An array input that does not move along the inner dimension is an outer value too.
    Every other array input is an inner value. A gathered input has a number but no value.

    Forms that are not scalar bodies:
      "index"   The value is the int64 position along dimension `detail`. If `detail` is `rank`, this is the inner
                dimension. The node has no operands.
      "gather"  The value is an element of the gathered input with number `detail`. The one operand, an int64, gives the
                position of the element. A position out of range is clamped.
      "reduce"  The value is the reduction of the operand along the inner dimension. `detail` names the reduction
                (see `catalogue.REDUCTIONS`). The one operand is an inner value.
      "cast"    The value is the one operand, converted from its dtype to `dtype`.

    `dtype` is the dtype of the value. Operands of a scalar body have the dtype `operand_dtype`, except the condition of
    "where", which is bool. A cast to the operand's own dtype copies the value. Such a cast turns an outer value into an
    inner value.
    """

    op: str
    operands: tuple[int, ...]
    operand_dtype: DType
    dtype: DType
    is_inner: bool
    detail: str | int | None = None


class Store(NamedTuple):
    """Writes the value with the number `value` (an input or a node) to the output `argument`.

    The store is an inner store if the argument moves along the inner dimension.
    """

    value: int
    argument: Argument


@dataclass(frozen=True)
class LoopKernel:
    """A kernel of pointwise work, moves and inner reductions over one iteration space."""

    rank: int
    has_inner: bool
    inputs: tuple[Argument, ...]
    nodes: tuple[Node, ...]
    stores: tuple[Store, ...]

    @cached_property
    def key(self) -> str:
        return key_of(self)

    @property
    def is_copy(self) -> bool:
        """Returns whether it only copies the elements of one array."""
        is_one = len(self.inputs) == len(self.stores) == 1 and self.inputs == (self.stores[0].argument,)
        return is_one and not self.nodes and not self.has_inner

    @cached_property
    def runs_along_columns(self) -> bool:
        return self.has_inner and self.rank > 0 and are_columns(self.inputs)


def are_columns(inputs: Iterable[Argument]) -> bool:
    """Returns whether more inputs are contiguous along the last outer dimension than along the inner one."""
    arrays = [argument for argument in inputs if argument.kind is ArgumentKind.ARRAY]
    along_rows = sum(argument.strides[-1] is Stride.UNIT for argument in arrays)
    along_columns = sum(argument.strides[-2] is Stride.UNIT for argument in arrays)
    return along_columns > along_rows


@dataclass(frozen=True)
class ProductKernel:
    """Computes `out[…, i, j] = Σ_k a[…, i, k] · b[…, k, j]`.

    Each element is one chain of fused multiply-adds over ascending k, in the dtype of the accumulator. The operands are
    a and b, with any strides, and out, in C order. `sizes` first holds the `batch_rank` extents of the batch, then the
    extents rows, columns and inner. Then it holds the element strides of a (batch…, rows, inner) and the element
    strides of b (batch…, inner, columns). A stride is zero if the operand broadcasts along the dimension. `b_is_unit`
    is true if the stride of b along columns is 1. `a_is_transposed` is true if the stride of a along rows is 1 and its
    stride along k is not, as in the transpose of a matrix. `is_in_fours` is true if a and b can be loaded by four
    neighbours at once: in each line of an operand, along k or across it, the elements lie side by side from an address
    that is a multiple of four elements, and their number is one too. `dtype` is the dtype of a, b and the product.

    `walks` is None, or no two strides express b: then it has the numbers of axes along k and along columns, and k and j
    are positions along them in row-major order, of which the digits are the positions along each. In `sizes` the
    extents and the strides of the axes along k, and then of those along columns, stand in place of the two strides of
    b. `b_is_unit` then says that a longer run of elements lies close together along columns than along k, and
    `is_in_fours` tells of a alone.

    A product may have an epilogue: a pointwise kernel over the two dimensions rows and columns. Its first input is the
    product, which is an array in memory only in the C dialect. Then the operands are a, b, and the other arguments of
    the epilogue, and `out` is written only if a store of the epilogue says so. Behind the strides of b, `sizes` has the
    strides (batch…, rows, columns) of each array argument of the epilogue but the product. Then come the entries that
    the epilogue has in its own `sizes` behind the extents, without those of the product. An output may occupy exactly
    the memory of an input of the epilogue as in a loop kernel, and overlaps neither a nor b.
    """

    dtype: DType
    batch_rank: int
    b_is_unit: bool
    a_is_transposed: bool = False
    is_in_fours: bool = False
    epilogue: LoopKernel | None = None
    walks: tuple[int, int] | None = field(default=None, repr=False)

    @property
    def argument_dtypes(self) -> tuple[DType, ...]:
        """The dtypes of the operands."""
        return (self.dtype, self.dtype, *(argument.dtype for argument in self.arguments))

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments behind a and b: the result, or those of the epilogue."""
        if self.epilogue is None:
            return (Argument(ArgumentKind.ARRAY, self.dtype, ()),)
        return (*self.epilogue.inputs[1:], *(store.argument for store in self.epilogue.stores))

    @cached_property
    def key(self) -> str:
        return key_of(self) if self.walks is None else key_of((self, self.walks))


@dataclass(frozen=True)
class LineKernel:
    """Computes each line of a dense array of shape [before, length, behind] from the same line of its operands.

    `sizes` are these three lengths, the length of the runs and the number of the segments. `body` is one of these;
    "sum" stands for any reduction of the catalogue that gives no position:
      "sum"      The combination of the first elements, at each position (see `order.h`).
      "argsort"  The positions that sort each run of the line. Equal elements keep their order. NaN is the greatest.
      "merge"    Of positions that sort each run, those that sort each two neighbouring runs as one.
      "segment_sum"  The combination of each segment of the line: of the neighbouring elements that have the same place.
                 The places ascend, and are those of all lines.
    "argsort_descending" and "merge_descending" put greater elements first.

    The operands are an array of `operand_dtype`, the positions to merge or the places, and the result of `dtype`. If
    `has_scratch` is true, an array of two int64 for each element of a line lies behind them.
    """

    body: str
    operand_dtype: DType
    dtype: DType
    has_scratch: bool = False

    @property
    def sorts(self) -> bool:
        """Returns whether the result is an order of elements, not a combination of them."""
        return self.merges or self.body in ("argsort", "argsort_descending")

    @property
    def merges(self) -> bool:
        """Returns whether the result is an order of elements that is made of sorted runs."""
        return self.body in ("merge", "merge_descending")

    @property
    def reduces_segments(self) -> bool:
        """Returns whether the result has an element for each segment."""
        return self.body.startswith("segment_")

    @property
    def combination(self) -> str:
        """Returns the name of the reduction that combines elements."""
        return self.body.removeprefix("segment_")

    @property
    def argument_dtypes(self) -> tuple[DType, ...]:
        """The dtypes of the operands."""
        second = (dtypes.int64,) if self.merges or self.reduces_segments else ()
        return (self.operand_dtype, *second, self.dtype, *((self.dtype,) if self.has_scratch else ()))

    @cached_property
    def key(self) -> str:
        return key_of(self)


@dataclass(frozen=True)
class MatrixKernel:
    """Computes an op of linear algebra for each of many small matrices, one behind the other in memory.

    `body` is the name of the op (`ops/small_matrices.py`). The operands are those of the op and its result, all of
    `dtype` and in C order. `sizes` are the number of matrices; their rows and columns; the columns of the right sides
    or of Q, else 0; and 1 if the upper triangle is meant, else 0.
    """

    body: str
    dtype: DType

    @property
    def argument_dtypes(self) -> tuple[DType, ...]:
        """The dtypes of the operands."""
        return (self.dtype,) * (3 if self.body == "solve" else 2)

    @cached_property
    def key(self) -> str:
        return key_of(self)


Kernel = LoopKernel | ProductKernel | LineKernel | MatrixKernel


def key_of(kernel: object) -> str:
    """Returns a name that is legal in C. Equal kernels have equal names."""
    return "fw_" + blake2b(repr(kernel).encode(), digest_size=10).hexdigest()
