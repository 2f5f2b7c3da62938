"""A snapshot with one session and two programs, a control that remembers, and a client without a socket."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

import httpx
from fastapi import FastAPI

from fusewire_server.engine.launch_records import RECORD, ProgramName, Records, SessionName
from fusewire_server.inspect.control import Control
from fusewire_server.inspect.engine_thread import EngineBusy
from fusewire_server.inspect.snapshots.details import BlockView, Details
from fusewire_server.inspect.snapshots.histogram import Bucket, Histogram
from fusewire_server.inspect.snapshots.plan_views import CompiledView, GroupView, OpView, SourceView, UnfusedView
from fusewire_server.inspect.snapshots.program_view import ProgramDetail, ProgramView
from fusewire_server.inspect.snapshots.session_view import SessionView
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from fusewire_server.inspect.snapshots.stats import BackendView, KernelWaits, KernelWaitView, Stats
from fusewire_server.inspect.snapshots.tenant_account import TenantAccount
from fusewire_server.inspect.snapshots.totals import Phases, PhaseTotal, Totals
from fusewire_server.inspect.views import Arrays, ArrayView
from fusewire_server.programs.recent import EndedSession, RecentFailure, SlowSegment

KERNEL_WAITS = KernelWaits(
    kernels=1, sessions=1, oldest_s=12.5, oldest=(KernelWaitView("max", 1, ("0123456789ab",), 12.5, "no space"),)
)
STATS = Stats(
    instance="00ff",
    version="0.1.0",
    started_at="2030-01-01T00:00:00+00:00",
    backend=BackendView(name="cpu", device="2 cores", memory_bytes=1 << 30, detail="no GPU here", has_compiler=True),
    is_ready=True,
    sessions=1,
    programs=2,
    totals=Totals(ops=600, segments=3, rows=3, launches=6, submissions=2, failures={"bad_shape": 1}),
    phases=Phases(device=PhaseTotal(count=2, total_ns=5_000)),
    rows_per_launch=Histogram((Bucket(1, 1), Bucket(2, 1)), 3),
)
SESSION = SessionView(
    session="0123456789ab",
    name="ppo-worker-7",
    labels={"run": "42"},
    tenant="lab",
    peer="127.0.0.1:50000",
    client="fusewire 0.1.0",
    protocol_version=1,
    epoch=1,
    state="open",
    ops=600,
    segments=3,
    received_bytes=900,
    sent_bytes=80,
    in_flight_ops=200,
    in_flight_bytes=1024,
    in_flight_segments=1,
    live_handles=4,
    live_bytes=4096,
    unread_bytes=0,
    host_bytes=2048,
    device_ns=5_000,
    loop_ns=3_000,
    idle_s=0.25,
)


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
        form="launches" if tier else "ops",
    )


PLANNED = ProgramDetail(
    program("aa", tier=1),
    CompiledView(
        groups=(GroupView(kernel="k_add", sizes=(64,), instances=2),),
        ops=(OpView("add", "kernels", (0,)), OpView("sum", "kernels", (1,)), OpView("exp", "dead", ())),
        unfused=(UnfusedView(1, 0, "other_points"),),
        separate=(),
        reasons={"other_points": "the two are computed at different points"},
        updated=(),
        persistent=(),
        why_launched="",
        sources=(SourceView(kernel="k_add", text="void k_add(void) {}"),),
        arena_bytes=256,
        reads=((), (0,), (0,)),
    ),
)
UNPLANNED = ProgramDetail(program("bb", tier=0))
ACCOUNTS = {"lab": TenantAccount(loop_ns=3_000_000, device_ns=2_000_000_000)}
SLOW_SEGMENT = SlowSegment(
    at="2030-01-01T00:00:00.000+00:00",
    session="0123456789ab",
    program="aa",
    base=100,
    ops=200,
    iterations=1,
    tier=1,
    rows=1,
    total_s=0.02,
    queue_s=0.01,
    order_s=0.005,
    device_s=0.005,
    planning_s=0.001,
    compiling_s=0.25,
)


FAILURE = RecentFailure("2030-01-01T00:00:00.000+00:00", "0123456789ab", "bad_shape", "op 3 add: shapes differ")
ENDED = EndedSession("2030-01-01T00:00:00.000+00:00", "ffffffffffff", "eval", "lab", "fusewire 0.1.0", "goodbye", "")
SNAPSHOT = Snapshot(
    STATS,
    (SESSION,),
    (PLANNED, UNPLANNED),
    tenants=ACCOUNTS,
)
DETAILS = Details((BlockView(size_bytes=4096, free=1, live=1),), (FAILURE,), (ENDED,), (SLOW_SEGMENT,))


class FixedSnapshots:
    """Gives one snapshot; if it is busy, only as the newest one."""

    def __init__(self, snapshot: Snapshot = SNAPSHOT, *, is_busy: bool = False) -> None:
        self.snapshot = snapshot
        self._is_busy = is_busy

    def newest(self) -> Snapshot:
        return self.snapshot

    async def fresh(self) -> Snapshot:
        if self._is_busy:
            raise EngineBusy("busy")
        return replace(self.snapshot, taken_at_ns=time.monotonic_ns())


ARRAY = ArrayView(handle=7, dtype="float32", shape=(2, 3), bytes=24, state="ready", age_s=0.5, base=4, op=3)


def record(
    ended_ns: int, device_ns: int, *bits: int, program: int = 1, number: int = 1, queue_ns: float = 0.0, device: int = 0
) -> bytes:
    """The record of a submission with one row of each of these sessions."""
    mask = sum(1 << bit for bit in bits)
    halves = mask & ((1 << 64) - 1), mask >> 64
    rows = len(bits)
    return RECORD.pack(
        ended_ns, device_ns, *halves, number, 1, device_ns, queue_ns, rows, 64.0, program, rows, 1, 1, device, 0
    )


RECORDS = Records(
    device=0,
    watch=1,
    following=3,
    records=record(2_000, 1_000, 0, 1) + record(3_000, 500, 0, 1) + record(5_000, 2_000, 1, program=2),
    programs=(ProgramName(1, "aa", 400.0, 300.0), ProgramName(2, "bb", 100.0, 1_900.0)),
    sessions=(
        SessionName(0, "0123456789ab", "ppo-worker-7", "lab"),
        SessionName(1, "ffffffffffff", "theirs", "others"),
    ),
)


class RememberingControl(Control):
    """Notes what it was told, and knows the session of the snapshot."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def end_session(self, session: str) -> bool:
        self.calls.append(f"end {session}")
        return session == SESSION.session

    def log_level(self) -> str:
        return "info"

    async def set_log_level(self, level: str) -> None:
        self.calls.append(f"log {level}")

    async def arrays(self, session: str, *, after: int, limit: int) -> Arrays | None:
        if session != SESSION.session:
            return None
        return Arrays(arrays=(ARRAY,) if after < ARRAY.handle else ())

    async def details(self) -> Details:
        return DETAILS

    async def launch_records(self, positions: Iterable[tuple[int, int, int]], most: int) -> list[Records]:
        return [RECORDS] if not list(positions) else [RECORDS._replace(records=b"", programs=(), sessions=())]

    async def hold(self) -> None:
        self.calls.append("hold")

    async def release(self) -> None:
        self.calls.append("release")

    def drain(self) -> None:
        self.calls.append("drain")


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
            sent = {"content-type": "application/json"} if content is not None else {}
            return await client.request(method, path, headers={**sent, **(headers or {})}, content=content)
