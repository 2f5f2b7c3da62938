"""The engine process of one device: takes local calls of clients and front ends until its standard input ends."""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from itertools import islice
from typing import Any

from fusewire_protos.errors import FusewireError, ServerFault
from fusewire_server.access.interceptor import Access
from fusewire_server.access.tokens import Authenticator
from fusewire_server.engine.engine import Engine
from fusewire_server.engines.commands import (
    Answered,
    Ask,
    Begin,
    Drain,
    Drained,
    Listening,
    Loaded,
    Reload,
    Report,
    Unanswered,
    decode_command,
)
from fusewire_server.engines.one_engine import OneEngine, drain, prepare_process
from fusewire_server.engines.snapshot_changes import SnapshotSender
from fusewire_server.front_ends.placement import MOST_PROGRAMS, Load, short_digest
from fusewire_server.host.descriptors import raise_open_file_limit
from fusewire_server.host.event_loop import loop_factory
from fusewire_server.host.garbage_collector import GarbageCollector
from fusewire_server.host.logs import configure_logs
from fusewire_server.inspect.live_views import ANSWERS
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from fusewire_server.listeners import local_calls_of
from fusewire_server.processes import messages
from fusewire_server.processes.child import Reporter, command_lines
from fusewire_server.processes.messages import Fault
from fusewire_server.transport.service import FusewireService

log = logging.getLogger("fusewire.engines")

LOOK_EVERY_S = 0.1  # at what the engine has to do, and at the file of tokens
_LOOKS_A_SECOND = round(1 / LOOK_EVERY_S)
STOP_GRACE_S = 0.5  # for farewells and what is being written
_REPORTED_WITHIN_S = 1.0
_MOST_SEEN_PROGRAMS = 1024  # of the newest ones, among which those in use are looked for
_MOST_ANSWER_BYTES = 64 << 20
_UNANSWERED = "the question %r has no answer"


def main() -> int:
    """Runs the engine of a device; the exit status. What it cannot do it tells the server."""
    prepare_process()
    raise_open_file_limit()
    reporter = Reporter()
    with GarbageCollector() as garbage, asyncio.Runner(loop_factory=loop_factory()) as runner:
        status = runner.run(_serve(garbage, reporter))
    reporter.end(_REPORTED_WITHIN_S)
    return status


async def _serve(garbage: GarbageCollector, reporter: Reporter) -> int:
    lines = command_lines()
    line = await anext(lines, None)
    if line is None:
        return 0  # the server has ended
    begin = decode_command(line)
    assert isinstance(begin, Begin), "the first command"
    try:
        process = _EngineProcess(begin, garbage, reporter)
        await process.start()
    except (FusewireError, OSError) as error:
        text = str(error)
        reporter.tell(lambda: messages.encode(Fault(text)))
        return 1

    process.begin(process.obey_all(lines))
    status = await process.ended
    await process.stop()
    return status


class _EngineProcess:
    """Serves local calls, and obeys the server."""

    def __init__(self, begin: Begin, garbage: GarbageCollector, reporter: Reporter) -> None:
        config = begin.config
        configure_logs(config.log.level, config.log.style, audits=config.log.audit)
        self._reporter = reporter
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[int] = loop.create_future()
        self._authenticator = Authenticator(config.listen.token_file) if config.listen.token_file else None
        self._one = OneEngine(config, garbage, self._break, device_number=begin.device)
        self._engine = self._one.engine
        self._local = local_calls_of(config)
        self._service = FusewireService(
            self._engine, Access(self._authenticator), self._local if config.listen.local else None
        )
        self._sender = SnapshotSender()  # of the reporter's thread
        self._hurry = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listens, and reports it. Raises OSError."""
        await self._local.start(self._service.methods)
        info = self._engine.device.info
        self._report(Listening(self._local.name, self._local.front_end_secret, info.backend, info.detail))
        self.begin(self._look())

    def begin(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Begins a task. The process ends with it if it fails: it would not be told, or not tell, any more."""
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._finish)

    async def obey_all(self, lines: AsyncIterator[bytes]) -> None:
        """Obeys the server until it says no more, and then ends the process."""
        async for line in lines:
            self._obey(decode_command(line))
        self.end(0)

    def _obey(self, command: object) -> None:
        match command:
            case Ask():
                self._answer(command)
            case Reload(config):
                configure_logs(config.log.level, config.log.style, audits=config.log.audit)
                self._engine.reconfigure(config)
                if self._authenticator is not None:
                    self._authenticator.read_again()
            case Drain() if self._engine.is_draining:
                self._hurry.set()
            case Drain(within_s):
                self.begin(self._drain(within_s))

    def end(self, status: int) -> None:
        if not self.ended.done():
            self.ended.set_result(status)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        # Without a drain, as when the server was killed, sessions are open. Their streams would go on for that time and
        # calls for large values be refused, which a client takes for the loss of these values alone.
        await self._local.stop(STOP_GRACE_S if self._engine.is_draining else 0.0)
        await self._one.stop()

    def _break(self, error: BaseException) -> None:
        """A device in an unknown state must not go on answering."""
        log.critical("the engine of a device ends: %r", error, exc_info=error)
        self.end(1)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._break(error)

    def _report(self, report: Report) -> None:
        self._reporter.tell(lambda: messages.encode(report))

    async def _drain(self, within_s: float) -> None:
        async def tell_nobody() -> None:
            """Does nothing: the server tells its front ends."""

        await drain(self._engine, self._one.publisher, tell_nobody, within_s, self._hurry)
        self._report(Drained())

    def _answer(self, asked: Ask) -> None:
        """Answers a question, or says why not: sessions go on. What may be long is written in the reporter's thread."""
        try:
            answer = self._answer_to(asked)
        except Exception:
            log.exception(_UNANSWERED, asked.name)
            self._report(_unanswered(asked))
        else:
            self._reporter.tell(lambda: self._line_of_answer(asked, answer))

    def _answer_to(self, asked: Ask) -> Any:
        if asked.name == "snapshot":
            return self._one.publisher.publish()
        return ANSWERS[asked.name](self._engine, **asked.arguments)

    def _line_of_answer(self, asked: Ask, answer: Any) -> bytes:
        """Runs in the reporter's thread, because it may take long."""
        try:
            pickled = self._pickled(answer)
        except Exception:
            log.exception(_UNANSWERED, asked.name)
            return messages.encode(_unanswered(asked))
        return messages.encode(Answered(asked.number, pickled))

    def _pickled(self, answer: Any) -> bytes:
        if not isinstance(answer, Snapshot):
            return _bounded(pickle.dumps(answer))
        sender, self._sender = self._sender, SnapshotSender()  # anew, unless this snapshot can be sent
        pickled = _bounded(pickle.dumps(sender.changes(answer)))
        self._sender = sender
        return pickled

    async def _look(self) -> None:
        """Reports what the engine has to do whenever that has changed, and looks at the file of tokens."""
        used_ns: deque[int] = deque([0], maxlen=_LOOKS_A_SECOND + 1)
        sent = Load()
        while True:
            if self._authenticator is not None:
                self._authenticator.look()
            used_ns.append(self._engine.counters.device.total_ns)
            load = load_of(self._engine, used_ns[-1] - used_ns[0])
            if load != sent and not self._reporter.is_behind:
                sent = load
                self._report(Loaded(load))
            await asyncio.sleep(LOOK_EVERY_S)


def _unanswered(asked: Ask) -> Unanswered:
    return Unanswered(asked.number, f"an engine cannot answer {asked.name!r}; its log tells why")


def _bounded(pickled: bytes) -> bytes:
    if len(pickled) > _MOST_ANSWER_BYTES:
        raise ServerFault(f"the answer has {len(pickled)} bytes, and may have {_MOST_ANSWER_BYTES}")
    return pickled


def load_of(engine: Engine, used_ns: int) -> Load:
    """Returns what an engine has to do, which has used its device for so long in the last second."""
    sessions = engine.sessions.values()
    waited_ns = sum(len(each.queue) * each.queue[0].entry.row_ns for each in sessions if each.queue)
    newest = islice(reversed(engine.programs.entries.values()), _MOST_SEEN_PROGRAMS)
    held = (short_digest(each.digest) for each in newest if each.holders and not each.is_fragment)
    return Load(used_ns + waited_ns, engine.memory.live_bytes, len(sessions), tuple(islice(held, MOST_PROGRAMS)))
