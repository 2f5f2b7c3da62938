"""Defines a kernel before it is text: the work of one launch for one instance, without sizes and addresses. Pure.

There are two families. A `LoopKernel` walks an iteration space; it covers any mixture of pointwise work, moves and
reductions along the innermost dimension. A `ProductKernel` is one matrix product. Code generation turns either into
source for a dialect. Equal kernels give equal text, so `key` names the compiled function.

The iteration space of a loop kernel has `rank` outer dimensions (perhaps none), then, if `has_inner`, one inner
dimension along which reductions run. A value is *inner* (one for each point of the whole space) or *outer* (one for
each point of the outer dimensions). A reduction turns an inner value into an outer one, which inner nodes may use
again.

Arguments at run time: `sizes` (int64) holds first the extent of each dimension (outer ones, then the inner one). Then
it holds, for each array argument in order (inputs, then outputs), its element strides for the dimensions whose class is
`Stride.ANY`, and for a gathered input also the extent and the element stride of the gathered axis. Strides may be
negative, extents may be zero. Lowering determines classes only along the last outer dimension and the inner one, so
that the same kernels serve arrays that broadcast along other dimensions and arrays that do not.

Aliasing: in a kernel without an inner dimension an output may lie exactly on an array input of the same strides and
item size, so every point reads its inputs before it writes. An output of an instance overlaps nothing else of that
instance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

from fusewire_protos.dtypes import DType


class Stride(Enum):
    """The way in which an argument moves along one dimension: known in the text, or an argument at run time."""

    ZERO = "0"  # broadcast: it does not move
    UNIT = "1"  # one element a step
    ANY = "s"  # a stride in `sizes`


class ArgumentKind(Enum):
    ARRAY = "array"  # an address, walked by strides
    SCALAR = "scalar"  # a value in the slot itself
    GATHERED = "gathered"  # an address, walked by strides, plus a position computed by the body along one axis


class Argument(NamedTuple):
    """An input or output of a loop kernel. `strides` has one entry a dimension (none for a scalar)."""

    kind: ArgumentKind
    dtype: DType
    strides: tuple[Stride, ...]


class Node(NamedTuple):
    """One value of a body. `op` names a scalar body, or one of the forms below. `operands` number values.

    Values of a body are numbered: first the inputs of the kernel (a scalar or outer-only array is an outer value, any
    other an inner one; a gathered input keeps its number but has no value), then the nodes in order.

    Forms that are not scalar bodies:
      "index"   the int64 position along dimension `detail` (`rank` is the   no operands
                inner one)
      "gather"  the element of input number `detail`, a gathered input,       one int64 operand
                at the clamped position that the operand gives
      "reduce"  the reduction named by `detail` ("sum", "prod", "min",        one inner operand
                "max", "any", "all", "argmin", "argmax") of the operand along the inner dimension
      "cast"    the operand converted from its dtype to `dtype`              one operand
    `dtype` is the dtype of the value. Operands of a scalar body have `operand_dtype`, except the condition of "where",
    which is bool. A cast to the operand's own dtype copies: it makes an inner value of an outer one.
    """

    op: str
    operands: tuple[int, ...]
    operand_dtype: DType
    dtype: DType
    is_inner: bool
    detail: str | int | None = None


class Store(NamedTuple):
    """Writes `value` (an input or a node) to output `argument`; the store is inner if the argument moves there."""

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
        return _key(self)

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
    """Computes `out[…, i, j] = Σ_k a[…, i, k] · b[…, k, j]`, one fma chain over ascending k in the accumulator's dtype.

    Operands: a, b (any strides) and out (C order). `sizes`: batch extents (`batch_rank` of them), rows, columns, inner;
    then the element strides of a (batch…, rows, inner) and of b (batch…, inner, columns), zero where they broadcast.
    `b_is_unit`: the stride of b along columns is 1. `dtype` is the dtype of a, b and out.
    """

    dtype: DType
    batch_rank: int
    b_is_unit: bool

    @cached_property
    def key(self) -> str:
        return _key(self)


Kernel = LoopKernel | ProductKernel


def _key(kernel: Kernel) -> str:
    """Returns a name that equal kernels share, legal in C."""
    return "fw_" + blake2b(repr(kernel).encode(), digest_size=10).hexdigest()
