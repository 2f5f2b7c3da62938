"""Calls of functions of one array are known once they have been made, and mean the same as at the first time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire._api.ops import operations
from tests.client.peer import connect
from tests.patience import HANGS_S

DATA = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
CALLS: list[Callable[[Any], Any]] = [
    lambda x: x.T,
    lambda x: x.transpose(1, 0, 2),
    lambda x: x.transpose((2, 0, -2)),
    lambda x: x.reshape(6, 4),
    lambda x: x.reshape((4, -1)),
    lambda x: x.reshape([3, 8]),
    lambda x: x.reshape(np.int64(24)),
    lambda x: x.ravel(),
    lambda x: x.sum(),
    lambda x: x.sum(axis=1),
    lambda x: x.sum(axis=(0, -1)),
    lambda x: x.sum(axis=1, keepdims=True),
    lambda x: x.mean(axis=-1),
    lambda x: x.max(axis=(0, 2)),
    lambda x: x.argmin(axis=1),
    lambda x: x.astype("int64"),
    lambda x: np.broadcast_to(x, (5, 2, 3, 4)),
]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_comes_again_gives_what_numpy_gives(call: Callable[[Any], Any]) -> None:
    with connect().session as session:
        x = session.array(DATA)
        first, again = call(x), call(x)
        for result in (first, again):
            np.testing.assert_allclose(result.numpy(timeout=HANGS_S), call(DATA), rtol=1e-6)


def test_a_known_call_finds_no_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    with connect().session as session:
        x = session.array(DATA)
        for call in CALLS[:2]:
            call(x)
            with monkeypatch.context() as patched:
                patched.setattr(operations, "apply_to_one", None)
                assert call(x).shape == call(DATA).shape


def test_the_same_call_of_another_shape_has_another_meaning() -> None:
    with connect().session as session:
        for shape in ((2, 3, 4), (4, 3, 2), (24,)):
            x = session.array(DATA.reshape(shape))
            assert x.T.shape == shape[::-1]
            assert x.reshape(-1, 2).shape == (12, 2)
            assert x.sum(axis=0).shape == shape[1:]


@pytest.mark.parametrize(
    "wrong", [lambda x: x.reshape(24.0), lambda x: x.sum(axis=1.0), lambda x: x.transpose(0.0, 1, 2)]
)
def test_a_float_is_refused_although_it_equals_a_known_integer(wrong: Callable[[Any], Any]) -> None:
    with connect().session as session:
        x = session.array(DATA)
        assert x.reshape(24).shape == (24,)
        assert x.sum(axis=1).shape == (2, 4)
        assert x.transpose(0, 1, 2).shape == DATA.shape
        with pytest.raises(TypeError):
            wrong(x)


@pytest.mark.parametrize(("function", "known", "refused"), [("max", 0, (0,)), ("sum", None, (None,))])
def test_one_item_and_a_tuple_of_it_are_two_arguments(function: str, known: Any, refused: Any) -> None:
    with connect().session as session:
        x = session.array(3.0)
        assert getattr(x, function)(axis=known).shape == ()
        with pytest.raises((TypeError, fw.AxisError)):
            getattr(x, function)(axis=refused)


def test_a_call_that_is_refused_is_refused_each_time() -> None:
    with connect().session as session:
        x = session.array(DATA)
        for _ in range(2):
            with pytest.raises(fw.ShapeError):
                x.reshape(5)
            with pytest.raises(fw.AxisError):
                x.sum(axis=3)
