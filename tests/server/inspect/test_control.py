"""Operations on an engine: they are passed to the loop thread."""

from __future__ import annotations

import asyncio

from fusewire_server.inspect.control import EngineControl
from fusewire_server.inspect.snapshot import shown_id
from fusewire_server.sessions.session import SessionState
from tests.server.wire import Server, server
from tests.server.world import World, run, until, world


def control_of(here: World | Server) -> EngineControl:
    loop = asyncio.get_running_loop()
    return EngineControl(here.engine, here.engine.hold, loop.call_soon_threadsafe)


def test_the_client_of_a_session_that_an_operator_ends_hears_so_and_others_go_on() -> None:
    async def test() -> None:
        async with server() as here:
            peer, neighbour = await here.peer(), await here.peer()
            await asyncio.to_thread(control_of(here).end_session, shown_id(peer.session_id))
            assert await peer.goodbye() == "ended_by_operator"
            assert peer.farewell == "an operator ended the session"
            await neighbour.works(100)

    run(test())


def test_a_session_without_a_connection_ends_at_once() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            here.engine.detach(client.session, client.session.epoch)
            control_of(here).end_session(shown_id(client.session.session_id))
            await until(lambda: client.session.state is SessionState.CLOSED)

    run(test())


def test_ending_an_unknown_session_changes_nothing() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            control = control_of(here)
            control.end_session("0123456789ab")
            control.hold()
            await until(lambda: here.engine.is_held)
            assert client.session.state is SessionState.OPEN
            control.release()
            await until(lambda: not here.engine.is_held)

    run(test())
