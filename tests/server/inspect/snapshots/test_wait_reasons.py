"""What a session waits for, in words."""

from __future__ import annotations

from fusewire_protos.frames import Fetch
from fusewire_server.inspect.snapshots.publisher import Publisher
from tests.server.parts import segment, upload_beside
from tests.server.world import DATA, NEGATE, Client, InstantPlanner, World, in_world, lack_exp, run, until, world


def reason(here: World, client: Client) -> str:
    publisher = Publisher(here.engine, "1")
    return {view.client: view.wait_reason for view in publisher.snapshot.sessions}[client.session.client]


@in_world()
async def test_a_session_without_work_waits_for_nothing(here: World) -> None:
    client = here.client()
    await client.idle()
    assert reason(here, client) == ""


@in_world()
async def test_rows_wait_for_an_operator_or_for_the_turns_of_others(here: World) -> None:
    client = here.client()
    await client.idle()
    here.engine.hold()
    client.send(segment(NEGATE, 100, 10))
    assert reason(here, client) == "held"
    here.engine._submissions.is_held = False
    assert reason(here, client) == "fair share"
    here.engine.unhold()
    await client.idle()
    assert reason(here, client) == ""


@in_world()
async def test_an_upload_is_told_with_its_bytes(here: World) -> None:
    client = here.client()
    await client.idle()
    client.send(upload_beside(20), segment(NEGATE, 120, 20))
    assert reason(here, client) == f"upload of {len(DATA)} bytes"


def test_the_kernel_of_an_op_is_told_by_its_name() -> None:
    async def test() -> None:
        async with world(planner=InstantPlanner(withholds=True)) as here:
            client = here.client()
            await lack_exp(here, client)
            assert reason(here, client) == "kernel of exp"

    run(test())


@in_world(credit_segments=1)
async def test_a_client_without_credit_and_one_that_is_away_are_told(here: World) -> None:
    client = here.client()
    await client.idle()
    here.engine.hold()
    client.send(segment(NEGATE, 100, 10))
    session = client.session
    row = session.queue.popleft()  # as if the device had been told
    assert reason(here, client) == "credit"
    session.has_used_up_credit = False
    assert reason(here, client) == "device"
    session.queue.append(row)
    here.engine.detach(session, session.epoch)
    assert reason(here, client) == "its client's connection"
    here.engine.unhold()
    await until(lambda: not session.in_flight.segments)


@in_world()
async def test_the_time_in_which_fetches_wait_is_counted_once(here: World) -> None:
    client = here.client()
    await client.idle()
    publisher = Publisher(here.engine, "1")
    assert publisher.snapshot.sessions[0].waiting_ns == 0
    here.engine.hold()
    client.send(segment(NEGATE, 100, 10), Fetch(1, 100))
    client.send(Fetch(2, 100))
    before, now = [publisher.publish().sessions[0].waiting_ns for _ in range(2)]
    assert 0 < before < now
    here.engine.unhold()
    await until(lambda: not client.session.fetches)
    done = publisher.publish().sessions[0]
    assert now < done.waiting_ns <= done.age_s * 1e9
    assert publisher.publish().sessions[0].waiting_ns == done.waiting_ns
