"""Serves the page."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from fusewire_protos.address import Address
from fusewire_server.access.tokens import Authenticator
from fusewire_server.engine.launch_records import Records
from fusewire_server.inspect.application import create_app
from fusewire_server.inspect.server import InspectionServer, bind
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from tests.patience import HANGS_S
from tests.server.inspect.examples import RECORDS, SESSION, SNAPSHOT, FixedSnapshots, RememberingControl, record

MANY = 200
CROWD = tuple(
    replace(SESSION, session=f"{each:012x}", name=f"worker-{each}", wait_reason="credit", live_bytes=each << 20)
    for each in range(MANY)
)
CROWDED = replace(SNAPSHOT, sessions=CROWD, stats=replace(SNAPSHOT.stats, sessions=MANY))


class Moving(FixedSnapshots):
    """Gives snapshots of a server that has done more each time."""

    async def fresh(self) -> Snapshot:
        snapshot = await super().fresh()
        totals = replace(snapshot.stats.totals, ops=snapshot.stats.totals.ops + 1_000)
        self.snapshot = replace(snapshot, stats=replace(snapshot.stats, totals=totals))
        return snapshot


class Launching(RememberingControl):
    """Tells of a hundred thousand launches in the last minute, and of a few more each time."""

    def __init__(self) -> None:
        super().__init__()
        self._has_answered = False

    async def launch_records(self, positions: object, most: int) -> list[Records]:
        now_ns = time.monotonic_ns()
        count, since_ns = (10, 10**7) if self._has_answered else (100_000, 60 * 10**9)
        step_ns = since_ns // count
        self._has_answered = True
        records = [
            record(now_ns - since_ns + each * step_ns, step_ns // 2, each % 90, (each + 1) % 90, program=1 + each % 2)
            for each in range(count)
        ]
        return [RECORDS._replace(records=b"".join(records))]


@contextmanager
def serving(
    snapshot: Snapshot = SNAPSHOT,
    *,
    authenticator: Authenticator | None = None,
    control: RememberingControl | None = None,
    port: int = 0,
) -> Iterator[str]:
    """Serves the page for a snapshot, and gives its address without a fragment."""
    app = create_app(Moving(snapshot), authenticator, control or Launching())
    server = InspectionServer(app, bind(Address("127.0.0.1", port)))
    server.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.stop(HANGS_S)
