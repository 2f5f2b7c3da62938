"""By which lane a row may follow what is with the device, in plain tables."""

from __future__ import annotations

from fusewire_kernels.devices.null import NullDevice
from fusewire_protos.programs.codec import encode
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.scheduling.coalescer import Batch
from fusewire_server.scheduling.lanes import MOST_OUTSTANDING, Lane, Lanes
from fusewire_server.sessions.session import Row
from tests.server.parts import chain, entry_of, queued_row, session, whole
from tests.server.world import planned


def planned_entry() -> ProgramEntry:
    """A program with its plan."""
    program = chain()
    entry = entry_of(program)
    entry.loaded = NullDevice().load(planned(encode(program)).plan, ())
    return entry


def tell(lanes: Lanes, *rows: Row) -> int:
    return lanes.tell(Batch(rows[0].entry, whole(*rows), 0), rows[0].entry.loaded)


def test_the_fast_lane_has_room_until_enough_is_outstanding() -> None:
    lanes, entry = Lanes(), planned_entry()
    numbers = [tell(lanes, queued_row(session(str(index)), entry)) for index in range(MOST_OUTSTANDING)]
    other = queued_row(session("other"), entry)
    assert (lanes.has_room, lanes.open_to(other)) == (False, None)
    lanes.complete(numbers[0])
    assert (lanes.has_room, lanes.open_to(other)) == (True, Lane.FAST)


def test_submissions_op_by_op_leave_the_fast_lane_free() -> None:
    lanes, entry = Lanes(), entry_of(chain())
    for index in range(MOST_OUTSTANDING):
        tell(lanes, queued_row(session(str(index)), entry))
    assert lanes.open_to(queued_row(session("slow"), entry)) is None
    assert lanes.open_to(queued_row(session("fast"), planned_entry())) is Lane.FAST


def test_what_follows_a_slow_row_of_its_session_goes_with_those_that_wait_for_the_same() -> None:
    lanes, slow, fast = Lanes(), entry_of(chain()), planned_entry()
    one, two, other = session("one"), session("two"), session("other")
    number = tell(lanes, queued_row(one, slow), queued_row(two, slow))
    places = [lanes.open_to(queued_row(each, fast)) for each in (one, two, other)]
    assert places == [number, number, Lane.FAST]
    lanes.complete(number)
    assert lanes.open_to(queued_row(one, fast)) is Lane.FAST


def test_one_that_lasts_gives_its_place_to_others_and_its_session_waits() -> None:
    lanes, slow = Lanes(), entry_of(chain())
    sessions = [session(str(index)) for index in range(MOST_OUTSTANDING)]
    number, *_ = [tell(lanes, queued_row(each, slow)) for each in sessions]
    other = queued_row(session("other"), slow)
    assert lanes.open_to(other) is None
    lanes.mark_lasting(number)
    assert lanes.open_to(other) is Lane.SLOW
    assert lanes.open_to(queued_row(sessions[0], planned_entry())) is None
    assert lanes.complete(number).lane is Lane.LASTING
    assert lanes.open_to(queued_row(sessions[0], planned_entry())) is Lane.FAST


def test_a_session_waits_for_the_large_values_it_reads() -> None:
    lanes, one = Lanes(), session()
    row = queued_row(one, planned_entry())
    lanes.begin_large_read(one)
    lanes.begin_large_read(one)
    lanes.end_large_read(one)
    assert lanes.open_to(row) is None
    lanes.end_large_read(one)
    assert lanes.open_to(row) is Lane.FAST


def test_a_submission_that_is_over_is_told_as_it_was() -> None:
    lanes, entry = Lanes(), planned_entry()
    row = queued_row(session(), entry)
    completed = lanes.complete(tell(lanes, row))
    assert ([*completed.batch.spans], completed.loaded, completed.lane) == ([row], entry.loaded, Lane.FAST)
