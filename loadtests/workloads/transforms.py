"""The Fourier transform of many complex numbers, of which one element is read."""

from __future__ import annotations

from typing import Any

import numpy as np

POINTS = 1 << 22


def numbers(points: int) -> Any:
    """Returns complex64 numbers, as a NumPy array."""
    parts = np.random.default_rng(0).standard_normal((2, points), np.float32)
    return parts[0] + np.complex64(1j) * parts[1]


def element_in(module: Any, given: Any) -> complex:
    """Returns an element of the transform, which takes both parts of it. A library on a GPU waits for it here."""
    return complex(module.fft.fft(given)[1])
