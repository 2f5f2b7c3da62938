"""Who goes next: grouped by program, one row a session, fair by device time."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fusewire_kernels.devices.null import NullDevice
from fusewire_kernels.plan.plan import Cost
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.scheduling.coalescer import UNMEASURED_ROW_NS, Batch, BatchEnd, Coalescer
from fusewire_server.sessions.session import Row, Session
from tests.server.parts import addition, chain, entry_of, pair, queued_row, session
from tests.server.world import planned

SHORT, LONG, OTHER = entry_of(chain()), entry_of(addition()), entry_of(pair())
LANE = "the only one"


def coalescer(*, most_rows: int = 64, submission_ns: int = 10**12) -> Coalescer:
    return Coalescer(most_rows=most_rows, submission_ns=submission_ns)


def load(one: Coalescer, who: Session, *entries: ProgramEntry) -> None:
    for entry in entries:
        queued_row(who, entry)
    one.update(who)


def take(one: Coalescer, can_run: Callable[[ProgramEntry], bool] = lambda entry: True, fit: int = 1000) -> Batch:
    batch = one.next_batch(lambda row: LANE if can_run(row.entry) else None, lambda entry: fit)
    assert batch is not None
    return batch


def names(batch: Batch) -> list[str]:
    return sorted(row.session.session_id.decode() for row in batch.spans)


def served(one: Coalescer, cost_ns: dict[ProgramEntry, int], submissions: int) -> Counter[str]:
    """Device time by session when each submission takes what its program costs."""
    used: Counter[str] = Counter()
    for _ in range(submissions):
        batch = take(one)
        one.settle(batch, cost_ns[batch.entry])
        for row in batch.spans:
            used[row.session.session_id.decode()] += cost_ns[batch.entry]
    return used


def test_nothing_to_do_is_no_batch() -> None:
    assert coalescer().next_batch(lambda row: LANE, lambda entry: 1) is None


def test_equal_heads_of_different_sessions_are_rows_of_one_batch() -> None:
    one = coalescer()
    for name in "abcdefgh":
        load(one, session(name), SHORT, SHORT)
    batch = take(one)
    assert (names(batch), batch.entry) == (list("abcdefgh"), SHORT)
    assert names(take(one)) == list("abcdefgh")
    assert one.next_batch(lambda row: LANE, lambda entry: 1) is None


def test_a_batch_tells_the_sessions_that_were_ready_with_its_program_in_any_lane() -> None:
    one = coalescer()
    for name in "abcd":
        load(one, session(name), SHORT)
    load(one, session("e"), LONG)
    batch = one.next_batch(lambda row: row.session.session_id == b"d", lambda entry: 1000)
    assert batch is not None
    assert (names(batch), batch.ready_sessions) == (list("abc"), 4)


def test_a_batch_that_a_limit_made_smaller_tells_no_ready_sessions() -> None:
    one = coalescer(most_rows=3)
    for name in "abcd":
        load(one, session(name), SHORT)
    assert (take(one).ready_sessions, take(one).ready_sessions) == (0, 1)


def test_grouping_is_by_program_and_not_by_order_of_arrival() -> None:
    one = coalescer()
    for index, name in enumerate("abcdef"):
        load(one, session(name), LONG if index % 2 else SHORT)
    assert [names(take(one)), names(take(one))] == [list("ace"), list("bdf")]


def test_a_session_adds_one_row_and_its_order_is_kept() -> None:
    one, who = coalescer(), session()
    load(one, who, SHORT, SHORT, LONG)
    assert [take(one).entry for _ in range(3)] == [SHORT, SHORT, LONG]


def test_rows_are_bounded_by_the_setting_the_memory_and_the_time_of_a_submission() -> None:
    for one, fit, limit in (
        (coalescer(most_rows=3), 1000, BatchEnd.ROWS),
        (coalescer(), 3, BatchEnd.MEMORY),
        (coalescer(submission_ns=3 * UNMEASURED_ROW_NS), 9, BatchEnd.TIME),
    ):
        for name in "abcdef":
            load(one, session(name), SHORT)
        first, second = take(one, fit=fit), take(one, fit=fit)
        assert [(len(each.spans), each.ended_by) for each in (first, second)] == [(3, limit), (3, BatchEnd.EVERYBODY)]


def test_a_batch_tells_why_it_has_no_more_rows() -> None:
    one = coalescer()
    load(one, session("a"), SHORT)
    assert take(one).ended_by is BatchEnd.ALONE
    for name in "abc":
        load(one, session(name), SHORT)
    batch = one.next_batch(lambda row: row.session.session_id == b"c", lambda entry: 1000)
    assert batch is not None
    assert batch.ended_by is BatchEnd.LANE


def test_rows_of_a_plan_that_has_not_run_are_bounded_by_what_it_is_estimated_to_take() -> None:
    entry, second_ns = entry_of(chain()), 10**9
    plan = planned(entry.raw).plan
    operations = second_ns * Cost(10**9, 0).operations // Cost(10**9, 0).estimate_ns
    entry.loaded = NullDevice().load(replace(plan, cost=Cost(operations, 0)), ())
    one = coalescer(submission_ns=3 * second_ns)
    for name in "abcdef":
        load(one, session(name), entry)
    assert len(take(one).spans) == 3


def test_a_row_longer_than_a_submission_goes_alone() -> None:
    one = coalescer(submission_ns=1)
    for name in "ab":
        load(one, session(name), SHORT)
    assert len(take(one).spans) == 1


def test_a_session_whose_head_cannot_run_yet_blocks_nobody() -> None:
    one = coalescer()
    load(one, session("a"), LONG, SHORT)
    load(one, session("b"), SHORT)
    assert names(take(one, lambda entry: entry is SHORT)) == ["b"]
    assert one.next_batch(lambda row: LANE if row.entry is SHORT else None, lambda entry: 1) is None
    assert names(take(one)) == ["a"]


def test_a_session_that_gave_up_its_rows_is_passed_over() -> None:
    one, who = coalescer(), session("a")
    load(one, who, SHORT)
    load(one, session("b"), SHORT)
    who.queue.clear()
    one.update(who)
    assert names(take(one)) == ["b"]


def test_a_session_that_has_ended_is_passed_over() -> None:
    one, who = coalescer(), session("a")
    load(one, who, SHORT)
    one.remove(who)
    one.remove(who)
    assert one.next_batch(lambda row: LANE, lambda entry: 1) is None


def test_sessions_of_a_tenant_share_its_time_equally_whatever_their_rows_cost() -> None:
    one = coalescer()
    load(one, session("aggressor"), *[LONG] * 1000)
    load(one, session("modest"), *[SHORT] * 1000)
    used = served(one, {LONG: 1_000_000, SHORT: 10_000}, 600)
    assert abs(used["aggressor"] - used["modest"]) <= 1_000_000


def test_tenants_share_equally_however_many_sessions_they_open() -> None:
    one = coalescer(most_rows=1)
    for index in range(9):
        load(one, session(f"many{index}", tenant="many"), *[LONG] * 100)
    load(one, session("single", tenant="single"), *[LONG] * 100)
    used = served(one, {LONG: 100_000}, 100)
    assert used["single"] == 50 * 100_000


def test_idling_earns_nothing() -> None:
    one = coalescer()
    late = session("late")
    load(one, session("early"), *[LONG] * 1000)
    served(one, {LONG: 100_000}, 100)
    load(one, late, *[SHORT] * 1000)
    used = served(one, {LONG: 100_000, SHORT: 100_000}, 100)
    assert abs(used["early"] - used["late"]) <= 100_000


def test_idling_earns_nothing_when_all_were_idle() -> None:
    one = coalescer()
    early = session("early")
    load(one, early, *[LONG] * 100)
    served(one, {LONG: 100_000}, 100)
    load(one, session("late"), *[SHORT] * 1000)
    served(one, {SHORT: 100_000}, 2)
    load(one, early, *[LONG] * 1000)
    used = served(one, {LONG: 100_000, SHORT: 100_000}, 100)
    assert abs(used["early"] - used["late"]) <= 200_000


def test_what_a_session_uses_beside_its_rows_counts() -> None:
    one, cost_ns = coalescer(), {SHORT: 1_000_000, LONG: 1_000_000}
    reader = session("a")
    load(one, reader, *[SHORT] * 20)
    load(one, session("b"), *[LONG] * 20)
    served(one, cost_ns, 2)
    one.charge(reader, 5_000_000)
    assert served(one, cost_ns, 5) == {"b": 5_000_000}


def test_a_new_session_starts_level_with_those_of_its_own_tenant() -> None:
    one = coalescer()
    load(one, session("rich", tenant="rich"), *[LONG] * 1000)
    served(one, {LONG: 1_000_000}, 100)
    load(one, session("old", tenant="poor"), *[SHORT] * 1000)
    served(one, {LONG: 1_000_000, SHORT: 100_000}, 20)
    load(one, session("new", tenant="poor"), *[SHORT] * 1000)
    used = served(one, {LONG: 1_000_000, SHORT: 100_000}, 200)
    assert abs(used["old"] - used["new"]) <= 200_000


def test_settling_replaces_the_estimate_and_a_refund_takes_it_back() -> None:
    one = coalescer(most_rows=1)
    load(one, session("a"), *[SHORT] * 9)
    load(one, session("b"), *[SHORT] * 9)
    first = take(one)
    one.settle(first, 0)
    assert names(take(one)) == names(first)
    second = take(one)
    one.refund(second, second.spans)
    assert names(take(one)) == names(second)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=60), st.integers(1, 4))
def test_every_row_goes_out_once_in_its_sessions_order(arrivals: list[tuple[int, int]], most_rows: int) -> None:
    entries = [SHORT, LONG, entry_of(chain(("abs",)))]
    sessions = [session(str(index), tenant=str(index % 2)) for index in range(6)]
    one = coalescer(most_rows=most_rows)
    waiting: dict[Session, list[object]] = {who: [] for who in sessions}
    for index, program in arrivals:
        waiting[sessions[index]].append(queued_row(sessions[index], entries[program]))
        one.update(sessions[index])
    while (batch := one.next_batch(lambda row: LANE, lambda entry: most_rows)) is not None:
        assert 1 <= len(batch.spans) <= most_rows
        assert len({row.session for row in batch.spans}) == len(batch.spans)
        assert all(row.entry is batch.entry and waiting[row.session].pop(0) is row for row in batch.spans)
    assert not any(waiting.values())


def test_who_has_joined_submissions_of_others_waits_a_second_at_most() -> None:
    one, cost_ns = coalescer(), {SHORT: 10**8, LONG: 10**8, OTHER: 10**8}
    alone, many = session("a", tenant="A"), [session(name, tenant="B") for name in "bcdefghi"]
    for who in (alone, *many):
        load(one, who, *[SHORT] * 100)
    served(one, cost_ns, 100)
    load(one, alone, *[LONG] * 100)
    for who in many:
        load(one, who, OTHER)
    used = served(one, cost_ns, 12)
    assert used["a"] <= 1.1e9
    assert used["b"] == 1e8


def test_who_was_chosen_leads_by_all_the_time_that_it_took() -> None:
    one, cost_ns = coalescer(), {SHORT: 10**8, LONG: 5 * 10**9}
    load(one, session("a", tenant="A"), LONG)
    load(one, session("b", tenant="B"), *[SHORT] * 100)
    used = served(one, cost_ns, 2)
    assert used == {"a": 5e9, "b": 1e8}
    load(one, session("a", tenant="A"), LONG)
    assert served(one, cost_ns, 40)["a"] == 0


def test_the_advance_charge_of_a_row_that_does_not_run_is_taken_back_in_full() -> None:
    one, entry = coalescer(), entry_of(chain())
    entry.cost.measured(1, 3 * 10**9)
    for name in "ab":
        load(one, session(name, tenant=name), entry)
    batch = take(one)
    one.refund(batch, batch.spans)
    assert one._accounts._tenants.used_ns == {"a": 0, "b": 0}


def test_rows_of_one_submission_go_to_one_lane() -> None:
    one = coalescer()
    for name in "abcd":
        load(one, session(name), SHORT)

    def lane_of(row: Row) -> str:
        return "slow" if row.session.session_id in b"bd" else "fast"

    batches = [one.next_batch(lane_of, lambda entry: 1000) for _ in range(2)]
    assert [names(batch) for batch in batches if batch is not None] == [["a", "c"], ["b", "d"]]
