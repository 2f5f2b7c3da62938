"""What happened last is told with the details, the newest first: failures, ended sessions, slow segments."""

from __future__ import annotations

from fusewire_protos.frames import Segment
from fusewire_server.engine.outcome import outcome_of
from fusewire_server.inspect.snapshots.details import details_of
from fusewire_server.programs.recent import MOST_RECENT, SLOW_NS
from tests.segments import loop_of
from tests.server.parts import segment
from tests.server.world import NEGATE, Client, InstantPlanner, World, in_world, load, run, world


async def wait_long(here: World, client: Client, entry: Segment) -> None:
    """Lets the client's only row wait so long that it is in the log of slow segments."""
    here.engine.hold()
    client.send(entry)
    await outcome_of(here.engine.unapplied(client.session))
    (row,) = client.session.queue
    row.queued_at_ns -= SLOW_NS
    here.engine.unhold()
    await client.idle()


@in_world()
async def test_a_segment_that_waits_long_is_a_slow_one(here: World) -> None:
    client = here.client()
    await client.idle()
    await wait_long(here, client, segment(NEGATE, 100, 10))
    (slow,) = details_of(here.engine).slow_segments
    assert (slow.base, slow.session) == (100, client.session.shown_id)
    assert (slow.ops, slow.iterations, slow.tier, slow.rows) == (1, 1, 0, 1)
    assert slow.queue_s >= SLOW_NS / 1e9
    assert abs(slow.total_s - slow.queue_s - slow.order_s - slow.device_s) < 1e-9
    assert (slow.planning_s, slow.compiling_s) == (0, 0)


def test_a_slow_loop_tells_the_ops_of_its_body_and_its_iterations() -> None:
    async def test() -> None:
        async with world(planner=InstantPlanner()) as here:
            client = here.client()
            await load(here, client)
            await wait_long(here, client, loop_of(segment(NEGATE, 100, 10), 5, 1, (1,)))
            segments = details_of(here.engine).slow_segments
            (slow,) = [each for each in segments if each.base == 100]  # on a busy machine that of `load` may be one too
            assert (slow.ops, slow.iterations, slow.tier) == (1, 5, 1)
            assert slow.planning_s == slow.compiling_s == 1e-9

    run(test())


@in_world()
async def test_ended_sessions_and_failures_are_told_the_newest_first(here: World) -> None:
    one, two = here.client("a"), here.client("b")
    one.send(segment(NEGATE, 100, 99))
    await one.idle()
    here.engine.end(one.session, "goodbye")
    here.engine.end(two.session, "slow_reader")
    details = details_of(here.engine)
    assert [(each.client, each.reason) for each in details.ended_sessions] == [("b", "slow_reader"), ("a", "goodbye")]
    (failure,) = details.failures
    assert (failure.session, failure.case) == (one.session.shown_id, "unknown_handle")


@in_world()
async def test_the_last_slow_segments_are_kept_and_no_more(here: World) -> None:
    client = here.client()
    await wait_long(here, client, segment(NEGATE, 100, 10))
    (row,) = [each for each in here.engine.counters.slow_rows if each.base == 100]
    here.engine.counters.slow_rows.extend([row._replace(base=number) for number in range(MOST_RECENT + 3)])
    segments = details_of(here.engine).slow_segments
    assert [each.base for each in segments] == [*range(MOST_RECENT + 2, 2, -1)]


@in_world()
async def test_the_last_ended_sessions_are_kept_and_no_more(here: World) -> None:
    for number in range(MOST_RECENT + 3):
        here.engine.end(here.client(str(number)).session, "goodbye")
    sessions = details_of(here.engine).ended_sessions
    assert [each.client for each in sessions] == [str(number) for number in range(MOST_RECENT + 2, 2, -1)]
