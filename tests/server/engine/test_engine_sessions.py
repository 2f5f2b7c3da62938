"""Sessions of an engine: they begin, break, are resumed and end; what they are owed waits for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fusewire_protos.errors import CaseError
from fusewire_protos.frames import INLINE_BYTES, Abandon, Cancel, Fetch, Free, Upload
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_server.config.config import Limits
from fusewire_server.programs.counters import END_REASONS
from fusewire_server.sessions.session import Session, SessionState
from fusewire_server.sessions.tables import answers
from tests.segments import loop_of
from tests.server.parts import segment, upload, upload_beside
from tests.server.world import NEGATE, PAIR, Client, World, run, staged, until, world

# ---- the lives of sessions ----


def test_cancel_lets_others_go_on() -> None:
    async def test() -> None:
        async with world() as here:
            here.engine.hold()
            one, other = here.client("a"), here.client("b")
            one.send(segment(NEGATE, 100, 10), Cancel(), Fetch(1, 100))
            other.send(segment(NEGATE, 100, 10), Fetch(1, 100))
            here.engine.unhold()
            assert await one.failure(1) == "cancelled"
            assert await other.value(1) == [-0.0, -1.0, -2.0, -3.0]
            await one.idle()

    run(test())


def test_a_detached_session_ends_when_its_grace_has_passed() -> None:
    async def test() -> None:
        async with world(resume_grace_s=0.01) as here:
            client = here.client()
            here.engine._registry.detach(client.session, client.session.epoch)
            assert client.session.state is SessionState.DETACHED
            await until(lambda: client.session.state is SessionState.CLOSED)
            await until(lambda: here.device.live_bytes == 0)
            with pytest.raises(CaseError, match="session_lost"):
                resume(here, client.session)

    run(test())


def test_a_resumed_session_lives_on_and_hears_what_it_missed() -> None:
    async def test() -> None:
        async with world(resume_grace_s=0.01) as here:
            client = here.client()
            here.engine._registry.detach(client.session, client.session.epoch)
            client_fetch = Fetch(1, 10)
            assert resume(here, client.session) is client.session
            client.send(client_fetch)
            await until(lambda: client.session.answers.unsent)
            client.session.answers.take(1 << 20)
            here.engine._registry.detach(client.session, client.session.epoch)
            resume(here, client.session)
            assert await client.value(1) == [0.0, 1.0, 2.0, 3.0]
            here.engine._registry.detach(client.session, 1)
            assert client.session.state is SessionState.OPEN

    run(test())


def test_what_a_resuming_client_acknowledges_makes_room_for_its_other_answers() -> None:
    async def test() -> None:
        async with world(unread_bytes=20) as here:
            client = here.client()
            client.send(Fetch(1, 10), Fetch(2, 11))
            session = client.session
            await until(lambda: session.answers.unsent)
            number, answers = session.answers.take(1 << 20)
            assert [answer.fetch for answer in answers] == [1]
            here.engine.detach(session, session.epoch)
            here.engine.resume(session.session_id, here.engine.instance, session.tenant, number)
            await until(lambda: session.answers.unsent)
            assert [answer.fetch for answer in session.answers.unsent] == [2]

    run(test())


async def freed_results_of_a_loop(here: World) -> tuple[Client, tuple[int, int]]:
    """A client between two slices of its loop, and the handles of two results that have failed and are freed."""
    client = here.client()
    await client.idle()
    client.send(loop_of(segment(PAIR, 1000, 10, 99), 20_000, 3, (1, 1, 1)))  # 99 names nothing: two results fail
    await until(lambda: here.engine.counters.ops)
    here.engine.hold()
    await until(lambda: not here.engine.outstanding_submissions)
    last = 1000 + 19_999 * 3
    client.send(Free((last + 1, last + 2)))
    return client, (last + 1, last + 2)


def test_results_of_a_loop_that_the_client_has_freed_end_with_its_session_between_two_slices() -> None:
    async def test() -> None:
        async with world() as here:  # which holds nothing in the end
            client, _ = await freed_results_of_a_loop(here)
            assert client.session.queue
            here.engine.end(client.session)

    run(test())


def test_a_value_that_has_the_handle_of_a_freed_result_of_a_loop_ends_with_its_session() -> None:
    async def test() -> None:
        async with world() as here:  # which holds nothing in the end
            client, freed = await freed_results_of_a_loop(here)
            client.send(*map(upload, freed))
            await until(lambda: not client.session.writes)
            assert client.session.queue
            here.engine.end(client.session)

    run(test())


def test_a_dismissed_session_ends_when_its_stream_breaks_first() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            here.engine.attach(client.session, lambda: None)
            here.engine.dismiss([client.session], CaseError("ended_by_operator", "because"))
            assert not here.engine.counters.sessions_ended
            here.engine.detach(client.session, client.session.epoch)
            assert here.engine.counters.sessions_ended == {"ended_by_operator": 1}

    run(test())


def test_a_loop_goes_on_while_its_client_is_away_and_its_result_waits() -> None:
    async def test() -> None:
        async with world() as here:
            client, iterations = here.client(), 1000
            client.send(loop_of(segment(NEGATE, 100, 10), iterations, 1, (1,)), Fetch(1, 100 + iterations - 1))
            await until(lambda: here.engine.counters.ops)
            assert client.session.queue, "iterations are left"
            here.engine._registry.detach(client.session, client.session.epoch)
            await until(lambda: client.session.answers.unsent)
            resume(here, client.session)
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]
            await client.idle()

    run(test())


def resume(here: World, session: Session, *, instance: bytes | None = None, tenant: str = "lab") -> Session:
    return here.engine._registry.resume(session.session_id, instance or here.engine._registry.instance, tenant, 0)


def test_a_session_is_resumed_by_its_own_tenant_at_its_own_server_only() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            here.engine._registry.detach(client.session, client.session.epoch)
            for instance, tenant in ((b"another", "lab"), (None, "others")):
                with pytest.raises(CaseError, match="session_lost"):
                    resume(here, client.session, instance=instance, tenant=tenant)

    run(test())


def test_detached_sessions_end_until_a_limit_that_was_lowered_has_room() -> None:
    async def test() -> None:
        async with world() as here:
            for _ in range(8):
                client = here.client()
                here.engine.detach(client.session, client.session.epoch)
            here.engine.reconfigure(replace(here.engine.config, limits=Limits(tenant_sessions=2)))
            here.client()
            assert len(here.engine.sessions) == 2

    run(test())


def test_sessions_beyond_the_limit_and_while_draining_are_refused() -> None:
    async def test() -> None:
        async with world(sessions=1) as here:
            here.client()
            with pytest.raises(CaseError, match="too_many_sessions"):
                here.client()
            here.engine.is_draining = True
            with pytest.raises(CaseError, match="draining"):
                here.client()

    run(test())


def test_a_tenant_that_takes_too_many_sessions_is_refused_and_others_are_not() -> None:
    async def test() -> None:
        async with world(sessions=8, tenant_sessions=2) as here:
            one, _, _ = here.client("a"), here.client("b"), here.client("c", "others")
            with pytest.raises(CaseError, match=r"too_many_sessions.*limits\.tenant_sessions = 2"):
                here.client("d")
            here.engine.end(one.session)
            here.client("d")

    run(test())


@pytest.mark.parametrize("limits", [{"tenant_sessions": 2}, {"sessions": 3}])
def test_a_tenant_at_a_limit_loses_its_own_session_that_was_detached_first(limits: dict[str, Any]) -> None:
    async def test() -> None:
        async with world(**limits) as here:
            foreign, first, second = here.client("x", "others"), here.client("a"), here.client("b")
            for client in (foreign, second, first):
                here.engine._registry.detach(client.session, 1)
            here.client("c")
            states = [client.session.state for client in (foreign, first, second)]
            assert states == [SessionState.DETACHED, SessionState.DETACHED, SessionState.CLOSED]

    run(test())


# ---- fetches ----


def test_large_answers_stay_on_the_device_until_the_client_has_taken_others() -> None:
    async def test() -> None:
        large = Spec(dtypes.uint8, (2 * INLINE_BYTES,))
        async with world(unread_bytes=large.size_bytes * 3 // 2) as here:
            client = here.client()
            client.send(
                Upload(20, large, 0), Fetch(1, 20), Fetch(2, 20), Free((20,)), tensors=[bytes(large.size_bytes)]
            )
            assert (await client.fetched(1)).beside_bytes == large.size_bytes
            assert 2 in client.session.fetches
            assert client.session.answers.unread_bytes == large.size_bytes
            beside = client.session.answers.begin_download(1)
            assert beside is not None
            here.engine.downloaded(client.session, 1, beside)
            assert client.session.answers.unread_bytes == large.size_bytes
            client.send(Abandon(1))
            assert (await client.fetched(2)).beside_bytes == large.size_bytes

    run(test())


def test_a_bounded_number_of_values_is_read_at_once_and_the_others_after_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_READ_AT_ONCE", 2)

    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.send(upload_beside(20), *[Fetch(number, 20) for number in range(1, 8)])
            here.engine.uploaded(client.session, client.session.values[20], staged(here.device))
            assert list(client.session.answers.being_read) == [1, 2]
            for number in range(1, 8):
                await client.value(number)
            assert not client.session.reads

    run(test())


def test_a_submission_carries_a_bounded_number_of_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_READ_AT_ONCE", 2)

    async def test() -> None:
        async with world() as here:
            client = here.client()
            here.engine.hold()
            client.send(segment(NEGATE, 100, 10), *[Fetch(number, 100) for number in range(1, 8)])
            here.engine.unhold()
            assert list(client.session.answers.being_read) == [1, 2]
            for number in range(1, 8):
                await client.value(number)

    run(test())


def test_a_large_answer_that_is_abandoned_makes_room() -> None:
    async def test() -> None:
        large = Spec(dtypes.uint8, (2 * INLINE_BYTES,))
        async with world(unread_bytes=large.size_bytes) as here:
            client = here.client()
            client.send(
                Upload(20, large, 0), Fetch(1, 20), Fetch(2, 20), Fetch(3, 20), tensors=[bytes(large.size_bytes)]
            )
            await client.fetched(1)
            client.send(Abandon(1), Abandon(2))
            await client.fetched(3)
            assert list(client.session.answers.beside) == [3]

    run(test())


def test_new_limits_hold_for_the_sessions_that_follow() -> None:
    async def test() -> None:
        async with world() as here:
            old = here.client()
            limits = replace(here.engine.config.limits, tenant_sessions=2, credit_segments=3)
            here.engine.reconfigure(replace(here.engine.config, limits=limits))
            new = here.client("b")
            assert (old.session.credit.segments, new.session.credit.segments) == (64, 3)
            with pytest.raises(CaseError, match=r"limits\.tenant_sessions = 2"):
                here.client("c")

    run(test())


def test_a_new_stall_time_holds_for_the_uploads_that_follow() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            limits = replace(here.engine.config.limits, upload_stall_s=0.01, resume_grace_s=0.01)
            here.engine.reconfigure(replace(here.engine.config, limits=limits))
            client.send(upload_beside(20), Fetch(1, 20))
            assert await client.failure(1) == "upload_failed"

    run(test())


def test_a_dismissed_session_without_a_stream_counts_as_ended_for_the_reason_given() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            here.engine.detach(client.session, 1)
            here.engine.dismiss([client.session], CaseError("ended_by_operator", "because"))
            assert here.engine.counters.sessions_ended == {"ended_by_operator": 1}
            assert "ended_by_operator" in END_REASONS

    run(test())
