"""Prepares the launches of a plan: what is the same for all submissions is made once.

The arguments of a prepared launch are pointers. Some of them point to what differs between submissions: where the slot
table lies, and how many rows it has.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire_kernels.codegen.cuda.entry import MOST_OPERANDS, MOST_SIZES
from fusewire_kernels.codegen.cuda.geometry import grid, layout_of, source_of_entry
from fusewire_kernels.devices.cuda.driver import Call, Stream
from fusewire_kernels.devices.cuda.graphs import CallsAt
from fusewire_kernels.devices.cuda.modules import kernel_in
from fusewire_kernels.plan.plan import OperandRef, Plan

MOST_ROWS = 65535  # of a launch: the limit of a grid's z dimension

_MOST_INSTANCES = 65535  # the limit of a grid's y dimension
_INTEGER_BYTES = 8
_OPERAND_BYTES = 16


class PlanIntegers(NamedTuple):
    """The sizes and operands of all launches of a plan, and for each launch its first index in `integers`.

    A persistent launch comes last.
    """

    integers: npt.NDArray[np.int64]  # never empty
    places: Sequence[int]


class _Values(ctypes.Structure):
    """The struct `fw_values` of generated kernels."""

    _fields_ = (("sizes", ctypes.c_int64 * MOST_SIZES), ("operands", ctypes.c_int64 * (2 * MOST_OPERANDS)))


class _Part(NamedTuple):
    """A launch, or a part of a launch: as many of its instances as fit in one grid.

    `sizes_address` and `operands_address` are addresses in device memory. `values` holds the same as far as it fits.
    `all_instances` is the number of instances of the launch.
    """

    kernel: int
    sizes: tuple[int, ...]
    values: _Values
    sizes_address: ctypes.c_void_p
    operands_address: ctypes.c_void_p
    instances: int
    all_instances: int


class _Varying:
    """What differs between submissions of a plan. Prepared launches hold pointers to it.

    `rows` is the z dimension of the grids.
    """

    def __init__(self) -> None:
        self.table_address = ctypes.c_void_p()
        self.rows = ctypes.c_uint()

    def set(self, table_address: int, rows: int) -> None:
        self.table_address.value = table_address
        self.rows.value = rows


class PlanLaunches:
    """The prepared launches of a plan whose modules are loaded.

    `integers_address` is where the plan's integers lie in device memory. `modules` holds a module for each kernel.
    """

    def __init__(
        self, plan: Plan, modules: Sequence[Any], places: Sequence[int], integers_address: int, stream: Stream
    ) -> None:
        self._sources = plan.kernels
        self._modules = modules
        self._stream = stream
        self._parts = list(_parts(plan, places, integers_address))
        self._columns = ctypes.c_int64(len(plan.columns))
        self._varying = _Varying()
        self._calls: dict[int, list[Call]] = {}  # by bucket of row counts

    def __len__(self) -> int:
        return len(self._parts)

    def kernel(self, number: int) -> ctypes.c_void_p:
        """Returns a kernel of the plan. Raises ServerFault or OutOfMemory."""
        return kernel_in(self._modules[number], self._sources[number].key)

    def calls(self, rows: int) -> list[Call]:
        """Returns the launches for so many rows, which `point_at` gives their slot table.

        All row counts with the same bit length share their launches, because their grids hardly differ.
        """
        bucket = rows.bit_length()
        calls = self._calls.get(bucket)
        if calls is None:
            calls = self._calls[bucket] = self._prepared(1 << bucket - 1, self._varying)
        return calls

    def point_at(self, table_address: int, rows: int) -> None:
        """Tells the launches of `calls` where the slot table lies, and how many rows it has."""
        self._varying.set(table_address, rows)

    def own_calls(self, rows: int) -> CallsAt:
        """Returns a function that returns launches for a slot table at an address. Any thread may use the function."""
        varying = _Varying()
        calls = self._prepared(rows, varying)

        def calls_at(table_address: int) -> list[Call]:
            varying.set(table_address, rows)
            return calls

        return calls_at

    def _prepared(self, rows: int, varying: _Varying) -> list[Call]:
        """Prepares all launches, with grids that fit about so many rows."""
        return [self._call(part, rows, varying) for part in self._parts]

    def _call(self, part: _Part, rows: int, varying: _Varying) -> Call:
        sources = self._sources
        entry, blocks, threads = grid(layout_of(sources[part.kernel].text), part.sizes, part.all_instances, rows)
        function = self.kernel(source_of_entry([source.key for source in sources], part.kernel, entry))
        arguments = (part.values, part.sizes_address, part.operands_address, varying.table_address, self._columns)
        pointers = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        blocks_xyz = (ctypes.c_uint(blocks), ctypes.c_uint(part.instances), varying.rows)
        threads_xyz = (ctypes.c_uint(threads), ctypes.c_uint(1), ctypes.c_uint(1))
        return (function, *blocks_xyz, *threads_xyz, ctypes.c_uint(0), self._stream.pointer, pointers, None)


def integers_of(plan: Plan) -> PlanIntegers:
    """Returns the integers that the kernels of a plan read from device memory."""
    integers = [0]
    places = []
    for launch in plan.launches:
        places.append(len(integers))
        integers.extend(launch.sizes)
        integers.extend(number for instance in launch.instances for operand in instance for number in operand)
    if plan.persistent is not None:
        places.append(len(integers))
        integers.extend(plan.persistent.sizes)
        integers.extend(number for operand in plan.persistent.operands for number in operand)
    return PlanIntegers(np.array(integers, np.int64), places)


def addresses_of(place: int, sizes: Sequence[int], address: int) -> tuple[int, int]:
    """Returns the addresses of a launch's sizes and operands. The integers of the plan lie at `address`."""
    sizes_address = address + place * _INTEGER_BYTES
    return sizes_address, sizes_address + len(sizes) * _INTEGER_BYTES


def _parts(plan: Plan, places: Sequence[int], address: int) -> Iterator[_Part]:
    for launch, place in zip(plan.launches, places[: len(plan.launches)], strict=True):
        sizes_address, operands_address = addresses_of(place, launch.sizes, address)
        for first in range(0, len(launch.instances), _MOST_INSTANCES):
            count = min(len(launch.instances) - first, _MOST_INSTANCES)
            first_operand = first * len(launch.instances[first])
            yield _Part(
                kernel=launch.kernel,
                sizes=launch.sizes,
                values=_values(launch.sizes, launch.instances[first]),
                sizes_address=ctypes.c_void_p(sizes_address),
                operands_address=ctypes.c_void_p(operands_address + first_operand * _OPERAND_BYTES),
                instances=count,
                all_instances=len(launch.instances),
            )


def _values(sizes: Sequence[int], operands: Sequence[OperandRef]) -> _Values:
    """Returns what a kernel gets as parameters: nothing of sizes or operands that do not fit."""
    values = _Values()
    if len(sizes) <= MOST_SIZES:
        values.sizes[: len(sizes)] = sizes
    if len(operands) <= MOST_OPERANDS:
        values.operands[: 2 * len(operands)] = [number for operand in operands for number in operand]
    return values
