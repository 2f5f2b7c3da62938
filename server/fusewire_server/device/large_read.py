"""Copies a large value to the host piece by piece, so that other orders run in between.

No piece is asked for before the one before it has come: what is on its way is bounded, whatever the size of the value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire_kernels.devices.base import Block, Device, Fence, Readback
from fusewire_protos import dtypes
from fusewire_protos.shapes import Spec

PIECE_BYTES = 1 << 20
LARGE_BYTES = 4 << 20  # what is larger comes in pieces


class _Piece(NamedTuple):
    target: npt.NDArray[np.uint8]  # (size in bytes,), host: its part of the value
    readback: Readback
    fence: Fence


class LargeRead:
    """The copy of a block to host memory. Device thread; nobody may write or release the block meanwhile."""

    def __init__(self, device: Device, block: Block, size_bytes: int) -> None:
        """Raises MemoryError."""
        self._device = device
        self._block = block
        # Where device memory is the host's, one copy will do. (size_bytes,), of the block.
        self._source = device.array(block, Spec(dtypes.uint8, (size_bytes,))) if device.info.is_host else None
        self._copied: npt.NDArray[np.uint8] = np.empty(size_bytes, np.uint8)  # (size_bytes,), host
        self._wanted_bytes = size_bytes
        self._asked_bytes = 0
        self._piece: _Piece | None = None  # what is on its way

    @property
    def is_over(self) -> bool:
        return self._piece is None and self._asked_bytes == self._wanted_bytes

    def cut_short(self) -> None:
        """Nothing more is asked for. What is on its way comes: until then the device writes to host memory."""
        self._wanted_bytes = self._asked_bytes

    def go_on(self) -> bool:
        """Takes the piece that has come, and asks for the next; False if none has come yet."""
        if self._piece is not None:
            if not self._piece.fence.is_reached():
                return False
            _copy(self._piece.target, np.frombuffer(self._piece.readback.data(), np.uint8))
            self._piece = None
        if self._asked_bytes < self._wanted_bytes:
            self._ask()
        return True

    def data(self) -> memoryview:
        """The whole value, once it is over."""
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
    """Copies bytes; unlike a memoryview's assignment, NumPy lets other threads run meanwhile."""
    np.copyto(target, source)
