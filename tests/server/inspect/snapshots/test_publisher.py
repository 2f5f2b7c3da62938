"""What the engine's tables look like once published."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fusewire_kernels.devices.base import BlockCount, LaunchCounts
from fusewire_kernels.devices.null import NullPlan
from fusewire_kernels.plan.plan import PersistentLaunch, Plan
from fusewire_protos.frames import Cancel, Fetch
from fusewire_server.engine.outcome import outcome_of
from fusewire_server.figures import read
from fusewire_server.inspect.requests.refusals import RefusalCounts
from fusewire_server.inspect.snapshots.details import BlockView, details_of
from fusewire_server.inspect.snapshots.program_view import Launching, ProgramDetail
from fusewire_server.inspect.snapshots.publisher import Publisher
from fusewire_server.inspect.snapshots.stats import Queue, SessionBytes
from fusewire_server.inspect.snapshots.totals import SessionTotals
from fusewire_server.inspect.views import PoolView, QueueView
from fusewire_server.programs.counters import GOODBYE, TOKEN_DOOR
from fusewire_server.programs.program_table import TableBounds
from tests.segments import loop_of
from tests.server.parts import SIZE_BYTES, segment, upload_beside
from tests.server.world import (
    DATA,
    DEADLINE_S,
    NEGATE,
    PROGRAMS,
    Client,
    InstantPlanner,
    WatchedDevice,
    World,
    lack_exp,
    load,
    run,
    until,
    world,
)

PERSISTENT = PersistentLaunch(
    kernel=0,
    sizes=(),
    operands=(),
    outputs=1,
    carried=(),
    fixed=(),
    blocks=1,
    threads=32,
    shared_bytes=0,
    clusters=1,
    most_in_turn=0,
)


class CountingDevice(WatchedDevice):
    """Tells of its blocks in use, and of three free ones."""

    def block_counts(self) -> list[BlockCount]:
        return [BlockCount(SIZE_BYTES, 3, len(self.in_use))]


def shown(publisher: Publisher, client: Client) -> ProgramDetail:
    """The negation, as the newest snapshot shows it."""
    publisher.publish()
    digest = client.session.programs[NEGATE].digest.hex()
    (detail,) = [detail for detail in publisher.snapshot.programs if detail.program.digest == digest]
    return detail


def publisher_of(here: World) -> Publisher:
    return Publisher(here.engine, "1.2.3")


def test_a_session_is_shown_with_what_it_holds_and_not_with_its_id() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            await client.idle()
            (view,) = publisher_of(here).snapshot.sessions
            assert (view.tenant, view.client, view.live_handles, view.state) == ("lab", "a", 2, "open")
            assert view.live_bytes == client.session.live_bytes > 0
            assert view.session != client.session.session_id.hex()

    run(test())


def test_the_kernels_that_rows_wait_for_are_shown_and_which_session_waits() -> None:
    async def test() -> None:
        async with world(planner=InstantPlanner(withholds=True)) as here:
            one, _ = here.client("a"), here.client("b")
            publisher = publisher_of(here)
            await lack_exp(here, one)
            snapshot = publisher.publish()
            assert (snapshot.stats.kernel_waits.kernels, snapshot.stats.kernel_waits.sessions) == (1, 1)
            assert {view.client: view.waits_for for view in snapshot.sessions} == {"a": ("exp",), "b": ()}

    run(test())


def test_waiting_rows_are_told_by_tenant_and_program() -> None:
    async def test() -> None:
        async with world() as here:
            client, publisher = here.client(), publisher_of(here)
            await client.idle()
            here.engine.hold()
            client.send(segment(NEGATE, 100, 10), segment(NEGATE, 200, 10))
            await outcome_of(here.engine.unapplied(client.session))
            received = read(QueueView, publisher.publish())
            assert (received.rows, received.is_held) == (2, True)
            assert [(one.tenant, one.rows) for one in received.tenants] == [("lab", 2)]
            digest = client.session.programs[NEGATE].digest.hex()
            assert [(one.digest, one.sessions) for one in received.programs] == [(digest, 1)]
            here.engine.unhold()
            await client.idle()
            assert read(QueueView, publisher.publish()).rows == 0

    run(test())


def test_the_pool_is_that_of_the_device() -> None:
    async def test() -> None:
        async with world(CountingDevice()) as here:
            here.client()
            await until(lambda: len(here.device.in_use) == 2)
            received = read(PoolView, publisher_of(here).snapshot)
            assert received.device_memory_bytes == here.engine.device.info.memory_bytes
            assert received.live_bytes == received.peak_bytes == 2 * SIZE_BYTES
            assert received.free_bytes == received.device_memory_bytes - received.live_bytes
            assert details_of(here.engine).blocks == (BlockView(size_bytes=SIZE_BYTES, free=3, live=2),)

    run(test())


def test_the_process_and_what_was_coalesced_are_shown() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.send(segment(NEGATE, 50, 10))
            await client.idle()
            stats = publisher_of(here).snapshot.stats
            coalescing = stats.totals.coalescing
            assert coalescing.submissions == coalescing.rows == coalescing.ready_sessions > 0
            assert stats.process.tasks is not None
            assert stats.process.tasks > 0
            assert stats.process.threads is not None
            assert stats.process.threads > 1

    run(test())


def test_what_the_process_uses_is_read_again_once_the_server_has_started() -> None:
    async def test() -> None:
        async with world() as here:
            publisher = publisher_of(here)
            before = publisher.snapshot.stats.process.tasks
            tasks = [asyncio.create_task(asyncio.sleep(0)) for _ in range(3)]
            assert publisher.publish().stats.process.tasks == (before or 0) + len(tasks)
            await asyncio.gather(*tasks)

    run(test())


def test_a_loop_waits_since_its_last_slice() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.send(loop_of(segment(NEGATE, 100, 10), 2_000, 1, (1,)))
            queue = here.engine.counters.queue
            await until(lambda: queue.count > 1)
            here.engine.hold()
            await until(lambda: not here.engine.outstanding_submissions)
            (row,) = client.session.queue
            assert queue.total_ns == row.waits_since_ns - row.queued_at_ns
            here.engine.unhold()
            await client.idle()

    run(test())


def test_a_program_is_shown_with_its_uses_and_then_with_its_plan() -> None:
    async def test() -> None:
        async with world(planner=InstantPlanner()) as here:
            client = here.client()
            publisher = publisher_of(here)
            before = shown(publisher, client)
            assert (before.program.tier, before.program.hits, before.compiled) == (0, 0, None)
            await load(here, client)
            after = shown(publisher, client)
            assert (after.program.tier, after.program.form, after.program.hits, after.program.state) == (
                1,
                "launches",
                1,
                "loaded",
            )
            assert after.compiled is not None
            assert after.compiled.groups[0].instances == 1
            assert after.compiled.sources[0].text

    run(test())


class GraphDevice(WatchedDevice):
    """Keeps three of the five graphs that it has captured of each plan."""

    def load(self, plan: Plan, binaries: Sequence[str]) -> NullPlan:
        return replace(super().load(plan, binaries), launch_counts=LaunchCounts(0, 3, 5, 2), why_no_graph="")


def test_a_program_tells_of_its_captured_graphs() -> None:
    async def test() -> None:
        async with world(GraphDevice(), InstantPlanner()) as here:
            client = here.client()
            await load(here, client)
            program = shown(publisher_of(here), client).program
            assert (program.tier, program.form, program.why_no_graph) == (2, "graphs", "")
            assert program.launching == Launching(0, 3, 5, 2)

    run(test())


def test_a_program_tells_why_it_has_no_graph() -> None:
    async def test() -> None:
        async with world(planner=InstantPlanner()) as here:
            client = here.client()
            await load(here, client)
            assert shown(publisher_of(here), client).program.why_no_graph == "nothing is launched"

    run(test())


class LoopDevice(WatchedDevice):
    """Loads plans of which each has a persistent kernel, and says how it has launched them."""

    def __init__(self, launch_counts: LaunchCounts) -> None:
        super().__init__()
        self._launch_counts = launch_counts

    def load(self, plan: Plan, binaries: Sequence[str]) -> NullPlan:
        loaded = super().load(replace(plan, persistent=PERSISTENT), binaries)
        return replace(loaded, launch_counts=self._launch_counts, why_not_persistent="2 iterations")


@pytest.mark.parametrize(
    ("launch_counts", "form"),
    [(LaunchCounts(), "launches"), (LaunchCounts(0, 3, 3, 0), "graphs"), (LaunchCounts(1, 3, 3, 0), "persistent")],
)
def test_a_loop_is_persistent_once_its_persistent_kernel_has_run(launch_counts: LaunchCounts, form: str) -> None:
    async def test() -> None:
        async with world(LoopDevice(launch_counts), InstantPlanner()) as here:
            client = here.client()
            await load(here, client)
            program = shown(publisher_of(here), client).program
            assert (program.form, program.why_not_persistent) == (form, "2 iterations")

    run(test())


def test_every_program_of_the_table_is_shown() -> None:
    async def test() -> None:
        async with world() as here:
            here.client()
            assert len(publisher_of(here).snapshot.programs) == len(PROGRAMS)

    run(test())


def test_only_what_was_used_since_is_shown_anew() -> None:
    async def test() -> None:
        async with world(planner=InstantPlanner()) as here:
            client = here.client()
            publisher = publisher_of(here)
            await load(here, client)
            first = shown(publisher, client)
            assert shown(publisher, client) is first
            client.send(segment(NEGATE, 100, 10))
            await client.idle()
            assert shown(publisher, client).program.hits == first.program.hits + 1

    run(test())


def test_while_no_program_changes_the_same_picture_of_them_is_shown() -> None:
    async def test() -> None:
        async with world() as here:
            here.client()
            publisher = publisher_of(here)
            before = publisher.snapshot
            publisher.publish()
            assert publisher.snapshot is not before
            assert publisher.snapshot.programs is before.programs

    run(test())


def test_a_program_that_is_gone_is_shown_no_more() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            publisher = publisher_of(here)
            here.engine.programs.bounds = TableBounds(programs=1)
            here.engine.end(client.session)
            publisher.publish()
            (left,) = publisher.snapshot.programs
            assert bytes.fromhex(left.program.digest) in here.engine.programs.entries

    run(test())


def test_totals_count_on_when_a_session_has_ended() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.session.bytes_in = 77
            client.send(segment(NEGATE, 100, 10))
            await client.idle()
            here.engine.end(client.session)
            stats = publisher_of(here).snapshot.stats
            assert (stats.sessions, stats.totals.received_bytes, stats.version) == (0, 77, "1.2.3")
            assert stats.totals.segments == 1

    run(test())


def test_sessions_are_counted_by_why_they_ended() -> None:
    async def test() -> None:
        async with world(tenant_sessions=1) as here:
            first = here.client()
            here.engine.detach(first.session, 1)
            here.engine.resume(first.session.session_id, here.engine.instance, "lab", 0)
            here.engine.detach(first.session, 2)
            here.engine.end(here.client().session, GOODBYE)
            assert publisher_of(here).snapshot.stats.totals.sessions == SessionTotals(
                opened=2, resumed=1, ended={"replaced": 1, "goodbye": 1}
            )

    run(test())


def test_rows_that_wait_are_shown_with_the_age_of_the_oldest() -> None:
    async def test() -> None:
        async with world() as here:
            here.engine.hold()
            client = here.client()
            client.send(
                segment(NEGATE, 100, 10), segment(NEGATE, 110, 100), upload_beside(20), segment(NEGATE, 120, 20)
            )
            publisher = publisher_of(here)
            queue = publisher.snapshot.stats.queue
            assert (queue.ready, queue.held_back) == (2, 1)
            assert queue.oldest_s < publisher.publish().stats.queue.oldest_s < DEADLINE_S
            here.engine.unhold()
            client.send(Cancel())
            await client.idle()
            assert publisher.publish().stats.queue == Queue()

    run(test())


def test_the_bytes_of_sessions_are_shown_by_what_they_are_for() -> None:
    async def test() -> None:
        async with world() as here:
            here.engine.hold()
            client = here.client()
            await client.idle()
            client.send(segment(NEGATE, 100, 10))
            client.session.uploading_bytes += 7
            publisher = publisher_of(here)
            live = len(DATA) * len(client.session.values)
            assert publisher.snapshot.stats.session_bytes == SessionBytes(live, len(DATA), 0, 7)
            client.session.uploading_bytes -= 7
            here.engine.unhold()
            client.send(Fetch(1, 100))
            await until(lambda: client.session.answers.unsent)
            assert publisher.publish().stats.session_bytes == SessionBytes(live, 0, len(DATA), 0)

    run(test())


def test_a_session_without_credit_is_shown_and_counted() -> None:
    async def test() -> None:
        async with world(credit_segments=2) as here:
            here.engine.hold()
            client = here.client()
            client.send(segment(NEGATE, 100, 10), segment(NEGATE, 110, 10))
            publisher = publisher_of(here)
            stats = publisher.snapshot.stats
            assert (stats.sessions_without_credit, stats.totals.credit_used_up) == (1, 1)
            here.engine.unhold()
            await client.idle()
            here.engine.end(client.session)
            stats = publisher.publish().stats
            assert (stats.sessions_without_credit, stats.totals.credit_used_up) == (0, 1)

    run(test())


def test_a_tenant_has_the_durations_of_its_work_and_keeps_its_account() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.send(segment(NEGATE, 100, 10), segment(NEGATE, 110, 10), Fetch(1, 100))
            await until(lambda: client.session.answers.unsent)
            await client.idle()
            publisher = publisher_of(here)
            before = publisher.snapshot.tenants["lab"]
            for phase in (before.queue_ns, before.launch_ns, before.device_part_ns):
                assert sum(bucket.count for bucket in phase.buckets) == 2
            assert sum(bucket.count for bucket in before.wait_ns.buckets) == 1
            assert before.wait_ns.total >= before.answer_ns.total > 0
            assert (before.sessions, before.segments) == (1, 2)
            here.engine.end(client.session)
            after = publisher.publish().tenants["lab"]
            assert after.loop_ns >= before.loop_ns
            assert replace(after, loop_ns=0) == replace(before, loop_ns=0)

    run(test())


def test_a_session_tells_its_last_failures() -> None:
    async def test() -> None:
        async with world() as here:
            client, other = here.client("a"), here.client("b")
            client.send(*[segment(NEGATE, base, 99) for base in (100, 200, 300, 400)])
            await client.idle()
            views = {view.client: view.failures for view in publisher_of(here).snapshot.sessions}
            assert len(views[client.session.client]) == 3
            assert all(text.startswith("unknown_handle: ") for text in views[client.session.client])
            assert views[other.session.client] == ()

    run(test())


def test_programs_and_refusals_are_counted() -> None:
    async def test() -> None:
        async with world() as here:
            here.client()
            here.client("b")
            here.engine.counters.refused(TOKEN_DOOR, "unauthenticated")
            inspection = RefusalCounts()
            inspection.add(404)
            totals = Publisher(here.engine, "1", inspection).snapshot.stats.totals
            assert (totals.program_cache.hits, totals.program_cache.misses) == (len(PROGRAMS), len(PROGRAMS))
            assert {door: dict(cases) for door, cases in totals.refusals.items() if cases} == {
                "token": {"unauthenticated": 1},
                "inspection": {"not_found": 1},
            }

    run(test())


def test_a_segment_that_is_refused_is_no_row() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.send(segment(NEGATE, 100, 10), segment(NEGATE, 200, 99))
            await client.idle()
            totals = publisher_of(here).snapshot.stats.totals
            assert (totals.segments, totals.rows, totals.failures) == (2, 1, {"unknown_handle": 1})

    run(test())


def test_the_time_of_planning_and_of_compiling_are_told_apart() -> None:
    async def test() -> None:
        async with world(planner=InstantPlanner()) as here:
            await load(here, here.client())
            phases = publisher_of(here).snapshot.stats.phases
            assert phases.plan.count == phases.compile.count > 0
            assert (phases.plan.total_ns, phases.compile.total_ns) == (phases.plan.count, phases.compile.count)

    run(test())


def test_a_new_session_has_been_heard_of_just_now() -> None:
    async def test() -> None:
        async with world() as here:
            here.engine.open("lab", "a", "nowhere")
            (view,) = publisher_of(here).snapshot.sessions
            assert view.idle_s < DEADLINE_S

    run(test())


def test_a_server_is_ready_until_its_device_breaks() -> None:
    async def test() -> None:
        async with world() as here:
            publisher = publisher_of(here)
            assert publisher.snapshot.stats.is_ready
            here.engine.is_broken = True
            publisher.publish()
            assert not publisher.snapshot.stats.is_ready

    run(test())


def test_host_memory_is_shown_by_owner_and_what_is_beyond_it() -> None:
    async def test() -> None:
        async with world() as here:
            client, other = here.client("a"), here.client("b")
            await client.idle()
            publisher = publisher_of(here)
            snapshot = publisher.snapshot
            views = {view.client: view for view in snapshot.sessions}
            tenant_bytes = snapshot.tenant_host_bytes[client.session.tenant]
            programs_bytes = client.session.tenant_bytes.program_bytes
            assert tenant_bytes == client.session.host_bytes + other.session.host_bytes + programs_bytes
            assert views[client.session.client].host_bytes >= client.session.host_bytes > 0
            memory = snapshot.stats.host_memory
            assert memory.sessions == client.session.host_bytes + other.session.host_bytes
            known_bytes = memory.sessions + memory.programs + memory.values
            resident_bytes = snapshot.stats.process.resident_bytes
            assert resident_bytes is None or memory.unaccounted == resident_bytes - known_bytes

    run(test())
