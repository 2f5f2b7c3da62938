"""A server's streams without a socket: the engine thread in a thread of its own, and clients that hand it frames."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, cast

from fusewire_kernels.devices.null import NullDevice
from fusewire_protos.frames import PROTOCOL_VERSION
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server.access.interceptor import Access
from fusewire_server.config.config import Config
from fusewire_server.engine.clock import Clock
from fusewire_server.engine.engine import Engine
from fusewire_server.host.garbage_collector import GarbageCollector
from fusewire_server.sessions.session import Session, SessionState
from fusewire_server.transport.call import Call
from fusewire_server.transport.service import FusewireService
from tests.patience import HANGS_S, Patience
from tests.server.costs.draft import Draft, bytes_of

_LOOK_S = 0.002
_HELLO = pb.ClientFrame(hello=pb.Hello(versions=[PROTOCOL_VERSION], client="test")).SerializeToString()


class Line:
    """One stream. Stands for gRPC's iterator of the client's messages, and for gRPC's context of the call."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[bytes | None] = asyncio.Queue()  # None: the client ends the stream
        self.received: SimpleQueue[bytes] = SimpleQueue()

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return ()

    def peer(self) -> str:
        return "here"

    async def send_initial_metadata(self, _metadata: object) -> None:
        pass

    async def write(self, frame: bytes) -> None:
        self.received.put(frame)
        await asyncio.sleep(0)  # others have a turn meanwhile, as they have with gRPC

    def set_code(self, _code: object) -> None:
        pass

    def set_details(self, _details: str) -> None:
        pass

    async def frames(self) -> AsyncIterator[bytes]:
        """The client's messages. Other tasks have a turn before each of them, as they have with gRPC."""
        while True:
            await asyncio.sleep(0)
            raw = await self.sent.get()
            if raw is None:
                return
            yield raw


class EngineThread:
    """The server's engine thread. Other threads call the methods."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._streams: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._thread.start()
        assert self._is_ready.wait(HANGS_S)

    def stop(self) -> None:
        self.soon(self._stopped.set)
        self._thread.join(HANGS_S)

    def soon(self, call: Callable[..., object], *arguments: Any) -> None:
        """Has the engine thread call a function, between two of its callbacks."""
        self._loop.call_soon_threadsafe(call, *arguments)

    def stream(self) -> Line:
        """Begins a stream."""
        line = Line()
        self.soon(self._begin, line)
        return line

    @property
    def streams(self) -> int:
        """The number of streams that are not over."""
        return sum(not stream.done() for stream in self._streams)

    def _begin(self, line: Line) -> None:
        self._streams.add(asyncio.create_task(self._service.session(line.frames(), cast("Call", line))))

    async def _serve(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        self.engine = Engine(Config(), NullDevice(), None, clock=self._clock)
        self._service = FusewireService(self.engine, Access(None))
        self.engine.start()
        with GarbageCollector():
            self._is_ready.set()
            await self._stopped.wait()
        for stream in self._streams:
            stream.cancel()
        await asyncio.gather(*self._streams, return_exceptions=True)
        await asyncio.to_thread(self.engine.stop, HANGS_S)


class Client:
    """A session that is driven frame by frame."""

    def __init__(self, server: EngineThread) -> None:
        self._server = server
        self._line = server.stream()
        self._number, self._acknowledged = 1, 0
        known = {*server.engine.sessions}
        self._put([_HELLO])
        while not pb.ServerFrame.FromString(self._line.received.get(timeout=HANGS_S)).HasField("welcome"):
            pass
        (new,) = {*server.engine.sessions} - known
        self.session: Session = server.engine.sessions[new]

    @property
    def is_closed(self) -> bool:
        return self.session.state is SessionState.CLOSED

    def close(self) -> None:
        """Ends the session, and waits until the server has given back what it held."""
        self._put([pb.ClientFrame(goodbye=pb.Goodbye()).SerializeToString()])
        self._until(self._is_quiet)

    def bytes_of(self, drafts: Sequence[Draft]) -> list[bytes]:
        """The bytes of frames that are to be sent next."""
        made = []
        for draft in drafts:
            made.append(bytes_of(draft, self._number, self._acknowledged))
            self._number += draft.is_numbered and not draft.is_sent_again
        return made

    def send(self, raws: Sequence[bytes]) -> None:
        """Sends frames. Waits until the server has done with them, and is quiet."""
        self._put(raws)
        self._until(self._is_quiet)
        while not self._line.received.empty():
            self._acknowledged = max(self._acknowledged, pb.ServerFrame.FromString(self._line.received.get()).number)

    def begin_streams(self, firsts: Sequence[bytes]) -> None:
        """Begins streams with these frames, and ends them. Waits until the server has done with them."""
        lines, others = [self._server.stream() for _ in firsts], self._server.streams
        for line, first in zip(lines, firsts, strict=True):
            self._server.soon(self._put_all, line, (first, None))
        self._until(lambda: self._server.streams <= others)

    def _put(self, raws: Sequence[bytes]) -> None:
        self._server.soon(self._put_all, self._line, raws)

    def _put_all(self, line: Line, raws: Sequence[bytes | None]) -> None:
        for raw in raws:
            line.sent.put_nowait(raw)

    def _is_quiet(self) -> bool:
        """Tells whether the session has ended, or nothing of it is left to do."""
        session, engine = self.session, self._server.engine
        if self.is_closed:
            return not engine._ended_sessions
        has_applied = self._line.sent.empty() and session.applied_frame == self._number - 1
        has_work = session in engine._backlog._rests or session.admitted != session.completed or session.writes
        answers = session.answers
        return has_applied and not (has_work or answers.being_read or session.reads or answers.unsent)

    def _until(self, condition: Callable[[], bool]) -> None:
        """Waits until a condition holds between two callbacks of the server's loop."""
        holds: SimpleQueue[bool] = SimpleQueue()
        patience = Patience()

        def look() -> None:
            holds.put(condition())

        self._server.soon(look)
        while not holds.get(timeout=HANGS_S):
            assert not patience.is_exhausted()
            time.sleep(_LOOK_S)
            self._server.soon(look)


@contextmanager
def engine_thread(clock: Clock = time) -> Iterator[EngineThread]:
    server = EngineThread(clock)
    server.start()
    try:
        yield server
    finally:
        server.stop()
