"""The host memory of sessions: estimated near what it is, and refused beyond the limit of their tenant."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from fusewire_kernels.devices.cpu import CpuDevice
from fusewire_protos.errors import CaseError
from fusewire_protos.frames import Cancel, Entry, Fetch, Free, Segment, decode_entries, encode_entries
from fusewire_protos.programs.program import build
from fusewire_server.config.settings import MIB
from fusewire_server.programs.claim import Claim, claim_of_program
from fusewire_server.programs.program_table import ROW_BYTES
from fusewire_server.sessions import host_bytes
from fusewire_server.sessions.entries import fetch
from fusewire_server.sessions.host_bytes import FAILED_RANGE_BYTES, VALUE_BYTES, TenantBytes, own_bytes
from fusewire_server.sessions.session import Session
from fusewire_server.sessions.values import make_ready, pack
from tests.segments import loop_of
from tests.server.parts import VECTOR, chain, new, op, segment, upload
from tests.server.sessions.test_hostile_loops import BASE, COUNT, STEP, X, loop, opened
from tests.server.tables import NEGATE, World, answers, failure

MANY, WITHIN = 2000, 1.6  # times more or less than measured
FEW = 10
ONE_INPUT, MANY_INPUTS = 30, 31  # numbers of programs without live results
BLOCK_BYTES = 64  # of the device, for each value


def held_by(*sessions: Session, limit_bytes: int) -> TenantBytes:
    tenant = TenantBytes(limit_bytes)
    for each in sessions:
        tenant.add(each)
        tenant.count(each)
    return tenant


def measured(fill: Callable[[], None]) -> int:
    gc.collect()
    tracemalloc.start()
    fill()
    gc.collect()
    taken_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return taken_bytes


def values(world: World, one: Session) -> None:
    device = CpuDevice(arena_bytes=MIB, memory_bytes=MIB, find=lambda: None)
    for number in range(MANY // 1000):
        world.take(one, loop(1000, base=10**6 * (number + 1), kept=(0, 1000)))
        one.complete(one.in_flight)
    for value in one.values.values():
        value.block = device.allocate(value.size_bytes)


def packed_values(world: World, one: Session) -> None:
    values(world, one)
    one.queue.clear()
    for value in [*one.values.values()]:
        make_ready(value, [])
        pack(one, value)
    one.values.clear()


def queue(world: World, one: Session, *entries: Entry) -> None:
    """Queues rows of programs without live results, as they come on the wire."""
    for entry in decode_entries(encode_entries(entries)):
        world.take(one, entry)
        one.completed = one.admitted  # so that there is credit; the rows stay


def rows_of_few_inputs(world: World, one: Session) -> None:
    queue(world, one, *[segment(ONE_INPUT, 10**6 + number, X) for number in range(MANY)])


def rows_of_many_inputs(world: World, one: Session) -> None:
    queue(world, one, *[segment(MANY_INPUTS, 10**6 + number, *[X] * MANY) for number in range(FEW)])


def loops_of_few_steps(world: World, one: Session) -> None:
    queue(world, one, *[loop_of(segment(ONE_INPUT, 10**6 + 10 * number, X), 4, 1, ()) for number in range(MANY)])


def loops_of_many_steps(world: World, one: Session) -> None:
    for number in range(FEW):
        first = segment(ONE_INPUT, 10**6 + 5000 * number, X)
        queue(world, one, loop_of(first, MANY, 1, (), inputs=((0, (X, STEP) * (MANY // 2)),)))


def failed_segments(world: World, one: Session) -> None:
    world.take(one, *[segment(NEGATE, 10**6 + number, 999) for number in range(MANY)])


def freed_handles(world: World, one: Session) -> None:
    for number in range(1, MANY // 1000 + 1):
        entry = loop(1000, base=10**6 * number, kept=(0, 1000))
        world.take(one, entry._replace(inputs=(COUNT, X, 999)))
        world.take(one, Free(tuple(10**6 * number + 1 + 2 * iteration for iteration in range(999))))


def answered_fetches(world: World, one: Session) -> None:
    world.take(one, *[Fetch(number, 999) for number in range(MANY)])


def waiting_fetches(world: World, one: Session) -> None:
    world.take(one, *[Fetch(number, BASE + 1 + 2 * (number % 1000)) for number in range(MANY)])


@pytest.mark.parametrize(
    "fill",
    [
        values,
        packed_values,
        rows_of_few_inputs,
        rows_of_many_inputs,
        loops_of_few_steps,
        loops_of_many_steps,
        failed_segments,
        freed_handles,
        answered_fetches,
        waiting_fetches,
    ],
)
def test_what_a_session_holds_is_estimated_near_what_it_is(fill: Callable[[World, Session], None]) -> None:
    world, one = opened()
    negatives = [op("negative", number) for number in range(MANY)]
    world.take(one, new(ONE_INPUT, chain(live=[])), new(MANY_INPUTS, build([VECTOR] * MANY, [], negatives, [])))
    if fill is waiting_fetches:
        world.take(one, loop(1000, kept=(0, 1000)))
    before_bytes = own_bytes(one)
    taken_bytes = measured(lambda: fill(world, one))
    if fill in {values, packed_values}:
        taken_bytes -= MANY * BLOCK_BYTES
    assert taken_bytes / WITHIN < own_bytes(one) - before_bytes < taken_bytes * WITHIN


def test_a_rejected_program_is_estimated_near_what_it_takes() -> None:
    program = chain(("negative",) * 8000, range(8000))
    claims: list[Claim] = []
    taken_bytes = measured(lambda: claims.append(claim_of_program(program)))
    assert taken_bytes / 4 < claims[0].size_bytes < taken_bytes * 4


def test_results_and_uploads_beyond_the_limit_fail_and_name_it() -> None:
    world = World()
    one = world.session()
    one.uploading_bytes = 2 * host_bytes.FREE_BYTES
    tenant = held_by(one, limit_bytes=own_bytes(one) + VALUE_BYTES)
    world.take(one, *[segment(NEGATE, 100 + number, 10) for number in range(2)], upload(102))
    assert 100 in one.values
    assert [failure(one, handle).case.name for handle in (101, 102)] == ["quota_host_bytes"] * 2
    assert f"limits.tenant_host_bytes = {tenant.limit_bytes}" in failure(one, 101).text


def test_room_that_is_freed_by_another_session_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_bytes, "FREE_BYTES", 0)
    world = World()
    one, other = world.session("a"), world.session("b")
    held_by(one, other, limit_bytes=own_bytes(one) + own_bytes(other))
    world.take(other, Free((10, 11)))
    world.take(one, segment(NEGATE, 100, 10))
    assert 100 in one.values


def test_a_session_of_few_values_goes_on_beside_one_that_holds_all() -> None:
    world = World()
    one, other = world.session("a"), world.session("b")
    other.uploading_bytes = 1 << 30
    held_by(one, other, limit_bytes=1 << 30)
    world.take(one, segment(NEGATE, 100, 10), segment(NEGATE, 101, 999), Fetch(1, 101))
    assert 100 in one.values
    assert answers(one)[1][0] == "unknown_handle"


def test_few_failures_are_kept_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_bytes, "FREE_BYTES", FAILED_RANGE_BYTES)
    world = World()
    one = world.session()
    held_by(one, limit_bytes=own_bytes(one))
    world.take(one, segment(NEGATE, 100, 999), segment(NEGATE, 101, 999))
    assert (100 in one.failed, 101 in one.failed) == (True, False)


def test_freed_handles_beyond_the_limit_make_the_session_forget_its_failures() -> None:
    world, one = opened()
    freed = host_bytes.FREE_BYTES // host_bytes.FREED_BYTES + 1000
    held_by(one, limit_bytes=own_bytes(one))
    world.take(one, *[_failing(number) for number in range(freed // 999 + 1)])
    assert one.failed.count
    for number in range(freed // 999 + 1):
        world.take(one, Free(tuple(10**6 * (number + 1) + 1 + 2 * iteration for iteration in range(999))))
    assert one.failed.freed * host_bytes.FREED_BYTES <= host_bytes.FREE_BYTES


def _failing(number: int) -> Segment:
    entry = loop(1000, base=10**6 * (number + 1), kept=(0, 1000))
    return entry._replace(inputs=(COUNT, X, 999))


def test_many_fetches_beyond_the_limit_end_their_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_bytes, "FREE_BYTES", 0)
    world = World()
    one = world.session()
    tenant = held_by(one, limit_bytes=own_bytes(one))
    with pytest.raises(CaseError, match=rf"slow_reader.*limits.tenant_host_bytes = {tenant.limit_bytes}"):
        world.take(one, *[Fetch(number, 999) for number in range(fetch.COUNTED_FETCHES)])


def test_programs_beyond_the_limit_are_rejected_and_those_of_the_tenant_count_once() -> None:
    world = World()
    one = world.session()
    before_bytes = one.tenant_bytes.program_bytes
    world.take(one, new(9, chain(("exp",))), new(10, chain(("exp",))))
    added_bytes = one.tenant_bytes.program_bytes - before_bytes
    assert added_bytes == one.programs[9].size_bytes
    one.uploading_bytes = 1 << 30
    held_by(one, limit_bytes=1 << 30)
    effects = world.take(one, new(11, chain(("tanh",))))
    assert [each.case.name for each in effects.failures] == ["quota_host_bytes"]


def test_a_row_counts_until_it_is_completed_or_given_up() -> None:
    world = World()
    one = world.session()
    before_bytes = own_bytes(one)
    world.take(one, segment(NEGATE, 100, 10), segment(NEGATE, 101, 10))
    counted_bytes = own_bytes(one) - before_bytes
    assert counted_bytes > 2 * (VALUE_BYTES + ROW_BYTES)
    one.end_row(one.queue.popleft())
    world.take(one, Cancel(), Free((100,)))
    assert one.rows_bytes == 0
