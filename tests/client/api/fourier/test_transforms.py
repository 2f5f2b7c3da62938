"""Every transform of `fusewire.fft` gives what NumPy's gives, for all shapes, axes, lengths and norms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusewire as fw
from fusewire import fft
from fusewire.testing import session_in_memory
from tests.client.api.fourier.numbers import DTYPES, assert_close, drawn
from tests.effort import of_a_hundred

_ALONG_ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_ALONG_SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")
_ALONG_TWO = ("fft2", "ifft2", "rfft2", "irfft2")
_OF_REAL = ("rfft", "ihfft", "rfftn", "rfft2")
_NORMS = (None, "backward", "ortho", "forward")


@pytest.fixture(scope="module")
def session() -> Iterator[fw.Session]:
    with session_in_memory() as opened:
        yield opened


def _dtypes(name: str) -> list[str]:
    return [dtype for dtype in DTYPES if not (name in _OF_REAL and dtype.startswith("complex"))]


@pytest.mark.parametrize("name", _ALONG_ONE)
@of_a_hundred(40)
@given(data=st.data())
def test_a_transform_along_one_axis_is_numpys(session: fw.Session, name: str, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(2, 9), min_size=1, max_size=3)))
    host = drawn(data.draw(st.integers(0, 99)), shape, data.draw(st.sampled_from(_dtypes(name))))
    length = data.draw(st.one_of(st.none(), st.integers(1, 20)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    norm = cast("Any", data.draw(st.sampled_from(_NORMS)))
    expected = getattr(np.fft, name)(host, length, axis, norm)
    assert_close(getattr(fft, name)(session.array(host), length, axis, norm), expected, host.dtype.name)


@pytest.mark.parametrize("name", _ALONG_SEVERAL)
@of_a_hundred(40)
@given(data=st.data())
def test_a_transform_along_several_axes_is_numpys(session: fw.Session, name: str, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(2, 6), min_size=1, max_size=4)))
    host = drawn(data.draw(st.integers(0, 99)), shape, data.draw(st.sampled_from(_dtypes(name))))
    some = st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=3)  # perhaps one of them twice
    axes = data.draw(st.one_of(st.none(), some))
    lengths = None
    if axes is not None and data.draw(st.booleans()):
        lengths = data.draw(st.lists(st.one_of(st.just(-1), st.integers(1, 8)), min_size=len(axes), max_size=len(axes)))
    norm = cast("Any", data.draw(st.sampled_from(_NORMS)))
    expected = getattr(np.fft, name)(host, lengths, axes, norm)
    whole = getattr(np.fft, name.replace("rfft", "fft"))(host, lengths, axes, norm)
    assert_close(getattr(fft, name)(session.array(host), lengths, axes, norm), expected, host.dtype.name, whole)


def test_a_transform_that_leaves_only_rounding_errors_is_close_to_nothing(session: fw.Session) -> None:
    host, axes = np.array([False, True, False]), (-1, -1, -1)
    found = fft.irfftn(session.array(host), None, axes)
    assert_close(found, np.fft.irfftn(host, None, axes), whole=np.fft.ifftn(host, None, axes))


@pytest.mark.parametrize("name", _ALONG_TWO)
@pytest.mark.parametrize("options", [{}, {"axes": (0, 1)}, {"s": (3, 7), "axes": (2, 0)}, {"norm": "ortho"}])
def test_a_transform_along_two_axes_is_numpys(session: fw.Session, name: str, options: dict[str, Any]) -> None:
    host = drawn(0, (4, 3, 5), "float64" if name in _OF_REAL else "complex128")
    assert_close(getattr(fft, name)(session.array(host), **options), getattr(np.fft, name)(host, **options))


@pytest.mark.parametrize("name", [*_ALONG_ONE, *_ALONG_SEVERAL, *_ALONG_TWO])
def test_numpys_function_takes_our_arrays(session: fw.Session, name: str) -> None:
    host = drawn(0, (4, 6), "float32" if name in _OF_REAL else "complex64")
    found = getattr(np.fft, name)(session.array(host), norm="ortho")
    assert isinstance(found, fw.Array)
    assert_close(found, getattr(np.fft, name)(host, norm="ortho"))


def test_numpys_names_of_parameters_are_taken(session: fw.Session) -> None:
    host = drawn(0, (4, 6), "float64")
    assert_close(np.fft.fft(a=session.array(host), n=3, axis=0), np.fft.fft(host, 3, 0))


@pytest.mark.parametrize("name", _ALONG_SEVERAL)
def test_lengths_without_axes_are_those_of_the_last_axes(session: fw.Session, name: str) -> None:
    host = drawn(0, (2, 4, 6), "float64")
    expected = getattr(np.fft, name)(host, (3, 8), (-2, -1))
    assert_close(getattr(fft, name)(session.array(host), (3, 8)), expected)


def test_no_axis_leaves_all_as_it_is(session: fw.Session) -> None:
    host = drawn(0, (2, 3), "float32")
    found = fft.fftn(session.array(host), axes=())
    assert_close(found, host.astype("complex64"))


@pytest.mark.parametrize("name", [*_ALONG_ONE, *_ALONG_SEVERAL])
def test_an_empty_batch_has_an_empty_result(session: fw.Session, name: str) -> None:
    host = np.zeros((0, 4))
    axis: dict[str, Any] = {"axis": 1} if name in _ALONG_ONE else {"axes": (1,)}
    assert_close(getattr(fft, name)(session.array(host), **axis), getattr(np.fft, name)(host, **axis))


def test_a_transform_and_its_inverse_give_back_the_numbers(session: fw.Session) -> None:
    host = drawn(0, (3, 30), "complex128")
    assert_close(fft.ifftn(fft.fftn(session.array(host))), host)
    assert_close(fft.irfft(fft.rfft(session.array(host.real.copy()), norm="ortho"), 30, norm="ortho"), host.real)


def test_parts_that_a_real_line_cannot_have_are_not_read(session: fw.Session) -> None:
    host = drawn(0, (5,), "complex128")
    without = host.copy()
    without.imag[[0, -1]] = 0
    found = fft.irfft(session.array(host)).numpy()
    np.testing.assert_array_equal(found, fft.irfft(session.array(without)).numpy())


def test_a_transformed_array_stays_as_it_was(session: fw.Session) -> None:
    host = drawn(0, (6,), "complex128")
    x = session.array(host)
    real = fft.fft(x).real
    real[0] = 7.0
    fft.fftn(x, axes=())
    np.testing.assert_array_equal(x.numpy(), host)


def test_a_loop_gives_the_bytes_of_its_steps(session: fw.Session) -> None:
    def smoothed(x: Any) -> Any:
        spectrum = fft.rfft(x)
        return fft.irfft(fft.rfft(x * spectrum.real.max()), 8) + spectrum.imag[..., 1:2]

    host = drawn(0, (2, 8), "float32") / 8
    one = session.array(host)
    for _ in range(3):
        one = smoothed(one)
    looped = fw.fori_loop(3, lambda i, x: smoothed(x), session.array(host))
    recorded = fw.function(smoothed)
    called = recorded(recorded(recorded(session.array(host))))
    assert looped.numpy().tobytes() == one.numpy().tobytes() == called.numpy().tobytes()


def test_complex_numbers_are_carried_through_a_loop(session: fw.Session) -> None:
    host = drawn(0, (6,), "complex64")
    looped = fw.fori_loop(4, lambda i, x: fft.fft(x, norm="ortho"), session.array(host))
    assert_close(looped, host)  # the transform of the transform has the elements in reverse order
    once = fw.function(lambda x: fft.ifft(fft.fft(x) * 1j))
    assert_close(once(session.array(host)), host * np.complex64(1j))


def test_what_is_no_array_is_uploaded(session: fw.Session) -> None:
    host = drawn(0, (6,), "complex128")
    assert_close(session.array(host) * 0 + fft.fft(host), np.fft.fft(host))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: fft.fft(x, 0), fw.ShapeError, "1 point or more, not 0"),
        (lambda x: fft.fft(x, -1), fw.ShapeError, "1 point or more, not -1"),
        (lambda x: fft.fft(x, 2**26 + 1), fw.ShapeError, "the most is 67108864"),
        (lambda x: fft.fft(x[:, :0]), fw.ShapeError, "1 point or more"),
        (lambda x: fft.irfft(x[:, :1]), fw.ShapeError, "1 point or more, not 0"),
        (lambda x: fft.irfftn(x[:, :1]), fw.ShapeError, "1 point or more, not 0"),
        (lambda x: fft.fft(x, axis=2), fw.AxisError, "axis 2"),
        (lambda x: fft.fft(x[0, 0]), fw.AxisError, "axis -1"),
        (lambda x: fft.fftn(x, axes=(0, 2)), fw.AxisError, "axis 2"),
        (lambda x: fft.fftn(x, s=(1, 2, 3)), fw.AxisError, "axis -3"),
        (lambda x: fft.fftn(x, (4,), (0, 1)), fw.ShapeError, "1 lengths"),
        (lambda x: fft.rfftn(x, axes=()), fw.ArgumentError, "one axis or more"),
        (lambda x: fft.irfft2(x, axes=()), fw.ArgumentError, "one axis or more"),
        (lambda x: fft.fft(x, norm=cast("Any", "big")), fw.ArgumentError, "'backward', 'ortho' or 'forward'"),
        (lambda x: fft.hfft(x, norm=cast("Any", 1)), fw.ArgumentError, "'backward', 'ortho' or 'forward'"),
        (lambda x: fft.fft(x, cast("Any", 2.5)), TypeError, "integer"),
        (lambda x: fft.rfft(fft.fft(x)), fw.DtypeError, "takes no complex128"),
        (lambda x: fft.ihfft(fft.fft(x)), TypeError, "takes no complex128"),
        (lambda x: np.fft.rfftn(fft.fft(x)), TypeError, "takes no complex128"),
    ],
)
def test_what_numpy_refuses_is_refused_at_the_line(
    session: fw.Session, call: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call(session.array(np.ones((2, 4))))
