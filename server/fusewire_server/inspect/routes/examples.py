"""Examples of answers, for the OpenAPI document. No field is null, because FastAPI leaves such fields out."""

from __future__ import annotations

from fusewire_server.inspect.live_views import (
    ArrayPage,
    ArrayView,
    BlockView,
    PoolView,
    QueuedProgram,
    QueuedTenant,
    QueueView,
    SlowEntry,
    SlowLog,
    SlowPhases,
)
from fusewire_server.inspect.snapshot import (
    BackendView,
    Bucket,
    CompiledView,
    GroupView,
    Histogram,
    Memory,
    Phases,
    PhaseTotal,
    Process,
    ProgramDetail,
    ProgramView,
    SessionView,
    SourceView,
    Stats,
    Totals,
)

_DIGEST = "5c" * 16

STATS = Stats(
    instance="00ff" * 8,
    version="0.1.0",
    started_at="2030-01-01T00:00:00+00:00",
    backend=BackendView(name="cpu", device="2 cores", memory_bytes=1 << 30, detail="no GPU here", has_compiler=True),
    is_ready=True,
    sessions=1,
    programs=1,
    totals=Totals(ops=600, segments=3, rows=3, launches=6, submissions=2, failures={"bad_shape": 1}),
    phases=Phases(device=PhaseTotal(count=2, total_ns=5_000)),
    memory=Memory(live_bytes=4096, peak_bytes=8192, pool_bytes=4096),
    process=Process(resident_bytes=80 << 20, open_files=20, threads=12, tasks=5),
    rows_per_launch=Histogram((Bucket(1, 1), Bucket(2, 1)), 3),
)
SESSION = SessionView(
    session="0123456789ab",
    tenant="lab",
    peer="ipv4:127.0.0.1:50000",
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
    live_handles=1,
    live_bytes=4096,
    unread_bytes=0,
    device_ns=5_000,
    idle_s=0.25,
)
SESSIONS = {"sessions": [SESSION], "next": SESSION.session}
TENANTS = {
    "tenants": [
        {
            "tenant": "lab",
            "sessions": 1,
            "in_flight_ops": 200,
            "live_handles": 1,
            "live_bytes": 4096,
            "unread_bytes": 0,
            "device_ns": 5_000,
        }
    ],
    "next": "lab",
}
ENDING = {"session": "0123456789ab", "is_ending": True}
ARRAYS = ArrayPage(
    (ArrayView(handle=12, dtype="float32", shape=(4, 16), bytes=256, age_s=0.5, base=10, op=2, state="ready"),),
    12,
)
_PROGRAM = ProgramView(
    digest=_DIGEST,
    is_fragment=False,
    ops=200,
    tier=1,
    state="loaded",
    hits=3,
    rows=3,
    submissions=2,
    row_ns=2_500,
    planning_ns=10_000,
    compiling_ns=20_000,
    refusal="",
)
PROGRAMS = {"programs": [_PROGRAM], "next": _DIGEST}
PROGRAM = ProgramDetail(
    _PROGRAM,
    CompiledView(
        groups=(GroupView(kernel="k_add", sizes=(64,), instances=2),),
        explanation=("ops 0 to 4 run as one kernel",),
        sources=(SourceView(kernel="k_add", text="void k_add(void) {}"),),
        arena_bytes=256,
    ),
)
POOL = PoolView(
    live_bytes=4096, peak_bytes=8192, pool_bytes=4096, free_bytes=(1 << 30) - 4096, blocks=(BlockView(4096, 1, 1),)
)
QUEUE = QueueView(
    rows=3,
    tenants=(QueuedTenant(tenant="lab", rows=3, device_ns=5_000),),
    programs=(QueuedProgram(digest=_DIGEST, rows=3),),
    orders_in_flight=2,
)
SLOW_LOG = SlowLog(
    0.01,
    (
        SlowEntry(
            at="2030-01-01T00:00:00.000+00:00",
            session="0123456789ab",
            program=_DIGEST,
            base=10,
            op=0,
            tier=0,
            rows=2,
            ops=2,
            total_s=0.06,
            phases=SlowPhases(queue_s=0.02, device_s=0.04),
        ),
    ),
)
