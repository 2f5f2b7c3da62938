"""The relay between several engines: to which of them each call goes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import pytest

from fusewire_protos.upload_call import SESSION_HEADER
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server.front_ends.placement import EngineAt
from fusewire_server.transport.call import Call, Messages, Method
from fusewire_server.transport.grpc_server import METHODS
from fusewire_server.transport.local_calls import LocalCalls
from tests.event_loops import Run
from tests.server.front_ends.relayed import LONGEST, Relayed, read_all, serving, status_of


@dataclass
class Engines:
    """Two engines that tell their device in each answer, and a relay to both."""

    here: Relayed
    locals: list[LocalCalls]

    async def device_of(self, frame: pb.ClientFrame | bytes, name: str = "Session", metadata: Any = ()) -> int:
        """Which device answers a call that begins with this message."""
        call = self.here.call(name, metadata)
        await call.write(frame if isinstance(frame, bytes) else frame.SerializeToString())
        await call.done_writing()
        answers = await read_all(call)
        assert await status_of(call) == (grpc.StatusCode.OK, "")
        assert answers[1:] == [frame if isinstance(frame, bytes) else frame.SerializeToString()]
        return answers[0][0]


@asynccontextmanager
async def two_engines() -> AsyncIterator[Engines]:
    def engine(device: int) -> Method:
        async def tell(messages: Messages, call: Call) -> None:
            await call.send_initial_metadata((("device", str(device)),))
            await call.write(bytes([device]))
            async for message in messages:
                await call.write(message)

        return tell

    listeners = [LocalCalls(LONGEST) for _ in range(2)]
    for device, local in enumerate(listeners):
        await local.start(dict.fromkeys(METHODS, engine(device)))
    async with serving("unused", b"") as here:
        here.relay.engines = [
            EngineAt(device, local.name, local.front_end_secret) for device, local in enumerate(listeners)
        ]
        yield Engines(here, listeners)
    for local in listeners:
        await local.stop(0.0)


def hello(**fields: Any) -> pb.ClientFrame:
    return pb.ClientFrame(hello=pb.Hello(**fields))


def test_a_session_goes_on_where_the_last_byte_of_its_id_says(in_each_loop: Run) -> None:
    async def test() -> None:
        async with two_engines() as engines:
            for device in (0, 1, 1, 0):
                session = bytes(15) + bytes([device])
                assert await engines.device_of(hello(session_id=session)) == device
                header = ((SESSION_HEADER, session.hex()),)
                for name in ("Upload", "Download"):
                    assert await engines.device_of(b"bytes", name, header) == device

    in_each_loop(test())


def test_a_new_session_goes_to_the_device_that_it_asks_for_or_to_either(in_each_loop: Run) -> None:
    async def test() -> None:
        async with two_engines() as engines:
            for device in (1, 0, 1):
                assert await engines.device_of(hello(device=device)) == device
            found = [await engines.device_of(hello()) for _ in range(12)]
            assert {*found} == {0, 1}

    in_each_loop(test())


@pytest.mark.parametrize(
    "first", [b"", b"no frame", bytes(64 << 10), hello(device=9), hello(session_id=b"\xff" * 16)], ids=str
)
def test_a_call_of_no_known_engine_goes_to_one_that_refuses_it(first: Any, in_each_loop: Run) -> None:
    async def test() -> None:
        async with two_engines() as engines:
            assert await engines.device_of(first) in {0, 1}

    in_each_loop(test())


@pytest.mark.parametrize("session", ["", "no hexadecimal digits", "ff" * 16])
def test_an_upload_of_no_known_session_goes_to_an_engine_that_refuses_it(session: str, in_each_loop: Run) -> None:
    async def test() -> None:
        async with two_engines() as engines:
            assert await engines.device_of(b"bytes", "Upload", ((SESSION_HEADER, session),)) in {0, 1}
            assert await engines.device_of(b"bytes", "Upload") in {0, 1}

    in_each_loop(test())


def test_calls_of_an_engine_that_has_just_ended_go_to_the_other(in_each_loop: Run) -> None:
    async def test() -> None:
        async with two_engines() as engines:
            await engines.locals[1].stop(0.0)
            for _ in range(8):
                assert await engines.device_of(hello()) == 0
            assert await engines.device_of(hello(session_id=bytes(15) + b"\x01")) == 0
            await engines.locals[0].stop(0.0)
            call = engines.here.call()
            await call.write(hello().SerializeToString())
            code, details = await status_of(call)
            assert code is grpc.StatusCode.UNAVAILABLE
            assert details == "the server's engine cannot be reached: Connection refused"

    in_each_loop(test())


def test_no_call_goes_to_a_process_of_another_user(in_each_loop: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may have taken the name of an engine that has ended, to get the tokens of clients."""

    async def test() -> None:
        async with two_engines() as engines:
            own = os.geteuid()
            monkeypatch.setattr(os, "geteuid", lambda: own + 1)
            call = engines.here.call()
            await call.write(hello().SerializeToString())
            code, details = await status_of(call)
            assert code is grpc.StatusCode.UNAVAILABLE
            assert details == "the server's engine cannot be reached: another user listens there"
            monkeypatch.undo()
            assert await engines.device_of(hello()) in {0, 1}

    in_each_loop(test())
