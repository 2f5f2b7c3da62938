"""Takes a part that a device has read to memory of its own, and copies it to its place in staged memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusewire_kernels.devices.base import Readback


@dataclass(frozen=True)
class PartReadback:
    """`read` holds the bytes of a part, and `place` is the memory that gets them."""

    read: Readback
    place: memoryview

    def data(self) -> memoryview:
        """Copies by NumPy, which lets other threads run meanwhile. Assigning to a memoryview would not."""
        np.copyto(np.frombuffer(self.place, np.uint8), np.frombuffer(self.read.data(), np.uint8))
        return self.place
