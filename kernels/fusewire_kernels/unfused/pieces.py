"""Divides a call of one op into pieces along the first axis of its result, so that others can run in between. Pure.

A piece is a call of the same op on some of the rows of those operands that have the rows of the result. All values are
in C order, so a piece's operands and its result are parts of the whole ones in memory, and nothing is copied. Each
element is computed as in the whole call, so its bits are the same.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.ops.op import Category
from fusewire_protos.ops.shapes import Spec

_LEAST_ROWS = 2  # of a piece, because a single row may have another kernel
# A piece of a product walks all of its second operand, which takes longer than to multiply fewer rows by it.
_LEAST_ROWS_OF_PRODUCT = 32


class Piece(NamedTuple):
    """A part of a call. The offsets say where its operands and its result begin in those of the whole call."""

    call: OneOpCall
    operand_offsets: tuple[int, ...]  # in bytes
    result_offset: int  # in bytes


def pieces_of(call: OneOpCall, count: int) -> list[Piece]:
    """Returns at most `count` pieces of a call, of nearly as many rows each; the whole call if it has none."""
    result = call.result()
    whole = Piece(call, (0,) * len(call.operands), 0)
    if not result.shape or 0 in result.shape:
        return [whole]
    divided = _divided(call, result)
    rows = result.shape[0]
    least_rows = _LEAST_ROWS_OF_PRODUCT if call.op.category is Category.PRODUCT else _LEAST_ROWS
    count = min(count, rows // least_rows)
    if count < 2 or not any(divided):
        return [whole]
    bounds = [rows * number // count for number in range(count + 1)]
    return [_piece(call, divided, result, first, end - first) for first, end in pairwise(bounds)]


def _divided(call: OneOpCall, result: Spec) -> list[bool]:
    """Returns for each operand whether a piece takes only some of its rows. If none is divided, there are no pieces."""
    rows, rank = result.shape[0], len(result.shape)
    has_rows = [len(spec.shape) == rank and spec.shape[0] == rows for spec in call.operands]
    match call.op.category:
        case Category.POINTWISE:
            return has_rows
        case Category.REDUCTION if 0 not in call.attributes[0]:
            return [True]
        case Category.LINE if call.attributes[0] != 0:
            return [number == 0 for number, _ in enumerate(call.operands)]
        case Category.PRODUCT if rank == 2:
            return [len(call.operands[0].shape) == 2, False]
        case Category.PRODUCT if rank > 2:
            return has_rows
        case Category.LIBRARY if len(call.operands[0].shape) > call.op.core_rank:  # the first axis is one of the batch
            return [True] * len(call.operands)
    return [False] * len(call.operands)


def _piece(call: OneOpCall, divided: list[bool], result: Spec, first: int, rows: int) -> Piece:
    specs = [*zip(call.operands, divided, strict=True)]
    operands = tuple(
        [spec._replace(shape=(rows, *spec.shape[1:])) if is_divided else spec for spec, is_divided in specs]
    )
    offsets = tuple([first * _row_bytes(spec) if is_divided else 0 for spec, is_divided in specs])
    return Piece(call._replace(operands=operands), offsets, first * _row_bytes(result))


def _row_bytes(spec: Spec) -> int:
    return spec.size_bytes // spec.shape[0]
