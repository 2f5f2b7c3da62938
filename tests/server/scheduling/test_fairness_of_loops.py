"""A long loop and the rows of others: who waits how long, on a clock that only the device's work advances."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from fusewire_protos.frames import Repetition
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.scheduling.coalescer import MOST_ITERATIONS, UNMEASURED_ROW_NS, Batch, Coalescer
from fusewire_server.sessions.iterations import Iterations
from fusewire_server.sessions.session import Row, Session
from tests.server.parts import addition, chain, entry_of, pair, queued_row, session

SUBMISSION_NS = 5_000_000


class Device:
    """Runs one submission after another. A submission takes the time of its longest row."""

    def __init__(self, iteration_ns: Mapping[ProgramEntry, int]) -> None:
        self.now_ns = 0
        self.longest_ns = 0  # of the submissions
        self.used_ns: defaultdict[str, int] = defaultdict(int)  # each session's share of the submissions
        self.spans: defaultdict[Row, list[range]] = defaultdict(list)  # what has run of each row
        self.ended_at_ns: dict[Row, int] = {}
        self._iteration_ns = iteration_ns
        self._coalescer = Coalescer(most_rows=64, submission_ns=SUBMISSION_NS)

    def queue(self, who: Session, entry: ProgramEntry, iterations: int | None = None) -> Row:
        """Queues a row, which is a loop if it has `iterations`."""
        row = queued_row(who, entry)
        if iterations is not None:
            row.iterations = Iterations(entry.program, Repetition(iterations, 0, ()), [], {})
        self._coalescer.update(who)
        return row

    def run_next(self) -> Batch | None:
        batch = self._coalescer.next_batch(lambda row: "the only lane", lambda entry: 64)
        if batch is None:
            return None
        iterations, most = batch.iterations
        device_ns = most * self._iteration_ns[batch.entry]
        self.now_ns += device_ns
        self.longest_ns = max(self.longest_ns, device_ns)
        row_ns = device_ns // iterations
        for row, span in batch.spans.items():
            self.used_ns[row.session.session_id.decode()] += row_ns * len(span)
            self._note(row, span)
        self._coalescer.settle(batch, row_ns)
        batch.entry.cost.measured(-(-iterations // most), device_ns // most)
        return batch

    def _note(self, row: Row, span: range) -> None:
        self.spans[row].append(span)
        if row.iterations is not None and span.stop < row.iterations.count:
            row.iterations.begun = span.stop
            row.session.queue.appendleft(row)
            self._coalescer.update(row.session)
        else:
            self.ended_at_ns[row] = self.now_ns


def test_a_short_row_waits_for_a_slice_of_a_long_loop_and_never_for_the_loop() -> None:
    loop, short = entry_of(addition()), entry_of(chain())
    device = Device({loop: 100_000, short: 20_000})
    busy, other = session("busy"), session("other")
    device.queue(busy, loop, 10**6)
    device.run_next()
    for _ in range(50):
        came_at_ns = device.now_ns
        device.run_next()  # the slice that runs as the row comes
        row = device.queue(other, short)
        while row not in device.ended_at_ns:
            device.run_next()
        assert device.ended_at_ns[row] - came_at_ns <= 2 * SUBMISSION_NS
    assert device.used_ns["busy"] > 40 * device.used_ns["other"]


def test_a_loop_that_costs_more_than_was_assumed_is_too_long_once() -> None:
    loop = entry_of(addition())
    iteration_ns = 20 * UNMEASURED_ROW_NS
    device = Device({loop: iteration_ns})
    device.queue(session("busy"), loop, 10**6)
    first = device.run_next()
    assert first is not None
    assert first.iterations[0] * iteration_ns > SUBMISSION_NS
    for _ in range(5):
        batch = device.run_next()
        assert batch is not None
        assert batch.iterations[0] * iteration_ns <= SUBMISSION_NS


def test_an_iteration_longer_than_a_submission_goes_alone() -> None:
    loop = entry_of(addition())
    device = Device({loop: 3 * SUBMISSION_NS})
    device.queue(session("busy"), loop, 10_000)
    device.run_next()
    assert [batch.iterations[0] for batch in (device.run_next(), device.run_next()) if batch] == [1, 1]


def test_a_loop_and_many_short_rows_get_equal_time() -> None:
    loop, short = entry_of(addition()), entry_of(chain())
    device = Device({loop: 30_000, short: 200_000})
    busy, other = session("busy"), session("other")
    device.queue(busy, loop, 10**6)
    for _ in range(2000):
        device.queue(other, short)
    while device.now_ns < 50 * SUBMISSION_NS:
        device.run_next()
    assert abs(device.used_ns["busy"] - device.used_ns["other"]) <= 3 * SUBMISSION_NS


def test_short_rows_and_a_loop_of_one_program_get_equal_time() -> None:
    loop = entry_of(addition())
    device = Device({loop: 50_000})
    busy, other = session("busy"), session("other")
    device.queue(busy, loop, 10**6)
    for _ in range(4000):
        device.queue(other, loop)
    while device.now_ns < 20 * SUBMISSION_NS:
        device.run_next()
    assert abs(device.used_ns["busy"] - device.used_ns["other"]) <= 3 * SUBMISSION_NS


def test_a_loop_that_has_joined_others_does_not_wait_for_all_that_it_got() -> None:
    short_loop, long_loop = entry_of(addition()), entry_of(chain())
    device = Device({short_loop: 50_000, long_loop: 50_000})
    busy, other = session("busy"), session("other")
    device.queue(busy, short_loop, 10**6)
    for _ in range(1000):
        device.queue(other, short_loop)
        device.run_next()
    device.queue(other, long_loop, 10**6)
    waited_ns = 0
    while waited_ns <= 4 * SUBMISSION_NS:
        began_ns, batch = device.now_ns, device.run_next()
        assert batch is not None
        if busy in [row.session for row in batch.spans]:
            return
        waited_ns += device.now_ns - began_ns
    raise AssertionError(f"waited for {waited_ns} ns")


def test_a_newcomer_joins_the_next_slice_of_a_loop_of_the_same_program() -> None:
    loop = entry_of(addition())
    device = Device({loop: 50_000})
    long = device.queue(session("a"), loop, 10_000)
    for _ in range(3):
        device.run_next()
    short = device.queue(session("b"), loop, 7)
    batch = device.run_next()
    assert batch is not None
    assert batch.spans.keys() == {long, short}
    assert batch.spans[short] == range(7)
    assert batch.spans[long].start > 0
    batch = device.run_next()
    assert batch is not None
    assert [*batch.spans] == [long]


arrivals = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(0, 2), st.sampled_from([None, 1, 2, 30, 1000, 3 * MOST_ITERATIONS])),
    min_size=1,
    max_size=20,
)


@given(arrivals, st.lists(st.sampled_from([2_000, 40_000, 900_000]), min_size=3, max_size=3), st.integers(1, 5))
def test_each_iteration_runs_once_and_in_order_and_nobody_waits_for_more_than_slices(
    came: list[tuple[str, int, int | None]], costs_ns: list[int], between: int
) -> None:
    entries = [entry_of(chain()), entry_of(addition()), entry_of(pair())]
    device = Device(dict(zip(entries, costs_ns, strict=True)))
    sessions = {name: session(name) for name in "abcd"}
    rows: dict[str, list[Row]] = defaultdict(list)
    for number, (name, program, iterations) in enumerate(came):
        rows[name].append(device.queue(sessions[name], entries[program], iterations))
        if number % between == 0:
            device.run_next()
    served_at_ns = dict.fromkeys(sessions, device.now_ns)
    while (batch := device.run_next()) is not None:
        served = {row.session.session_id.decode() for row in batch.spans}
        for name, one in sessions.items():
            if name in served or not one.queue:
                served_at_ns[name] = device.now_ns
            assert device.now_ns - served_at_ns[name] <= 2 * len(sessions) * device.longest_ns
    for queued in rows.values():
        assert sorted(queued, key=lambda row: device.ended_at_ns[row]) == queued
        for row in queued:
            ran = [number for span in device.spans[row] for number in span]
            assert ran == [*range(1 if row.iterations is None else row.iterations.count)]
