"""Fourier transforms. Complex numbers have an axis of two at the end, and real numbers one of one, or none."""

from __future__ import annotations

from typing import Any

import fusewire as fw
from tests.conformance.onnx_ops.arguments import ints


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


OPS = {"DFT": _transformed, "STFT": _in_windows}
