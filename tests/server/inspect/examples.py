"""A snapshot with one session and two programs, a control that remembers, and a client without a socket."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace

import httpx
from fastapi import FastAPI

from fusewire_server.inspect.live_views import ArrayPage, PoolView, QueueView, SlowLog
from fusewire_server.inspect.loop_calls import LoopBusy
from fusewire_server.inspect.routes import examples
from fusewire_server.inspect.routes.sources import SettingView, Sources
from fusewire_server.inspect.snapshot import (
    CompiledView,
    GroupView,
    ProgramDetail,
    ProgramView,
    Snapshot,
    SourceView,
)

STATS, SESSION = examples.STATS, examples.SESSION


def program(digest: str, *, tier: int) -> ProgramView:
    return ProgramView(
        digest=digest,
        is_fragment=False,
        ops=200,
        tier=tier,
        state="loaded" if tier else "planning",
        hits=3,
        rows=3,
        submissions=2,
        row_ns=2_500,
        planning_ns=10_000,
        compiling_ns=20_000,
        refusal="",
    )


PLANNED = ProgramDetail(
    program("aa", tier=1),
    CompiledView(
        groups=(GroupView(kernel="k_add", sizes=(64,), instances=2),),
        explanation=("ops 0 to 4 run as one kernel",),
        sources=(SourceView(kernel="k_add", text="void k_add(void) {}"),),
        arena_bytes=256,
    ),
)
UNPLANNED = ProgramDetail(program("bb", tier=0))
SNAPSHOT = Snapshot(STATS, (SESSION,), (PLANNED, UNPLANNED))


class FixedSnapshots:
    """Gives one snapshot; if it is busy, only as the newest one."""

    def __init__(self, snapshot: Snapshot = SNAPSHOT, *, is_busy: bool = False) -> None:
        self.snapshot = snapshot
        self._is_busy = is_busy

    def newest(self) -> Snapshot:
        return self.snapshot

    async def fresh(self) -> Snapshot:
        if self._is_busy:
            raise LoopBusy("busy")
        return replace(self.snapshot, taken_at_ns=time.monotonic_ns())


class RememberingControl:
    """Notes what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self._log_level = "info"

    def hold(self) -> None:
        self.told.append("hold")

    def release(self) -> None:
        self.told.append("release")

    def drain(self) -> None:
        self.told.append("drain")

    def end_session(self, session: str) -> None:
        self.told.append(f"end {session}")

    def log_level(self) -> str:
        return self._log_level

    def set_log_level(self, level: str) -> None:
        self._log_level = level


class FixedQuestions:
    """Gives the answers of the examples; if it is busy, none."""

    def __init__(self, *, is_busy: bool = False) -> None:
        self._is_busy = is_busy

    async def arrays(self, session: str, after: int, limit: int) -> ArrayPage | None:
        self._refuse_if_busy()
        return examples.ARRAYS if session == SESSION.session else None

    def pool(self) -> PoolView:
        return examples.POOL

    async def queue(self) -> QueueView:
        self._refuse_if_busy()
        return examples.QUEUE

    async def slow_log(self, limit: int) -> SlowLog:
        self._refuse_if_busy()
        return examples.SLOW_LOG

    def _refuse_if_busy(self) -> None:
        if self._is_busy:
            raise LoopBusy("busy")


def sources(
    snapshots: FixedSnapshots | None = None,
    control: RememberingControl | None = None,
    settings: Mapping[str, SettingView] | None = None,
    *,
    is_busy: bool = False,
) -> Sources:
    """What an application answers from."""
    return Sources(
        snapshots or FixedSnapshots(is_busy=is_busy),
        FixedQuestions(is_busy=is_busy),
        control or RememberingControl(),
        settings or {},
    )


class Client:
    """Calls an application in this thread."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app

    def get(self, path: str) -> httpx.Response:
        return self.request("GET", path)

    def post(self, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        return self.request("POST", path, headers)

    def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, content: bytes | None = None
    ) -> httpx.Response:
        return asyncio.run(self._request(method, path, headers, content))

    async def _request(
        self, method: str, path: str, headers: Mapping[str, str] | None, content: bytes | None
    ) -> httpx.Response:
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://fusewire") as client:
            return await client.request(method, path, headers=headers, content=content)
