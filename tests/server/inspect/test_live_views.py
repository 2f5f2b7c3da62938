"""Arrays, described from the engine's live tables, and the end of a session."""

from __future__ import annotations

from typing import Any

from fusewire_protos.frames import Free
from fusewire_server.inspect import live_views
from fusewire_server.inspect.control import Control
from tests.server.parts import segment
from tests.server.world import (
    NEGATE,
    World,
    in_world,
)


def control_of(here: World) -> Control:
    async def ask(name: str, **arguments: Any) -> list[Any]:
        return [live_views.ANSWERS[name](here.engine, **arguments)]

    return Control(ask, lambda: None)


@in_world()
async def test_arrays_are_told_with_their_origin(here: World) -> None:
    client = here.client()
    client.send(segment(NEGATE, 100, 10))
    await client.idle()
    page = await control_of(here).arrays(client.session.shown_id, after=-1, limit=10)
    assert page is not None
    by_handle = {array.handle: array for array in page.arrays}
    assert by_handle.keys() == client.session.values.keys()
    computed = by_handle[max(by_handle)]
    assert computed.base == 100
    assert computed.handle == 100 + (computed.op or 0)
    assert (by_handle[10].base, by_handle[10].op) == (None, None)
    assert all(0 <= array.age_s < 10 for array in page.arrays)
    assert sum(array.bytes for array in page.arrays) == client.session.live_bytes


@in_world()
async def test_arrays_come_in_pages_although_others_go(here: World) -> None:
    client, control = here.client(), control_of(here)
    client.send(*[segment(NEGATE, base, 10) for base in (400, 100, 300, 200)])
    first = await control.arrays(client.session.shown_id, after=-1, limit=3)
    client.send(Free((11, 100)))
    assert first is not None
    assert first.next == "100"
    second = await control.arrays(client.session.shown_id, after=int(first.next), limit=3)
    assert second is not None
    assert [[array.handle for array in page.arrays] for page in (first, second)] == [
        [10, 11, 100],
        [200, 300, 400],
    ]
    assert second.next is None


@in_world()
async def test_an_array_that_goes_while_a_page_is_made_is_left_out(here: World) -> None:
    client = here.client()
    assert [array.handle for array in live_views.arrays_of(here.engine, client.session.shown_id, [9, 10])] == [10]
    assert live_views.arrays_of(here.engine, "nobody", [10]) == ()


@in_world()
async def test_no_arrays_of_a_session_that_is_not_there(here: World) -> None:
    assert await control_of(here).arrays("nobody", after=-1, limit=1) is None


@in_world()
async def test_an_operator_s_end_is_told_with_its_reason(here: World) -> None:
    client = here.client()
    here.engine.detach(client.session, client.session.epoch)
    assert await control_of(here).end_session(client.session.shown_id)
    (ended,) = here.engine.counters.recently_ended
    assert (ended.reason, ended.text) == ("ended_by_operator", "an operator of the server ended this session")
