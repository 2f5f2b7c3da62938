"""The frequencies of a transform and their order are NumPy's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest

import fusewire as fw
from fusewire import fft
from fusewire.testing import session_in_memory
from tests.client.api.fourier.numbers import drawn


@pytest.fixture(scope="module")
def session() -> Iterator[fw.Session]:
    with session_in_memory() as opened:
        yield opened


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
@pytest.mark.parametrize("count", [1, 2, 3, 8, 9])
@pytest.mark.parametrize("distance", [1.0, 0.125, -3])
def test_frequencies_are_numpys(session: fw.Session, name: str, count: int, distance: float) -> None:
    found = getattr(fft, name)(count, distance, device=session)
    np.testing.assert_array_equal(found.numpy(), getattr(np.fft, name)(count, distance))
    assert found.dtype is fw.float64


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies_have_the_dtype_that_is_asked_for(session: fw.Session, name: str) -> None:
    function = getattr(fft, name)
    found = function(5, d=0.3, dtype="float32", device=session)
    np.testing.assert_array_equal(found.numpy(), getattr(np.fft, name)(5, 0.3).astype("float32"))
    with pytest.raises(fw.DtypeError, match="not int64"):
        function(5, dtype="int64", device=session)
    with pytest.raises(fw.ArgumentError, match="other than 0"):
        function(0, device=session)
    with pytest.raises(fw.ArgumentError, match="other than 0"):
        function(4, 0.0, device=session)
    with pytest.raises(TypeError, match="integer"):
        function(cast("Any", 2.5), device=session)


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
@pytest.mark.parametrize("axes", [None, 0, (1,), (0, -1), (1, 1), ()])
@pytest.mark.parametrize("shape", [(4,), (5, 4), (3, 2, 5), (0, 3)])
def test_shifts_are_numpys(session: fw.Session, name: str, axes: Any, shape: tuple[int, ...]) -> None:
    host = drawn(0, shape, "float32")
    axes = 0 if axes is not None and len(shape) == 1 else axes
    expected = getattr(np.fft, name)(host, axes)
    np.testing.assert_array_equal(getattr(fft, name)(session.array(host), axes).numpy(), expected)
    np.testing.assert_array_equal(getattr(np.fft, name)(session.array(host), axes=axes).numpy(), expected)


def test_complex_numbers_are_shifted(session: fw.Session) -> None:
    host = drawn(0, (4, 5), "complex64")
    np.testing.assert_array_equal(fft.fftshift(session.array(host)).numpy(), np.fft.fftshift(host))


def test_an_axis_that_is_not_there_is_refused(session: fw.Session) -> None:
    with pytest.raises(fw.AxisError, match="axis 1"):
        fft.fftshift(session.array([1.0, 2.0]), 1)
