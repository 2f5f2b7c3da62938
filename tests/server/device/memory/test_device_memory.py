"""Who gets the device's memory where there is too little, seen through the device thread."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fusewire_kernels.devices.null import NullDevice
from fusewire_server.device.orders import FailedRow, Ran, Release, RunIsLong, Write, Wrote
from fusewire_server.sessions.session import Row
from tests.server.device_world import DEADLINE_S, FAST, OTHER_SLOW, SLOW, World, write
from tests.server.parts import SIZE_BYTES, session


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """One that is not started, so that a test may first say how much memory there is.

    A run is told to last only if it waits.
    """
    here = World(NullDevice())
    monkeypatch.setattr("fusewire_server.device.unfused.run.Iteration", here.iteration)
    monkeypatch.setattr("fusewire_server.device.unfused.run.LASTING_NS", 1 << 60)
    yield here
    for gate in (here.gate, *here.gates.values()):
        gate.set()
    here.thread.stop(DEADLINE_S)


def written(world: World, size_bytes: int) -> Write:
    """A write of another session, which has found memory."""
    order = write(size_bytes, session("writer"))
    world.thread.order(order)
    assert world.next_report() == Wrote(order, None)
    return order


def failed(world: World) -> tuple[FailedRow, ...]:
    """The failed rows of the next run that ends."""
    report = world.next_report()
    assert isinstance(report, Ran)
    return report.failed


def without_memory(row: Row, op_index: int) -> list[tuple[Row, str, tuple[int, ...]]]:
    return [(row, "out_of_memory", (op_index,))]


def described(rows: tuple[FailedRow, ...]) -> list[tuple[Row, str, tuple[int, ...]]]:
    return [(each.row, each.case, each.ops) for each in rows]


def test_who_finds_no_room_gets_what_waits_to_be_released_and_no_order_needs(tight: World) -> None:
    one, dying = session("a"), tight.value()
    (row,) = tight.run(SLOW, one)
    tight.thread.order(Release(frozenset([one]), (dying, *row.inputs)))
    tight.run(FAST, session("b"))
    tight.device._memory_bytes = tight.device.live_bytes + 2 * SIZE_BYTES  # the result and the temporary of the first
    tight.thread.start()
    assert tight.completed(1) == [FAST]
    assert (dying.block is None, row.inputs[0].block is None) == (True, False)
    tight.gate.set()
    assert tight.completed(1) == [SLOW]
    assert tight.rows_begun == [row]


def test_a_value_takes_free_memory_and_no_run_gives_way(tight: World) -> None:
    tight.device._memory_bytes = 4 * SIZE_BYTES
    tight.thread.start()
    row = tight.begin_run(SLOW, SIZE_BYTES)
    written(tight, 2 * SIZE_BYTES)
    tight.gates[row.session].set()
    assert tight.completed(1) == [SLOW]
    assert tight.rows_begun == [row]


def test_a_run_gives_way_to_values_and_fails_the_op_that_they_leave_no_room(tight: World) -> None:
    tight.device._memory_bytes = 2 * SIZE_BYTES  # the run's result and its temporary
    tight.thread.start()
    row = tight.begin_run(SLOW, SIZE_BYTES)
    written(tight, SIZE_BYTES)
    tight.gates[row.session].set()
    assert described(failed(tight)) == without_memory(row, 0)


def test_no_run_gives_way_to_what_would_find_no_room_even_so(tight: World) -> None:
    tight.device._memory_bytes = 2 * SIZE_BYTES
    tight.thread.start()
    row = tight.begin_run(SLOW, SIZE_BYTES)
    tight.thread.order(write(2 * SIZE_BYTES, session("b")))
    report = tight.next_report()
    assert isinstance(report, Wrote)
    assert report.refusal is not None
    tight.gates[row.session].set()
    assert tight.completed(1) == [SLOW]
    assert tight.rows_begun == [row]


def test_a_run_that_gave_way_begins_again_once_there_is_room(tight: World) -> None:
    tight.device._memory_bytes = 4 * SIZE_BYTES  # two results, and two temporaries
    tight.thread.start()
    first, second = tight.begin_run(SLOW, SIZE_BYTES), tight.begin_run(OTHER_SLOW, SIZE_BYTES)
    value = written(tight, SIZE_BYTES).value
    assert tight.reports.get(timeout=DEADLINE_S) == RunIsLong(OTHER_SLOW)  # as it waits for the temporary of the first
    tight.thread.order(Release(frozenset([session("writer")]), (value,)))
    tight.gates[first.session].set()
    tight.gates[second.session].set()
    assert sorted(tight.completed(2)) == [SLOW, OTHER_SLOW]
    assert tight.rows_begun.count(first) == 1
    assert tight.rows_begun.count(second) > 1


def test_the_youngest_run_gives_way_first(tight: World) -> None:
    tight.device._memory_bytes = 10 * SIZE_BYTES  # results and temporaries of 1 and of 4
    tight.thread.start()
    older = tight.begin_run(SLOW, SIZE_BYTES)
    younger = tight.begin_run(OTHER_SLOW, 4 * SIZE_BYTES)
    value = written(tight, SIZE_BYTES).value
    tight.thread.order(Release(frozenset([session("writer")]), (value,)))
    for row in (older, younger):
        tight.gates[row.session].set()
    assert sorted(tight.completed(2)) == [SLOW, OTHER_SLOW]
    assert tight.rows_begun[:2] == [older, younger]
    assert tight.rows_begun.count(older) == 1
    assert tight.rows_begun.count(younger) > 1


def test_a_run_that_finds_no_memory_waits_for_the_temporaries_of_another_and_begins_again(tight: World) -> None:
    tight.device._memory_bytes = 3 * SIZE_BYTES  # two results, and one temporary
    tight.thread.start()
    first = tight.begin_run(SLOW, SIZE_BYTES)
    second = tight.run_without_inputs(OTHER_SLOW, SIZE_BYTES, session("second"))
    assert tight.reports.get(timeout=DEADLINE_S) == RunIsLong(OTHER_SLOW)
    tight.gate.set()
    for _ in range(5):  # in which the second run has its turns
        written(tight, 0)
    assert tight.rows_begun == [first, second]
    tight.gates[first.session].set()
    assert tight.completed(2) == [SLOW, OTHER_SLOW]
    assert tight.rows_begun == [first, second, second]


def test_a_run_whose_temporaries_never_fit_fails_the_op_and_others_go_on(tight: World) -> None:
    tight.device._memory_bytes = 3 * SIZE_BYTES
    tight.thread.start()
    tight.gate.set()
    row = tight.run_without_inputs(SLOW, 2 * SIZE_BYTES, session("a"))
    assert described(failed(tight)) == without_memory(row, 0)
    assert row.outputs[0].block is None
    other = tight.begin_run(OTHER_SLOW, SIZE_BYTES)
    tight.gates[other.session].set()
    assert tight.completed(1) == [OTHER_SLOW]


def test_no_temporary_outlives_its_run(tight: World) -> None:
    tight.thread.start()
    first, second = tight.begin_run(SLOW, SIZE_BYTES), tight.begin_run(OTHER_SLOW, 2 * SIZE_BYTES)
    assert tight.thread.memory().live_bytes == 6 * SIZE_BYTES
    for row in (first, second):
        tight.gates[row.session].set()
    assert sorted(tight.completed(2)) == [SLOW, OTHER_SLOW]
    assert tight.thread.memory().live_bytes == tight.device.live_bytes == 3 * SIZE_BYTES
    assert tight.thread.memory().peak_bytes == 6 * SIZE_BYTES


def test_a_write_that_finds_no_room_at_all_is_refused(tight: World) -> None:
    tight.device._memory_bytes = tight.device.live_bytes
    tight.thread.order(write(SIZE_BYTES, session("b")))
    tight.thread.start()
    report = tight.next_report()
    assert isinstance(report, Wrote)
    assert report.refusal is not None
