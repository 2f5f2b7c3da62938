"""Copies a large value to the host piece by piece, so that other orders run in between.

The device copies one piece at a time. So the host memory that transfers need does not grow with the value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire_kernels.devices.base import Block, Device, Fence, Readback
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec

PIECE_BYTES = 1 << 20
LARGE_BYTES = 4 << 20  # the size in bytes above which a value is copied in pieces


class _Piece(NamedTuple):
    target: npt.NDArray[np.uint8]  # (size in bytes,), on the host: the part of the value that this piece fills
    readback: Readback
    fence: Fence


class LargeRead:
    """Copies a block to host memory. Runs on the device thread. No order may write or release the block meanwhile."""

    def __init__(self, device: Device, block: Block, size_bytes: int) -> None:
        """Allocates the host memory. Raises MemoryError."""
        self._device = device
        self._block = block
        # If the device uses host memory, this array of (size_bytes,) is the block itself and is copied directly.
        self._source = device.array(block, Spec(dtypes.uint8, (size_bytes,))) if device.info.is_host else None
        self._copied: npt.NDArray[np.uint8] = np.empty(size_bytes, np.uint8)  # (size_bytes,), on the host
        self._wanted_bytes = size_bytes
        self._asked_bytes = 0
        self._piece: _Piece | None = None  # the piece that the device is copying

    @property
    def is_over(self) -> bool:
        return self._piece is None and self._asked_bytes == self._wanted_bytes

    def cut_short(self) -> None:
        """Asks for no more pieces.

        A piece that the device is copying still arrives; until then the device writes to host memory.
        """
        self._wanted_bytes = self._asked_bytes

    def go_on(self) -> bool:
        """Takes the piece that has arrived, and asks for the next. Returns False if the piece has not arrived yet."""
        if self._piece is not None:
            if not self._piece.fence.is_reached():
                return False
            _copy(self._piece.target, np.frombuffer(self._piece.readback.data(), np.uint8))
            self._piece = None
        if self._asked_bytes < self._wanted_bytes:
            self._ask()
        return True

    def data(self) -> memoryview:
        """Returns the whole value. Call it once the copy is over."""
        return self._copied.data

    def _ask(self) -> None:
        first_byte = self._asked_bytes
        self._asked_bytes = min(first_byte + PIECE_BYTES, self._wanted_bytes)
        target = self._copied[first_byte : self._asked_bytes]
        if self._source is not None:
            _copy(target, self._source[first_byte : self._asked_bytes])
            return
        readback = self._device.read(self._block, len(target), first_byte)
        self._piece = _Piece(target, readback, self._device.fence())


def _copy(target: npt.NDArray[np.uint8], source: npt.NDArray[np.uint8]) -> None:
    """Copies bytes with NumPy, because other threads can run meanwhile. They cannot while a memoryview is assigned."""
    np.copyto(target, source)
