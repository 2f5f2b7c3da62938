"""The engine processes of a server: how they start, what they are asked, and what is known of one that ends."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fusewire_protos.errors import ConfigurationError, ServerFault
from fusewire_server.config.config import Config, Device, Listen
from fusewire_server.engines.engines import EngineGone, Engines
from fusewire_server.engines.inspection import EnginesSnapshots, InFront
from fusewire_server.inspect.engine_thread import EngineBusy
from fusewire_server.processes import children
from tests.server.world import DEADLINE_S, run, until

pytestmark = pytest.mark.faults  # processes are started and killed
CONFIG = Config(device=Device(backend="null"))
BROKEN = {"PYTHONHOME": "/no/such/folder"}  # the interpreter of such a process does not start


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "START_AGAIN_S", 0.01)


class Events:
    """How often anything has changed, and what was broken."""

    def __init__(self) -> None:
        self.changes = 0
        self.broken: list[BaseException] = []

    def change(self) -> None:
        self.changes += 1


@asynccontextmanager
async def started(
    devices: Mapping[int, Mapping[str, str]], config: Config = CONFIG
) -> AsyncIterator[tuple[Engines, Events]]:
    events = Events()
    engines = Engines(config, devices, events.change, events.broken.append)
    try:
        async with asyncio.timeout(DEADLINE_S):
            await engines.start()
            yield engines, events
    finally:
        await engines.stop(1.0)


def pid_of(engines: Engines, place: int) -> int:
    process = engines.all[place].child._process
    assert process is not None
    return process.pid


def test_each_device_has_an_engine_with_a_socket_of_its_own() -> None:
    async def test() -> None:
        async with started({0: {}, 3: {}}) as (engines, _):
            assert [each.device for each in engines.at] == [0, 3]
            assert len({each.name for each in engines.at} | {each.secret for each in engines.at}) == 4
            assert await engines.ask("end_session", shown="none") == [False, False]
            assert await engines.ask("handles", shown="none") == [None, None]

    run(test())


def test_a_question_that_an_engine_cannot_answer_is_refused_and_later_ones_are_answered() -> None:
    async def test() -> None:
        async with started({0: {}, 1: {}}) as (engines, _):
            for name, arguments in (("weather", {}), ("handles", {"of": "none"})):
                with pytest.raises(EngineBusy, match=f"an engine cannot answer '{name}'"):
                    await engines.ask(name, **arguments)
            assert await engines.ask("handles", shown="none") == [None, None]

    run(test())


def test_an_engine_that_does_not_understand_a_command_is_started_again() -> None:
    async def test() -> None:
        async with started({0: {}, 1: {}}) as (engines, _):
            before = engines.all[1].at
            engines.all[1].child.tell(b'["Dance", []]\n')
            await until(lambda: engines.all[1].at not in {None, before})
            assert await engines.ask("handles", shown="none") == [None, None]

    run(test())


def test_a_device_that_cannot_start_hinders_no_other_and_is_told_of() -> None:
    async def test() -> None:
        async with started({0: BROKEN, 1: {}}) as (engines, events):
            assert [each.device for each in engines.at] == [1]
            snapshots = EnginesSnapshots(engines, InFront({}))
            snapshot = await snapshots.take()
            assert snapshots.newest is snapshot
            assert snapshot.stats.is_ready
            unready, ready = snapshot.stats.devices
            assert (ready.number, ready.is_ready, ready.trouble) == (1, True, "")
            assert (unready.number, unready.is_ready) == (0, False)
            assert unready.trouble.startswith("the engine of device 0 has ended with status ")
            assert events.broken == []

    run(test())


def test_if_none_can_start_the_first_reason_is_raised(tmp_path: Path) -> None:
    async def test() -> None:
        with pytest.raises(ServerFault, match=r"^the engine of device 0 has ended with status "):
            async with started({0: BROKEN, 1: BROKEN}):
                pass
        lacking = Config(listen=Listen(token_file=tmp_path / "lacking"), device=CONFIG.device)
        with pytest.raises(ConfigurationError, match=f"^cannot read the token file {tmp_path}/lacking: "):
            async with started({0: {}, 1: {}}, lacking):
                pass

    run(test())


def test_an_engine_that_is_killed_is_started_again_and_its_counters_are_kept() -> None:
    async def test() -> None:
        async with started({0: {}, 1: {}}) as (engines, events):
            snapshots = EnginesSnapshots(engines, InFront({}))
            await snapshots.take()
            before = engines.all[1].at
            os.kill(pid_of(engines, 1), signal.SIGSTOP)
            asked = asyncio.ensure_future(engines.all[1].ask("handles", shown="none"))
            await asyncio.sleep(0)
            os.kill(pid_of(engines, 1), signal.SIGKILL)
            with pytest.raises(EngineGone):
                await asked
            assert len(engines.at) == 1
            assert engines.all[1].left is not None
            await until(lambda: len(engines.at) == 2)
            assert engines.all[1].at != before
            assert all(each.is_ready for each in (await snapshots.take()).stats.devices)
            assert events.changes >= 4
            assert events.broken == []

    run(test())


def test_the_server_is_told_when_none_is_left() -> None:
    async def test() -> None:
        async with started({0: {}, 1: {}}) as (engines, events):
            pids = [pid_of(engines, place) for place in range(2)]
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            await until(lambda: events.broken)
            assert str(events.broken[0]) == "no engine is left"

    run(test())


def test_an_engine_that_drains_says_when_no_session_is_left() -> None:
    async def test() -> None:
        async with started({0: {}, 1: {}}) as (engines, _):
            await engines.drain(DEADLINE_S)
            snapshot = (await engines.all[0].snapshot()).snapshot
            assert snapshot is not None
            assert snapshot.stats.is_draining

    run(test())


def test_without_an_engine_a_question_has_no_answer() -> None:
    async def test() -> None:
        with pytest.raises(EngineBusy, match="no engine answers"):
            await Engines(CONFIG, {0: {}}, lambda: None, lambda _: None).ask("handles", shown="none")

    run(test())
