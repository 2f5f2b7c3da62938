"""Ops of any operands: what is recorded again is the same op, whatever its operands are."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire._recording.recorder import Recorder
from tests.client.loops import H
from tests.client.peer import connect
from tests.patience import HANGS_S

TIMES = 3  # the first learns, the others find what it has learnt


@pytest.fixture
def x() -> fw.Array:
    return connect().session.array(H)


def recorder_of(x: fw.Array) -> Recorder:
    recorder: Recorder = x._recorder
    return recorder


def in_another_thread(make: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(make).result(timeout=HANGS_S)


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "where": lambda xp, x: xp.where(x > 0, x, 2.0),
    "where of scalars": lambda xp, x: xp.where(x > 0, 1.5, 0),
    "maximum": lambda xp, x: xp.maximum(x, 0.25),
    "maximum with the scalar in front": lambda xp, x: xp.maximum(1, x),
    "concatenate": lambda xp, x: xp.concatenate([x, x + 1, x], axis=0),
    "clip": lambda xp, x: xp.clip(x, -0.5, 0.5),
    "a NumPy scalar": lambda _, x: x * np.float32(0.5),
    "a NumPy scalar in front": lambda _, x: np.float64(2) - x,
    "take": lambda xp, x: xp.take(x, np.array([0, -1, 0]), axis=0),
    "var": lambda xp, x: xp.var(x, axis=1, ddof=1),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_op_that_is_known_has_the_same_value(x: fw.Array, call: Callable[[Any, Any], Any]) -> None:
    expected = call(np, H)
    for _ in range(TIMES):
        result = call(fw, x)
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result.numpy(timeout=HANGS_S), expected, rtol=1e-5)


def test_a_known_op_has_the_same_signature_and_values(x: fw.Array) -> None:
    condition = x > 0
    first = recorder_of(x).next_number
    for _ in range(TIMES):
        fw.where(condition, x, 7.0)
    records = recorder_of(x).between(first, first + TIMES).reshape(TIMES, -1)
    assert (records[:, :3] == records[0, :3]).all()
    assert recorder_of(x).values_of(records.ravel()) == [7.0] * TIMES


def test_scalars_of_different_types_are_different_ops() -> None:
    small = connect().session.array(np.ones(3, "uint8"))
    for _ in range(TIMES):
        assert fw.maximum(small, 2).dtype == fw.uint8
        assert fw.maximum(small, 2.0).dtype == fw.float64
        assert fw.maximum(small, np.int32(2)).dtype == fw.int32
        assert fw.maximum(small, True).dtype == fw.uint8


def test_a_scalar_that_the_dtype_cannot_hold_raises_beside_a_known_op() -> None:
    small = connect().session.array(np.ones(3, "uint8"))
    fw.maximum(small, 2)
    with pytest.raises(OverflowError, match="300 is out of range for uint8"):
        fw.maximum(small, 300)
    assert fw.less(small, 2).numpy(timeout=HANGS_S).all()
    assert fw.less(small, 300).numpy(timeout=HANGS_S).all()


def test_arrays_of_another_thread_take_part_in_a_known_op(x: fw.Array) -> None:
    fw.maximum(x, x)
    other = in_another_thread(lambda: x + 1)
    for left, right in ((x, other), (other, x), (other, other)):
        np.testing.assert_array_equal(
            fw.maximum(left, right).numpy(timeout=HANGS_S), H + (left is other or right is other)
        )
    assert in_another_thread(lambda: fw.maximum(x, x).numpy(timeout=HANGS_S)).shape == H.shape


def test_arrays_of_two_sessions_are_refused_beside_a_known_op(x: fw.Array) -> None:
    fw.maximum(x, x)
    with pytest.raises(fw.RequestError, match="the arrays belong to different sessions"):
        fw.maximum(x, connect().session.array(H))


def test_arrays_of_a_session_that_was_lost_are_refused_with_the_reason(x: fw.Array) -> None:
    other = connect(is_manual=True).session
    lost = other.array(H)
    other.on_lost(fw.SessionLost("the line is cut"))
    for use in (lambda: x + lost, lambda: fw.maximum(x, lost), lambda: x.session.array(lost)):
        with pytest.raises(fw.ArgumentError, match=r"has ended.*the line is cut"):
            use()
