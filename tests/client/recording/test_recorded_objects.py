"""The objects of results: their deaths, weak references and classes."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import fusewire as fw
from fusewire._recording.recorded_ops import recorded_of_handle
from fusewire._recording.recorder import Recorder
from tests.client.loops import H
from tests.client.peer import connect
from tests.patience import HANGS_S

MANY = 2000  # more objects than any recorder keeps for later use


class Own(fw.Array):
    """A user's class, with fields."""


@pytest.fixture
def x() -> fw.Array:
    return connect(is_manual=True).session.array(H)


def recorder_of(x: fw.Array) -> Recorder:
    recorder: Recorder = x._recorder
    return recorder


def of_own_class(x: fw.Array) -> Own:
    recorder = recorder_of(x)
    return recorded_of_handle(Own, recorder, recorder.mint_upload(), x._spec)


def test_each_death_is_noted_once(x: fw.Array) -> None:
    recorder_of(x).take_deaths(recorder_of(x).deaths)
    results = [x + 1.0 for _ in range(MANY)]
    handles = [result._handle for result in results]
    assert recorder_of(x).deaths == 0
    del results
    assert sorted(recorder_of(x).take_deaths(MANY).tolist()) == handles
    assert recorder_of(x).deaths == 0


def test_objects_that_follow_dead_ones_are_new(x: fw.Array) -> None:
    for _ in range(3):
        results = [-x for _ in range(MANY)]
        assert len({result._handle for result in results}) == MANY
        assert all(result.shape == x.shape for result in results)


def test_a_weak_reference_ends_with_its_object_and_not_with_the_next(x: fw.Array) -> None:
    ended: list[bool] = []
    y = x + 1.0
    reference = weakref.ref(y, lambda _: ended.append(True))
    assert reference() is y
    del y
    z = x + 2.0
    assert ended == [True]
    assert reference() is None
    assert weakref.ref(z)() is z


def test_a_callback_of_a_weak_reference_may_record(x: fw.Array) -> None:
    made: list[fw.Array] = []
    y = x + 1.0
    y_reference = weakref.ref(y, lambda _: made.append(x * 3.0))
    del y
    assert y_reference() is None
    assert made[0].shape == x.shape


def test_ops_of_a_users_class_give_objects_of_this_class(x: fw.Array) -> None:
    own = of_own_class(x)
    assert [type(result) for result in (own + own, -own, own * 2.0, own + x)] == [Own] * 4
    assert type(x + own) is fw.Array


def test_an_object_of_a_users_class_dies_in_a_cycle(x: fw.Array) -> None:
    own = of_own_class(x)
    handle = own._handle
    own.itself = own  # type: ignore[attr-defined]
    recorder = recorder_of(x)
    recorder.take_deaths(recorder.deaths)
    del own
    gc.collect()
    assert recorder.take_deaths(recorder.deaths).tolist() == [handle]


def test_an_array_has_no_fields_of_its_own(x: fw.Array) -> None:
    with pytest.raises(AttributeError):
        x.name = "x"  # type: ignore[attr-defined]


def test_values_are_right_after_many_deaths() -> None:
    x = y = connect().session.array(H)
    for step in range(MANY):
        y = x + float(step)
    np.testing.assert_array_equal(y.numpy(timeout=HANGS_S), H + np.float32(MANY - 1))
