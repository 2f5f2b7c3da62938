"""Convolutions are those of their definition, in one to three axes, with the gradients that follow from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusewire as fw
from fusewire.testing import session_in_memory
from tests.client.api.functions.products.convolved import Host, Parameters, conv, conv_transpose
from tests.client.api.gradients.differences import check, check_twice, drawn
from tests.effort import of_a_hundred
from tests.patience import HANGS_S

_PLAIN = Parameters((1, 1), ((0, 0), (0, 0)), (1, 1))


@pytest.fixture(scope="module")
def session() -> Iterator[fw.Session]:
    with session_in_memory() as session:
        yield session


def _options(parameters: Parameters) -> dict[str, Any]:
    return parameters._asdict()


def _whole(generator: np.random.Generator, *shape: int) -> Host:
    """Small integers as floats, whose sums of products are exact in any order."""
    return generator.integers(-4, 5, shape).astype(np.float64)


@st.composite
def _cases(draw: st.DrawFn) -> tuple[Host, Host, Parameters]:
    """An array, kernels of as many groups, and parameters with which at least one window fits."""
    rank = draw(st.integers(1, 3))
    each = st.integers(1, 3)
    window, strides, dilation = (draw(st.tuples(*[each] * rank)) for _ in range(3))
    padding = draw(st.tuples(*[st.tuples(st.integers(0, 2), st.integers(0, 2))] * rank))
    groups, channels, outputs, batch = (
        draw(each),
        draw(st.integers(1, 2)),
        draw(st.integers(1, 2)),
        draw(st.integers(0, 2)),
    )
    spans = [(extent - 1) * step + 1 for extent, step in zip(window, dilation, strict=True)]
    lengths = [draw(st.integers(max(span - sum(ends), 1), span + 4)) for span, ends in zip(spans, padding, strict=True)]
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    x = _whole(generator, batch, channels * groups, *lengths)
    return x, _whole(generator, outputs * groups, channels, *window), Parameters(strides, padding, dilation, groups)


@of_a_hundred(60)
@given(case=_cases())
def test_a_convolution_is_that_of_its_definition(session: fw.Session, case: tuple[Host, Host, Parameters]) -> None:
    x, w, parameters = case
    result = fw.conv(session.array(x), session.array(w), **_options(parameters))
    np.testing.assert_array_equal(result.numpy(timeout=HANGS_S), conv(x, w, parameters), strict=True)


@of_a_hundred(60)
@given(case=_cases(), data=st.data())
def test_a_transposed_convolution_is_that_of_its_definition(
    session: fw.Session, case: tuple[Host, Host, Parameters], data: st.DataObject
) -> None:
    """Of an array with as many channels as there are kernels, of which the padding leaves something."""
    like, w, given_parameters = case
    x = _whole(np.random.default_rng(0), like.shape[0], w.shape[0], *[max(dim // 2, 3) for dim in like.shape[2:]])
    most = [max(pair) - 1 for pair in zip(given_parameters.strides, given_parameters.dilation, strict=True)]
    more = tuple([data.draw(st.integers(0, each)) for each in most])
    spans = [
        (dim - 1) * stride + (extent - 1) * step
        for dim, stride, extent, step in zip(
            x.shape[2:], given_parameters.strides, w.shape[2:], given_parameters.dilation, strict=True
        )
    ]
    padding = [
        ends if sum(ends) <= span else (0, 0) for ends, span in zip(given_parameters.padding, spans, strict=True)
    ]
    parameters = given_parameters._replace(padding=padding)
    result = fw.conv_transpose(session.array(x), session.array(w), **_options(parameters), output_padding=more)
    expected = conv_transpose(x, w, parameters, more)
    np.testing.assert_array_equal(result.numpy(timeout=HANGS_S), expected, strict=True)


@of_a_hundred(30)
@given(case=_cases())
def test_gradients_are_the_transposed_convolution_and_that_of_the_operand(
    session: fw.Session, case: tuple[Host, Host, Parameters]
) -> None:
    """dx is the transposed convolution of dy by w, and dw the sums of products of dy and the windows of x."""
    x, w, parameters = case
    y = conv(x, w, parameters)
    dy = _whole(np.random.default_rng(1), *y.shape)
    found, pull_back = fw.vjp(lambda x, w: fw.conv(x, w, **_options(parameters)), session.array(x), session.array(w))
    dx, dw = pull_back(session.array(dy))
    more = [
        (dim + sum(ends) - (extent - 1) * step - 1) % stride
        for dim, ends, extent, step, stride in zip(
            x.shape[2:], parameters.padding, w.shape[2:], parameters.dilation, parameters.strides, strict=True
        )
    ]
    np.testing.assert_array_equal(found.numpy(timeout=HANGS_S), y)
    np.testing.assert_array_equal(dx.numpy(timeout=HANGS_S), conv_transpose(dy, w, parameters, more), strict=True)
    np.testing.assert_array_equal(dw.numpy(timeout=HANGS_S), _by_kernels(x, w, dy, parameters), strict=True)


def _by_kernels(x: Host, w: Host, dy: Host, parameters: Parameters) -> Host:
    """The gradient by the kernels: what changes if each of their elements alone is 1, times dy."""
    found = np.zeros_like(w)
    for place in np.ndindex(*w.shape):
        one = np.zeros_like(w)
        one[place] = 1
        found[place] = (conv(x, one, parameters) * dy).sum()
    return found


@pytest.mark.parametrize(
    "options", [{}, {"strides": 2, "padding": 1}, {"groups": 2, "dilation": 2, "padding": "same"}], ids=str
)
def test_gradients_are_those_of_differences(session: fw.Session, options: dict[str, Any]) -> None:
    channels = 2 // options.get("groups", 1)
    x, w = drawn(2, 2, 5, 4), drawn(4, channels, 3, 2, seed=1)
    check(session, lambda x, w: fw.conv(x, w, **options), x, w)


@pytest.mark.parametrize(
    "options", [{}, {"strides": (2, 3), "padding": 1, "output_padding": (1, 2)}, {"dilation": 2}], ids=str
)
def test_gradients_of_transposed_ones_are_those_of_differences(session: fw.Session, options: dict[str, Any]) -> None:
    check(session, lambda x, w: fw.conv_transpose(x, w, **options), drawn(1, 2, 3, 3), drawn(2, 2, 3, 2, seed=1))


def test_second_derivatives_are_those_of_differences(session: fw.Session) -> None:
    check_twice(session, lambda x, w: fw.conv(x, w, strides=2, padding=1), drawn(1, 1, 4, 3), drawn(1, 1, 2, 2, seed=1))
    check_twice(session, fw.conv, drawn(1, 1, 4), drawn(1, 1, 2, seed=1))


@pytest.mark.parametrize(
    "dtype", [fw.float16, fw.bfloat16, fw.float32, fw.float64, fw.int32], ids=lambda dtype: dtype.name
)
def test_dtypes_are_those_of_products(session: fw.Session, dtype: fw.DType) -> None:
    generator = np.random.default_rng(0)
    x, w = _whole(generator, 2, 3, 5, 5), _whole(generator, 2, 3, 3, 3)
    ours = fw.conv(session.array(x).astype(dtype), session.array(w).astype(dtype), padding=1)
    assert ours.dtype is dtype
    expected = conv(x, w, _PLAIN._replace(padding=((1, 1), (1, 1))))
    np.testing.assert_array_equal(ours.astype(fw.float64).numpy(timeout=HANGS_S), expected)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("length", [5, 6, 7])
def test_same_padding_gives_a_window_for_each_stride(session: fw.Session, length: int, stride: int) -> None:
    x = session.array(np.ones((1, 1, length)))
    w = session.array(np.ones((1, 1, 4)))
    assert fw.conv(x, w, strides=stride, padding="same").shape == (1, 1, -(-length // stride))


def test_same_padding_has_one_more_behind(session: fw.Session) -> None:
    result = fw.conv(session.array(np.ones((1, 1, 4))), session.array(np.ones((1, 1, 2))), padding="same")
    np.testing.assert_array_equal(result.numpy(timeout=HANGS_S), [[[2, 2, 2, 1]]])


def test_a_number_of_padding_for_each_axis_is_for_both_its_ends(session: fw.Session) -> None:
    x, w = session.array(np.ones((1, 1, 4, 4))), session.array(np.ones((1, 1, 3, 3)))
    assert fw.conv(x, w, padding=(1, 0)).shape == (1, 1, 4, 2)
    assert fw.conv(x, w, padding="valid").shape == (1, 1, 2, 2)


_REFUSED: dict[str, tuple[type[Exception], str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "no spatial axis": (fw.ShapeError, "1 to 3 spatial axes", (2, 3), (4, 3), {}),
    "four spatial axes": (fw.ShapeError, "1 to 3 spatial axes", (1, 1, 2, 2, 2, 2), (1, 1, 1, 1, 1, 1), {}),
    "kernels of another rank": (fw.ShapeError, "kernels of 4 axes", (2, 3, 4, 4), (2, 3, 3), {}),
    "other channels": (fw.ShapeError, "kernels of 3 channels", (2, 3, 4), (2, 4, 3), {}),
    "groups of channels": (fw.ShapeError, "3 channels do not fall into 2 groups", (2, 3, 4), (2, 1, 3), {"groups": 2}),
    "groups of outputs": (fw.ShapeError, "3 outputs do not fall into 2 groups", (2, 4, 4), (3, 2, 3), {"groups": 2}),
    "no groups": (fw.ArgumentError, "groups is 0", (2, 3, 4), (2, 3, 3), {"groups": 0}),
    "a large window": (fw.ShapeError, "spans 5 elements along spatial axis 0, which has 4", (1, 1, 4), (1, 1, 5), {}),
    "a wide window": (fw.ShapeError, "spans 5 elements along", (1, 1, 4), (1, 1, 3), {"dilation": 2}),
    "an empty window": (fw.ShapeError, "empty along spatial axis 0", (1, 1, 4), (1, 1, 0), {}),
    "no stride": (fw.ArgumentError, "strides is 0 along spatial axis 0", (1, 1, 4), (1, 1, 2), {"strides": 0}),
    "strides of other axes": (fw.ArgumentError, "2 numbers for 1 spatial", (1, 1, 4), (1, 1, 2), {"strides": (1, 1)}),
    "no dilation": (fw.ArgumentError, "dilation is 0", (1, 1, 4), (1, 1, 2), {"dilation": 0}),
    "negative padding": (fw.ArgumentError, "padding is -1", (1, 1, 4), (1, 1, 2), {"padding": -1}),
    "padding of other axes": (fw.ArgumentError, "3 entries for 1", (1, 1, 4), (1, 1, 2), {"padding": (1, 1, 1)}),
    "padding of three numbers": (
        fw.ArgumentError,
        "a number or a pair",
        (1, 1, 4),
        (1, 1, 2),
        {"padding": [(1, 1, 1)]},
    ),
    "another word": (fw.ArgumentError, "none of 'same', 'valid'", (1, 1, 4), (1, 1, 2), {"padding": "full"}),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_what_does_not_fit_is_refused(session: fw.Session, name: str) -> None:
    kind, message, x, w, options = _REFUSED[name]
    with pytest.raises(kind, match=message):
        fw.conv(session.array(np.zeros(x)), session.array(np.zeros(w)), **options)


_REFUSED_TRANSPOSED: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "words": (fw.ArgumentError, "takes numbers and pairs", {"padding": "same"}),
    "much output padding": (fw.ArgumentError, "output_padding is 2 along", {"output_padding": 2, "strides": 2}),
    "nothing left": (fw.ShapeError, "0 elements are left", {"padding": 3}),
    "groups": (fw.ShapeError, "3 channels do not fall", {"groups": 2}),
}


@pytest.mark.parametrize("name", _REFUSED_TRANSPOSED)
def test_what_does_not_fit_a_transposed_one_is_refused(session: fw.Session, name: str) -> None:
    kind, message, options = _REFUSED_TRANSPOSED[name]
    with pytest.raises(kind, match=message):
        fw.conv_transpose(session.array(np.zeros((1, 3, 4))), session.array(np.zeros((3, 2, 3))), **options)
    with pytest.raises(fw.ShapeError, match="takes as many kernels"):
        fw.conv_transpose(session.array(np.zeros((1, 3, 4))), session.array(np.zeros((2, 2, 3))))


def test_a_transposed_one_of_which_only_the_output_padding_is_left_is_zero(session: fw.Session) -> None:
    x, w = session.array(np.ones((1, 1, 1))), session.array(np.ones((1, 1, 2)))
    result = fw.conv_transpose(x, w, strides=2, padding=[(2, 0)], output_padding=1)
    np.testing.assert_array_equal(result.numpy(timeout=HANGS_S), [[[0]]])


def test_data_of_this_machine_is_uploaded(session: fw.Session) -> None:
    result = fw.conv(np.ones((1, 1, 3)), session.array(np.ones((1, 1, 2))))
    np.testing.assert_array_equal(result.numpy(timeout=HANGS_S), [[[2, 2]]])
