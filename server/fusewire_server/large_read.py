"""A large value comes to the host piece by piece, so that others can be attended to in between.

No piece is asked for before the one before it has come: what is on its way is bounded, whatever the size of the value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire_kernels.devices.base import Block, Device, Fence, Readback

PIECE_BYTES = 1 << 20
LARGE_BYTES = 4 << 20  # what is larger comes in pieces


class _Piece(NamedTuple):
    first_byte: int
    size_bytes: int
    readback: Readback
    fence: Fence


class LargeRead:
    """The copy of a block to host memory. Device thread; nobody may write or release the block meanwhile."""

    def __init__(self, device: Device, block: Block, size_bytes: int) -> None:
        """Raises MemoryError."""
        self._device = device
        self._block = block
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
            self._take(self._piece)
        if self._asked_bytes < self._wanted_bytes:
            self._ask()
        return True

    def data(self) -> memoryview:
        """The whole value, once it is over."""
        return self._copied.data

    def _take(self, piece: _Piece) -> None:
        target = self._copied[piece.first_byte : piece.first_byte + piece.size_bytes]
        np.copyto(target, np.frombuffer(piece.readback.data(), np.uint8))  # lets other threads run meanwhile
        self._piece = None

    def _ask(self) -> None:
        first_byte = self._asked_bytes
        size_bytes = min(PIECE_BYTES, self._wanted_bytes - first_byte)
        readback = self._device.read(self._block, size_bytes, first_byte)
        self._piece = _Piece(first_byte, size_bytes, readback, self._device.fence())
        self._asked_bytes += size_bytes
