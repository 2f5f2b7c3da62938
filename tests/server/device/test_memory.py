"""Who gets the device's memory where there is too little, seen through the device thread."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fusewire_kernels.devices.null import NullDevice
from fusewire_server.device.memory import MOST_RETREATS
from fusewire_server.device.orders import Lasts, Ran, Release, Wrote
from tests.server.device_world import DEADLINE_S, FAST, OTHER_FAST, OTHER_SLOW, SLOW, World, write
from tests.server.parts import SIZE_BYTES, session


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """One that is not started, so that a test may first say how much memory there is."""
    here = World(NullDevice())
    monkeypatch.setattr("fusewire_server.device.tier0.run_op_by_op", here.run_op_by_op)
    yield here
    for gate in (here.gate, *here.gates.values()):
        gate.set()
    here.thread.stop(DEADLINE_S)


def test_who_finds_no_room_gets_what_waits_to_be_released_and_no_order_needs(tight: World) -> None:
    one, dying = session("a"), tight.value()
    (row,) = tight.run(SLOW, one)
    tight.thread.order(Release(frozenset([one]), (dying, *row.inputs)))
    tight.run(FAST, session("b"))
    tight.run(OTHER_FAST, session("c"))
    tight.device._memory_bytes = tight.device.live_bytes + SIZE_BYTES  # for the result of the first run, and no more
    tight.thread.start()
    assert tight.completed(1) == [FAST]
    report = tight.next_report()
    assert isinstance(report, Ran)
    assert [failed.case for failed in report.failed] == ["out_of_memory"]
    assert (dying.block is None, row.inputs[0].block is None) == (True, False)
    tight.gate.set()
    assert tight.completed(1) == [SLOW]


@pytest.mark.parametrize("meanwhile", ["prepare", "run_op_by_op"])
def test_a_run_gives_way_to_values_and_is_refused_if_they_leave_it_no_room(
    meanwhile: str, tight: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"fusewire_server.device.tier0.{meanwhile}", getattr(tight, meanwhile))
    tight.device._memory_bytes = 2 * SIZE_BYTES  # the run's result and what it computes it from
    tight.run_without_inputs(SLOW, SIZE_BYTES, session("a"))
    tight.thread.start()
    assert tight.begun.wait(DEADLINE_S)
    tight.thread.order(write(SIZE_BYTES, session("b")))
    written, ran = tight.next_report(), tight.next_report()
    assert isinstance(written, Wrote)
    assert written.refusal is None
    assert isinstance(ran, Ran)
    assert [failed.case for failed in ran.failed] == ["out_of_memory"]


def test_no_run_gives_way_to_what_would_find_no_room_even_so(tight: World) -> None:
    tight.device._memory_bytes = 2 * SIZE_BYTES
    row = tight.run_without_inputs(SLOW, SIZE_BYTES, session("a"))
    tight.thread.start()
    assert tight.begun.wait(DEADLINE_S)
    tight.thread.order(write(2 * SIZE_BYTES, session("b")))
    report = tight.next_report()
    assert isinstance(report, Wrote)
    assert report.refusal is not None
    tight.gate.set()
    assert tight.completed(1) == [SLOW]
    assert tight.rows_begun == [row]


def test_no_run_gives_way_where_counting_closely_finds_room(tight: World) -> None:
    tight.device._memory_bytes = 5 * SIZE_BYTES  # the run's result, and the most that may be beside it
    tight.thread.start()
    row = tight.begin_run(SLOW, SIZE_BYTES)
    tight.thread.order(write(2 * SIZE_BYTES, session("b")))
    report = tight.next_report()
    assert isinstance(report, Wrote)
    assert report.refusal is None
    tight.gates[row.session].set()
    assert tight.completed(1) == [SLOW]
    assert tight.rows_begun == [row]


# Results of 4 sizes and of 1, what the latter is computed from, and not quite what the former is.
TOO_LITTLE_BYTES = (4 + 1 + 1 + 4) * SIZE_BYTES - 1


def test_a_run_gives_way_to_a_smaller_one_and_begins_anew_after_it(tight: World) -> None:
    tight.device._memory_bytes = TOO_LITTLE_BYTES
    tight.thread.start()
    great = tight.begin_run(SLOW, 4 * SIZE_BYTES)
    small = tight.begin_run(OTHER_SLOW, SIZE_BYTES)
    tight.gates[great.session].set()
    tight.gates[small.session].set()
    assert tight.completed(2) == [OTHER_SLOW, SLOW]
    assert tight.rows_begun == [great, small, great]


def test_a_run_waits_for_one_that_is_no_greater(tight: World) -> None:
    tight.device._memory_bytes = 3 * SIZE_BYTES  # two results, and what one of them is computed from
    tight.thread.start()
    first = tight.begin_run(SLOW, SIZE_BYTES)
    second = tight.run_without_inputs(OTHER_SLOW, SIZE_BYTES, session("second"))
    tight.gate.set()
    for _ in range(5):
        tight.thread.order(write(0, session("other")))
        assert isinstance(tight.next_report(), Wrote)
    tight.gates[first.session].set()
    assert tight.completed(2) == [SLOW, OTHER_SLOW]
    assert tight.rows_begun == [first, second]


def test_a_run_that_waits_for_another_lasts(tight: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusewire_server.device.sliced_run.LASTING_NS", 1 << 60)
    tight.device._memory_bytes = 3 * SIZE_BYTES  # two results, and what one of them is computed from
    tight.thread.start()
    first = tight.begin_run(SLOW, SIZE_BYTES)
    tight.run_without_inputs(OTHER_SLOW, SIZE_BYTES, session("second"))
    assert tight.reports.get(timeout=DEADLINE_S) == Lasts(OTHER_SLOW)
    tight.gate.set()
    tight.gates[first.session].set()
    assert tight.completed(2) == [SLOW, OTHER_SLOW]


def test_a_run_that_has_given_way_too_often_is_refused(tight: World) -> None:
    tight.device._memory_bytes = TOO_LITTLE_BYTES
    tight.thread.start()
    great = tight.begin_run(SLOW, 4 * SIZE_BYTES)
    for each in range(MOST_RETREATS - 1):
        small = tight.begin_run(10 + each, SIZE_BYTES)
        tight.begun.clear()
        tight.gates[small.session].set()
        assert tight.completed(1) == [10 + each]
        assert tight.begun.wait(DEADLINE_S)  # the great one again
        tight.thread.order(Release(frozenset([small.session]), tuple(small.outputs)))
    tight.begin_run(20, SIZE_BYTES)
    report = tight.next_report()
    assert isinstance(report, Ran)
    assert [(failed.row, failed.case) for failed in report.failed] == [(great, "out_of_memory")]


def test_a_write_that_finds_no_room_at_all_is_refused(tight: World) -> None:
    tight.device._memory_bytes = tight.device.live_bytes
    tight.thread.order(write(SIZE_BYTES, session("b")))
    tight.thread.start()
    report = tight.next_report()
    assert isinstance(report, Wrote)
    assert report.refusal is not None
