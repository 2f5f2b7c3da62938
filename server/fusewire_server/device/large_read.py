"""Copies a large value to the host piece by piece, so that other orders run in between."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from fusewire_kernels.devices.base import Block, Device, Fence, Readback

PIECE_BYTES = 1 << 20
_MOST_PIECES = 2  # that the device copies at once: it has the next one when the host notices the end of one


class _Piece(NamedTuple):
    readback: Readback
    fence: Fence


class LargeRead:
    """Copies a block to host memory. Runs on the device thread. No order may write or release the block meanwhile."""

    def __init__(self, device: Device, block: Block, size_bytes: int) -> None:
        """Takes the host memory. Raises MemoryError or OutOfMemory."""
        self._device = device
        self._block = block
        self._staged = device.stage(size_bytes)
        self._wanted_bytes = size_bytes
        self._asked_bytes = 0
        self._pieces: deque[_Piece] = deque()  # that the device is copying

    @property
    def is_over(self) -> bool:
        return not self._pieces and self._asked_bytes == self._wanted_bytes

    def cut_short(self) -> None:
        """Asks for no more pieces.

        Those that the device is copying still arrive; until then the device writes to host memory.
        """
        self._wanted_bytes = self._asked_bytes

    def go_on(self) -> bool:
        """Asks for pieces, and takes the oldest. Returns False if it has not arrived yet. Raises MemoryError."""
        while self._asked_bytes < self._wanted_bytes and len(self._pieces) < _MOST_PIECES:
            self._ask()
        if self._pieces:
            readback, fence = self._pieces[0]
            if not fence.is_reached():
                return False
            readback.data()
            self._pieces.popleft()
        return True

    def data(self) -> memoryview:
        """Returns the whole value. Call it once the copy is over."""
        return self._staged.memory

    def _ask(self) -> None:
        part = slice(self._asked_bytes, min(self._asked_bytes + PIECE_BYTES, self._wanted_bytes))
        readback = self._device.read_part(self._block, self._staged, part)
        self._pieces.append(_Piece(readback, self._device.fence()))
        self._asked_bytes = part.stop
