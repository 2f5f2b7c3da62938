"""Launches persistent kernels, each of which runs many iterations of a loop. Device thread.

The blocks of a cluster wait for one another, and the device runs all of them at the same time. Clusters never wait for
one another. So the launch may have more clusters than run at once; the others follow when these end.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire_kernels.devices.cuda.driver import Call, Stream
from fusewire_kernels.devices.cuda.launches import MOST_ROWS
from fusewire_kernels.plan.loop_table import LoopTable, moving_bits, stored_bits
from fusewire_kernels.plan.plan import PersistentLaunch

_LACKS_HARDWARE = "this device cannot run the thread-block clusters of this kernel, or has too little shared memory"


class _Loop(ctypes.Structure):
    """The struct `fw_loop` of generated kernels."""

    _fields_ = (
        ("slots", ctypes.c_int64),
        ("counts", ctypes.c_int64),
        ("rows", ctypes.c_int64),
        ("columns", ctypes.c_int64),
        ("first", ctypes.c_int64),
        ("entries", ctypes.c_int64),
        ("tail", ctypes.c_int64),
        ("moving", ctypes.c_uint64),
        ("each", ctypes.c_uint64),
    )


class PersistentCall(NamedTuple):
    """A prepared launch. `call` has pointers to `integers`, and to `loop` and `rows`, which differ between launches.

    It should have at most `most_rows` rows on this device.
    """

    launch: PersistentLaunch
    most_rows: int
    integers: tuple[ctypes.c_void_p, ...]
    loop: _Loop
    rows: ctypes.c_uint
    call: Call


def persistent_call(
    launch: PersistentLaunch,
    function: ctypes.c_void_p,
    addresses: Sequence[int],
    stream: Stream,
    multiprocessors: int,
) -> PersistentCall | None:
    """Prepares a launch. `addresses` are those of the sizes and of the operands in device memory.

    Returns None if the device, which has so many `multiprocessors`, cannot run a cluster of the kernel.
    """
    if launch.shared_bytes:
        stream.allow_shared_memory(function, launch.shared_bytes)
    integers = tuple(map(ctypes.c_void_p, addresses))
    loop, rows = _Loop(), ctypes.c_uint(1)
    pointers = (ctypes.c_void_p * 3)(*map(ctypes.addressof, (*integers, loop)))
    blocks_xyz = (ctypes.c_uint(launch.blocks), ctypes.c_uint(1), rows)
    threads_xyz = (ctypes.c_uint(launch.threads), ctypes.c_uint(1), ctypes.c_uint(1))
    shared_bytes = ctypes.c_uint(launch.shared_bytes)
    call = (function, *blocks_xyz, *threads_xyz, shared_bytes, stream.pointer, pointers, None)
    most_rows = None
    if launch.clusters:
        # Several blocks may fit on a multiprocessor, but then each of them is slower.
        at_once = min(stream.clusters_at_once(call), multiprocessors * launch.clusters // launch.blocks)
        if not at_once:
            return None
        most_rows = launch.most_rows(at_once)
    return PersistentCall(
        launch, MOST_ROWS if most_rows is None else min(most_rows, MOST_ROWS), integers, loop, rows, call
    )


class CudaPersistentKernels:
    """Implements `PersistentKernels`. `copied_table` copies a table to the device and returns its address there."""

    def __init__(self, stream: Stream, copied_table: Callable[[npt.NDArray[np.int64]], int]) -> None:
        self._stream = stream
        self._copied_table = copied_table
        self.launches = 0

    def can_run(self, loaded: Any, table: LoopTable) -> bool:
        call: PersistentCall | None = loaded.persistent
        why_not = _LACKS_HARDWARE if call is None else table.why_not(call.launch, call.most_rows)
        loaded.why_not_persistent = why_not
        return not why_not

    def launch(self, loaded: Any, table: LoopTable) -> None:
        call: PersistentCall = loaded.persistent
        entries, rows, columns = table.slots.shape
        slots_address = self._copied_table(np.concatenate((table.slots.ravel(), table.counts)))
        loop = call.loop
        loop.slots, loop.counts = slots_address, slots_address + table.slots.nbytes
        loop.rows, loop.columns = rows, columns
        loop.first, loop.entries, loop.tail = table.first, entries, table.tail
        loop.moving, loop.each = moving_bits(call.launch, table), stored_bits(call.launch, loaded.plan.columns, table)
        call.rows.value = rows
        self._copy_updated(call.launch, table)
        self._stream.launch([call.call])
        loaded.persistent_launches += 1
        self.launches += 1

    def _copy_updated(self, launch: PersistentLaunch, table: LoopTable) -> None:
        """Copies the arrays that the iterations change to where they change them, unless they are there."""
        for source_column, target_column, size_bytes in launch.updated:
            for source, target in table.slots[0][:, [source_column, target_column]].tolist():
                if source != target:
                    self._stream.copy_on_device(target, source, size_bytes)
