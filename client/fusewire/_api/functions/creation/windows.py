"""Windows: weights of samples. NumPy computes them on this machine, and they are uploaded in float64."""

from __future__ import annotations

import operator

import numpy as np

from fusewire._api.array import Array
from fusewire._api.ops.operands import asarray

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


def bartlett(M: int, /) -> Array:  # noqa: N803  # NumPy's name
    """Returns the triangular window of `M` points, whose ends are 0."""
    return asarray(np.bartlett(operator.index(M)))


def blackman(M: int, /) -> Array:  # noqa: N803
    """Returns the Blackman window of `M` points: a sum of three cosines."""
    return asarray(np.blackman(operator.index(M)))


def hamming(M: int, /) -> Array:  # noqa: N803
    """Returns the Hamming window of `M` points: a weighted cosine."""
    return asarray(np.hamming(operator.index(M)))


def hanning(M: int, /) -> Array:  # noqa: N803
    """Returns the window of von Hann of `M` points: a raised cosine."""
    return asarray(np.hanning(operator.index(M)))


def kaiser(M: int, /, beta: float) -> Array:  # noqa: N803
    """Returns the Kaiser window of `M` points, by Bessel functions. `beta` is its shape, 0 a rectangle."""
    return asarray(np.kaiser(operator.index(M), beta))
