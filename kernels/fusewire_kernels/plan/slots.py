"""Fills rows of the slot table: the table of addresses and scalars from which kernels take their operands.

Every submission fills rows, so filling must be fast. Values that depend only on the plan are computed once per plan.
The values of one iteration are computed with plain Python integers, because a row is too short for NumPy to be faster.
So a row takes a few additions and one write. A loop's iterations take the row's addresses in turns, which are the same
for all rows that are alike. So such a row takes a few operations on arrays.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

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
_MOST_KEPT = 16  # places of loops, by plan: clients keep other results of other loops with the same body

Pack = Callable[[int | float], int]  # returns the bits of a scalar
Integers = npt.NDArray[np.int64]


class _View(NamedTuple):
    column: int
    base_column: int
    byte_offset: int
    terms: tuple[Term, ...]


class Taken(NamedTuple):
    """Which of a row's addresses a loop's inputs and live results have, by their indices.

    `inputs` is int64[turns][inputs], and `outputs` int64[turns][live results]: iterations take turns. `firsts` tells
    what some inputs, by number, have instead in the first iterations.
    """

    inputs: Integers
    outputs: Integers
    firsts: Sequence[Mapping[int, int]] = ()


class LoopPlaces(NamedTuple):
    """What `Taken` says, for the columns of a plan.

    The indices are those of a row's integers: one for each column, which is there in all iterations, and then the row's
    addresses. `firsts` are columns and what is there.
    """

    by_turn: Integers
    firsts: Sequence[tuple[Integers, Integers]]


class LoopAddresses(NamedTuple):
    """The addresses of all values that a row's inputs and live results have in some iteration, and in which.

    `stepped` tells of some inputs, by number, which of the addresses they have in each iteration that is asked for.
    """

    addresses: Sequence[int]
    places: LoopPlaces
    stepped: Sequence[tuple[int, Integers]] = ()


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
        self._kept_places: dict[Hashable, LoopPlaces] = {}

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
        loop: LoopAddresses,
        numbers: Integers,
        turns: Integers,
        scalars: Sequence[int | float | Sequence[int | float] | Integers],
        starts: Sequence[int | Integers],
    ) -> None:
        """Writes one row of a loop, int64[iterations][columns].

        `numbers` are those of the iterations, and `turns` the entry of the places that each takes. A scalar or a start
        is one for all iterations, or one for each.
        """
        integers = np.array([*self._in_all_iterations(arena_address, scalars), *loop.addresses])
        table[:] = integers[loop.places.by_turn][turns]
        for number, indices in loop.stepped:
            for column in self._columns_of_input(number):
                table[:, column] = integers[self.columns + indices]
        for iteration in range(int(numbers[0]), len(loop.places.firsts)):
            columns, found = loop.places.firsts[iteration]
            for entry in np.flatnonzero(numbers == iteration).tolist():
                table[entry, columns] = integers[found]
        for column, number, pack in self._scalars:
            if not isinstance(scalars[number], int | float):
                table[:, column] = _packed(scalars[number], pack)
        self._fill_views(table, starts)

    def _in_all_iterations(self, arena_address: int, scalars: Sequence[Any]) -> list[int]:
        """Returns for each column what is there in all iterations of a loop, if it is the same in all."""
        integers = self._template.copy()
        for column in self._arenas:
            integers[column] = arena_address
        for column, number, pack in self._scalars:
            value = scalars[number]
            if isinstance(value, int | float):
                integers[column] = pack(value)
        return integers

    def _fill_views(self, table: Integers, starts: Sequence[int | Integers]) -> None:
        for column, base_column, byte_offset, terms in self._views:
            address = table[:, base_column] + byte_offset
            for start, stride_bytes in terms:
                address = address + starts[start] * stride_bytes
            table[:, column] = address

    def loop_places(self, key: Hashable | None, taken: Callable[[], Taken]) -> LoopPlaces:
        """Returns the places of loops that are alike, which are kept by a key, if they have one."""
        if key is None:
            return self._loop_places(taken())
        places = self._kept_places.get(key)
        if places is None:
            if len(self._kept_places) == _MOST_KEPT:
                self._kept_places.clear()
            places = self._kept_places[key] = self._loop_places(taken())
        return places

    def _loop_places(self, taken: Taken) -> LoopPlaces:
        by_turn = np.tile(np.arange(self.columns), (len(taken.inputs), 1))
        for column, number in self._inputs:
            by_turn[:, column] = self.columns + taken.inputs[:, number]
        for column, position in self._outputs:
            by_turn[:, column] = self.columns + taken.outputs[:, position]
        return LoopPlaces(by_turn, [self._places_of(first) for first in taken.firsts])

    def _places_of(self, inputs: Mapping[int, int]) -> tuple[Integers, Integers]:
        """Returns the columns of some inputs, and what is there if each input has the address of this index."""
        found = [(column, self.columns + inputs[number]) for column, number in self._inputs if number in inputs]
        columns, places = zip(*found, strict=True) if found else ((), ())
        return np.array(columns, np.int64), np.array(places, np.int64)

    def _columns_of_input(self, number: int) -> list[int]:
        return [column for column, each in self._inputs if each == number]

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


def _packed(values: Any, pack: Pack) -> list[int] | Integers:
    """Returns the bits of a scalar for each iteration. `values` are an array or a sequence."""
    if isinstance(values, np.ndarray):
        return values if pack is _int64_bits else [*map(pack, values.tolist())]
    return [*map(pack, values)]


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
