"""The twins of the Fourier transforms are NumPy's functions, unscaled, over the parts of complex numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_kernels.ops import fourier
from fusewire_kernels.ops.fourier import TWINS
from fusewire_protos.ops import catalogue

Array = npt.NDArray[Any]

_RANDOM = np.random.default_rng(0)
_DTYPES = [np.float32, np.float64]
_POINTS = [2, 3, 8, 97, 1000, 2 * 1009]  # 1009 is a prime beyond those that have their own kernels


def _drawn(points: int, dtype: Any, *batch: int) -> tuple[Array, Array]:
    real, imaginary = _RANDOM.standard_normal((2, *batch, points)).astype(dtype)
    return real, imaginary


def _run(name: str, *operands: Array, flags: Sequence[bool] = ()) -> Array:
    return np.asarray(TWINS[name](np, operands, tuple(flags), ()))


def _joined(packed: Array) -> Array:
    real, imaginary = np.split(packed, 2, axis=-1)
    return np.asarray(real + np.array(1j, packed.dtype.char.upper()) * imaginary)


def test_every_op_of_lines_has_a_twin() -> None:
    assert {*TWINS} == {op.name for op in catalogue.OPS if op.core_rank == 1}


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize("points", _POINTS)
def test_a_transform_is_numpys(points: int, dtype: Any) -> None:
    real, imaginary = _drawn(points, dtype, 2, 3)
    lines = real + np.array(1j, np.dtype(dtype).char.upper()) * imaginary
    for found, expected in (
        (_joined(_run("fft", real, imaginary, flags=[False])), np.fft.fft(lines)),
        (_joined(_run("fft", real, imaginary, flags=[True])), np.fft.ifft(lines, norm="forward")),
        (_joined(_run("rfft", real)), np.fft.rfft(real)),
        (_run("irfft", real, imaginary, flags=[False]), np.fft.irfft(lines, norm="forward")),
        (_run("irfft", real, imaginary, flags=[True]), np.fft.irfft(lines, n=2 * points - 1, norm="forward")),
    ):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize("name", sorted(TWINS))
def test_a_line_has_the_bits_that_it_has_alone(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fourier, "MOST_POINTS_AT_ONCE", 3 * 128)
    for flag in (False, True):
        operands = _drawn(64, dtype, 7)[: catalogue.BY_NAME[name].least_operands]
        flags = [flag] * len(catalogue.BY_NAME[name].attributes)
        alone = [_run(name, *[each[line] for each in operands], flags=flags) for line in range(7)]
        np.testing.assert_array_equal(_run(name, *operands, flags=flags), alone)


@pytest.mark.parametrize("odd", [False, True])
def test_parts_that_a_real_line_cannot_have_are_not_read(odd: bool) -> None:
    real, imaginary = _drawn(5, np.float64)
    expected = _run("irfft", real, imaginary, flags=[odd])
    imaginary[0] = np.nan
    if not odd:
        imaginary[-1] = np.inf
    np.testing.assert_array_equal(_run("irfft", real, imaginary, flags=[odd]), expected)


def test_operands_stay_as_they_are() -> None:
    real, imaginary = _drawn(5, np.float64)
    kept = imaginary.copy()
    _run("irfft", real, imaginary, flags=[False])
    np.testing.assert_array_equal(imaginary, kept)


@pytest.mark.parametrize("name", sorted(TWINS))
def test_a_batch_without_lines_has_its_result(name: str) -> None:
    operands = [np.zeros((2, 0, 4), np.float32)] * catalogue.BY_NAME[name].least_operands
    found = _run(name, *operands, flags=[False] * len(catalogue.BY_NAME[name].attributes))
    assert found.dtype == np.float32
    assert found.shape == (2, 0, {"fft": 8, "rfft": 6, "irfft": 6}[name])
