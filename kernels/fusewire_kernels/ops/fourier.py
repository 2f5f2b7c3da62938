"""Computes the Fourier transforms by an array library: by PocketFFT through NumPy, by cuFFT through CuPy.

Complex lines are made of their parts, transformed, and taken apart again, some lines at a time, so that the memory of
these copies is bounded whatever the batch. How many lines those are follows from the shape alone, so that calls of one
shape have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from fusewire_kernels.ops.written_parts import Twin
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.op import Attributes

MOST_POINTS_AT_ONCE = 1 << 24  # of several lines; a longer line is transformed alone

_COMPLEX = {np.dtype(np.float32): np.complex64, np.dtype(np.float64): np.complex128}

# (array library, real or complex lines of shape [count, points], attributes) -> the lines transformed
_Transform = Callable[[Any, Any, Attributes], Any]


def _fft(library: Any, lines: Any, attributes: Attributes) -> Any:
    (inverse,) = attributes
    return library.fft.ifft(lines, norm="forward") if inverse else library.fft.fft(lines)


def _rfft(library: Any, lines: Any, attributes: Attributes) -> Any:
    return library.fft.rfft(lines)


def _irfft(library: Any, lines: Any, attributes: Attributes) -> Any:
    (odd,) = attributes
    points = 2 * (lines.shape[-1] - 1) + odd
    # The real line has these parts only if they are 0. NumPy takes them as 0, and what cuFFT does is not defined.
    lines.imag[:, 0] = 0
    if not odd:
        lines.imag[:, -1] = 0
    return library.fft.irfft(lines, n=points, norm="forward")


def _twin(name: str, transform: _Transform) -> Twin:
    op = BY_NAME[name]

    def run(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
        shape = op.shape_rule(tuple([each.shape for each in operands]), attributes)
        *batch, points = operands[0].shape
        parts = [each.reshape(prod(batch), points) for each in operands]
        result = library.empty((prod(batch), shape[-1]), operands[0].dtype)
        at_once = max(1, MOST_POINTS_AT_ONCE // max(points, shape[-1]))
        for first in range(0, prod(batch), at_once):
            some = slice(first, first + at_once)
            _write(result[some], transform(library, _lines(library, [each[some] for each in parts]), attributes))
        return result.reshape(shape)

    return run


def _lines(library: Any, parts: Sequence[Any]) -> Any:
    """Returns lines as the library takes them: real ones as they are, complex ones made of their two parts."""
    real, *imaginary = parts
    if not imaginary:
        return real
    lines = library.empty(real.shape, _COMPLEX[real.dtype])
    lines.real = real
    lines.imag = imaginary[0]
    return lines


def _write(result: Any, transformed: Any) -> None:
    """Writes lines, of complex ones first the real parts and behind them the imaginary parts."""
    if transformed.dtype.kind != "c":
        result[...] = transformed
        return
    points = transformed.shape[-1]
    result[:, :points] = transformed.real
    result[:, points:] = transformed.imag


TWINS: dict[str, Twin] = {
    name: _twin(name, transform) for name, transform in (("fft", _fft), ("rfft", _rfft), ("irfft", _irfft))
}
