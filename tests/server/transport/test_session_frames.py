"""What a stream's reader learns of a frame that is applied in parts."""

from __future__ import annotations

import asyncio

import pytest

from fusewire_protos import frames
from fusewire_protos.errors import CaseError
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server.engine.outcome import outcome_of
from fusewire_server.sessions.session import SessionState
from fusewire_server.transport.session_frames import SessionFrames
from tests.server.parts import segment
from tests.server.world import NEGATE, run, until, world


def test_the_reason_is_known_though_the_session_has_ended_before_the_reader_asks() -> None:
    async def test() -> None:
        async with world(credit_segments=3) as here:
            client = here.client()
            await client.idle()
            here.engine.hold()  # so that no credit returns
            here.engine._backlog.end_turn()
            here.engine._backlog.slice_ns, here.engine._backlog.turn_ns = 0, 1  # an entry takes a turn
            stream = SessionFrames(here.engine, client.session)
            overdrawn = frames.encode_entries([segment(NEGATE, 1000 + index, 10) for index in range(8)])
            assert not stream.take(pb.ClientFrame(number=client.frame + 1, bindings=overdrawn).SerializeToString())
            await until(lambda: client.session.state is SessionState.CLOSED)
            await asyncio.sleep(0)
            with pytest.raises(CaseError, match="credit_segments = 3"):
                await outcome_of(stream.unapplied)

    run(test())
