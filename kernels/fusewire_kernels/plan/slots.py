"""Fills rows of the slot table: the table of addresses and scalars from which kernels take their operands.

Every submission fills rows, so filling must be fast. Values that depend only on the plan are computed once per plan.
The values of one iteration are computed with plain Python integers, because a row is too short for NumPy to be faster.
So a row takes a few additions and one write. Of many iterations, the same is known for all rows that are alike: from
which of a row's addresses each slot comes. So such a row takes one look-up in an array.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire_kernels.ops.conversions import scalar
from fusewire_kernels.plan.plan import (
    ArenaColumn,
    ConstantColumn,
    InputColumn,
    OutputColumn,
    Plan,
    ScalarColumn,
    Term,
    ViewColumn,
)
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType

_FLOAT32 = struct.Struct("<f")
_FLOAT64 = struct.Struct("<d")
_INT32 = struct.Struct("<i")
_INT64 = struct.Struct("<q")
_OF_INT64 = 1 << 63
_MOST_KEPT = 1 << 19  # integers that say where the rows of loops take their addresses from, by plan

Pack = Callable[[int | float], int]  # returns the bits of a scalar
Integers = npt.NDArray[np.int64]


class _View(NamedTuple):
    column: int
    base_column: int
    byte_offset: int
    terms: tuple[Term, ...]


class SlotLayout:
    """Fills rows of the slot table for one plan. Used by one thread."""

    def __init__(self, plan: Plan) -> None:
        self.columns = len(plan.columns)
        numbered = list(enumerate(plan.columns))
        self._template = [
            bits_of(column.value, column.dtype) if isinstance(column, ConstantColumn) else 0 for _, column in numbered
        ]
        row_of_table = struct.Struct(f"={len(numbered)}q")
        self._write, self._row_bytes = row_of_table.pack_into, row_of_table.size
        self._arenas = [index for index, column in numbered if isinstance(column, ArenaColumn)]
        self._inputs = [(index, column.input) for index, column in numbered if isinstance(column, InputColumn)]
        self._outputs = [(index, column.position) for index, column in numbered if isinstance(column, OutputColumn)]
        self._scalars = [
            (index, column.scalar, packer(column.dtype))
            for index, column in numbered
            if isinstance(column, ScalarColumn)
        ]
        self._addresses = addresses_in_order(plan)
        self._views = [_View(index, *column) for index, column in numbered if isinstance(column, ViewColumn)]
        self._kept = np.empty((1, 0, self.columns), np.int64)
        self._kept_places: dict[Hashable, Integers] = {}
        self._kept_integers = 0  # of these

    def kept_table(self, rows: int) -> Integers:
        """Returns a table of one iteration to be filled, int64[1][rows][columns]. The next call may return it too."""
        if rows != self._kept.shape[1]:
            self._kept = np.empty((1, rows, self.columns), np.int64)
        return self._kept

    def fill(
        self,
        table: Integers,
        row: int,
        arena_address: int,
        input_addresses: Sequence[int],
        output_addresses: Sequence[int],
        scalars: Sequence[int | float],
        starts: Sequence[int],
    ) -> None:
        """Writes row number `row` of the first iteration. `table` is int64[...][columns], dense.

        `input_addresses` is indexed by input number, and `output_addresses` by position among the live results.
        `scalars` is indexed by scalar number, and `starts` by the number of the slice start.
        """
        if self._addresses == (len(input_addresses), len(output_addresses)):
            self._write(table, row * self._row_bytes, arena_address, *input_addresses, *output_addresses)  # type: ignore[arg-type]
            return
        slots = self._slots(arena_address, input_addresses, output_addresses, starts)
        for column, number, pack in self._scalars:
            slots[column] = pack(scalars[number])
        self._write(table, row * self._row_bytes, *slots)  # type: ignore[arg-type]  # an array is a buffer

    def fill_iterations(
        self,
        table: Integers,
        arena_address: int,
        addresses: Sequence[int],
        places: Integers,
        scalars: Sequence[int | float | Sequence[int | float] | Integers],
        starts: Sequence[int | Integers],
    ) -> None:
        """Writes one row of a loop, int64[iterations][columns].

        `addresses` are those of all values that the row's inputs and live results have in some iteration, and `places`
        are what `places` returns. A scalar or a start is one for all iterations, or one for each.
        """
        integers: list[int] = [*self._template, *addresses]
        for column in self._arenas:
            integers[column] = arena_address
        table[:] = np.array(integers)[places]
        for column, number, pack in self._scalars:
            table[:, column] = _packed(scalars[number], pack)
        for column, base_column, byte_offset, terms in self._views:
            address = table[:, base_column] + byte_offset
            for start, stride_bytes in terms:
                address = address + starts[start] * stride_bytes
            table[:, column] = address

    def places(self, key: Hashable, taken: Callable[[], tuple[Integers, Integers]]) -> Integers:
        """Returns which of a row's integers is in each column of each iteration, int64[iterations][columns].

        A row's integers are one for each column, which is there in all iterations, and then the row's addresses.
        `taken` returns the position among the addresses of each input, int64[iterations][inputs], and of each live
        result. It is called only if nothing is kept for the `key`, which is the same for rows that take theirs alike.
        """
        kept = self._kept_places.get(key)
        if kept is not None:
            return kept
        places = self._places(*taken())
        if self._kept_integers + places.size > _MOST_KEPT:
            self._kept_places.clear()
            self._kept_integers = 0
        if places.size <= _MOST_KEPT:
            self._kept_places[key] = places
            self._kept_integers += places.size
        return places

    def _places(self, inputs: Integers, outputs: Integers) -> Integers:
        places = np.tile(np.arange(self.columns), (len(inputs), 1))
        for column, number in self._inputs:
            places[:, column] = self.columns + inputs[:, number]
        for column, position in self._outputs:
            places[:, column] = self.columns + outputs[:, position]
        return places

    def _slots(
        self,
        arena_address: int,
        input_addresses: Sequence[int],
        output_addresses: Sequence[int],
        starts: Sequence[int],
    ) -> list[int]:
        """Returns what is in each column but those of scalars."""
        slots = self._template.copy()
        for column in self._arenas:
            slots[column] = arena_address
        for column, number in self._inputs:
            slots[column] = input_addresses[number]
        for column, position in self._outputs:
            slots[column] = output_addresses[position]
        for column, base_column, byte_offset, terms in self._views:
            address = slots[base_column] + byte_offset
            for start, stride_bytes in terms:
                address += starts[start] * stride_bytes
            slots[column] = address
        return slots


def _packed(value: int | float | Sequence[int | float] | Integers, pack: Pack) -> int | list[int] | Integers:
    """Returns the bits of a scalar: for all iterations, or for each."""
    if isinstance(value, int | float):
        return pack(value)
    if isinstance(value, np.ndarray):
        return value if pack is _int64_bits else [*map(pack, value.tolist())]
    return [*map(pack, value)]


def addresses_in_order(plan: Plan) -> tuple[int, int] | None:
    """Returns how many inputs and outputs a plan has, if its columns are only addresses in order; otherwise None.

    The order is: the arena, then all inputs by number, then all outputs by position. Most plans of one op have such
    columns. Their rows are the addresses as given, so one write fills a row.
    """
    inputs = sum(isinstance(column, InputColumn) for column in plan.columns)
    outputs = sum(isinstance(column, OutputColumn) for column in plan.columns)
    in_order = (ArenaColumn(), *map(InputColumn, range(inputs)), *map(OutputColumn, range(outputs)))
    is_in_order = plan.columns == in_order and [*map(type, plan.columns)] == [
        *map(type, in_order)
    ]  # two named tuples of different classes are equal if their fields are equal
    return (inputs, outputs) if is_in_order else None


def bits_of(value: int | float, dtype: DType) -> int:
    """Converts a number to `dtype` by `conversions.scalar`, and returns its bits in the low bytes of an int64."""
    raw = scalar(np, value, dtype).tobytes()
    return int.from_bytes(raw.ljust(8, b"\0"), "little", signed=True)


def packer(dtype: DType) -> Pack:
    """Returns a function that does `bits_of` for one dtype. It is faster for common values of common dtypes."""
    if dtype is dtypes.int64:
        return _int64_bits
    fast = _FAST.get(dtype)
    if fast is None:
        return lambda value: bits_of(value, dtype)

    def pack(value: int | float) -> int:
        try:
            return fast(value) if value == value else bits_of(value, dtype)  # noqa: PLR0124 - NaN
        except (OverflowError, struct.error):
            return bits_of(value, dtype)

    return pack


def _int64_bits(value: int | float) -> int:
    return value if type(value) is int and -_OF_INT64 <= value < _OF_INT64 else bits_of(value, dtypes.int64)


def _float32_bits(value: int | float) -> int:
    bits: int = _INT32.unpack(_FLOAT32.pack(value))[0]
    return bits


def _float64_bits(value: int | float) -> int:
    bits: int = _INT64.unpack(_FLOAT64.pack(value))[0]
    return bits


_FAST: dict[DType, Callable[[int | float], int]] = {
    dtypes.float32: _float32_bits,
    dtypes.float64: _float64_bits,
}
