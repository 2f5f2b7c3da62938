"""Fourier transforms. Complex numbers have an axis of two at the end, and real numbers one of one, or none."""

from __future__ import annotations

import math
from typing import Any

import fusewire as fw
from tests.conformance.onnx_ops.arguments import dtype_of, ints


def _transformed(x: Any, length: Any = None, axis: Any = -2, *, inverse: int = 0, onesided: int = 0) -> Any:
    along = axis if isinstance(axis, int) else ints(axis)[0]
    along = along if along < 0 else along - x.ndim  # of numbers without their own axis, one axis less
    count = None if length is None else ints(length)[0]
    numbers = _numbers(x)
    if inverse and onesided:
        return fw.fft.irfft(numbers, count, along + 1)[..., None]
    if onesided:
        return _pairs(fw.fft.rfft(numbers, count, along + 1))
    return _pairs((fw.fft.ifft if inverse else fw.fft.fft)(numbers, count, along + 1))


def _in_windows(signal: Any, step: Any, window: Any = None, length: Any = None, *, onesided: int = 1) -> Any:
    count = window.shape[0] if length is None else ints(length)[0]
    numbers = _numbers(signal)
    frames = fw.lib.stride_tricks.sliding_window_view(numbers, count, axis=1)[:, :: ints(step)[0]]
    weighed = frames if window is None else frames * window
    return _pairs(fw.fft.rfft(weighed) if onesided else fw.fft.fft(weighed))


def _numbers(x: Any) -> Any:
    return x[..., 0] if x.shape[-1] == 1 else x[..., 0] + 1j * x[..., 1]


def _pairs(numbers: Any) -> Any:
    return fw.stack([numbers.real, numbers.imag], axis=-1)


def _mel_weights(count: Any, length: Any, rate: Any, low: Any, high: Any, *, output_datatype: int = 1) -> Any:
    """Triangles over the frequencies of a transform, whose corners are evenly apart on the mel scale."""
    first, last = (2595 * math.log10(1 + float(each) / 700) for each in (low, high))
    mels = fw.arange(int(count) + 2, dtype="float64") * ((last - first) / (int(count) + 2)) + first
    corners = fw.floor((int(length) + 1) * 700 * (10 ** (mels / 2595) - 1) / int(rate))
    left, middle, right = corners[:-2], corners[1:-1], corners[2:]
    places = fw.arange(int(length) // 2 + 1, dtype="float64")[:, None]
    rising = fw.where(middle == left, 1.0, (places - left) / (middle - left))
    falling = (right - places) / (right - middle)
    found = fw.where((places >= left) & (places <= middle), rising, 0.0)
    return fw.where((places >= middle) & (places < right), falling, found).astype(dtype_of(output_datatype))


OPS = {"DFT": _transformed, "MelWeightMatrix": _mel_weights, "STFT": _in_windows}
