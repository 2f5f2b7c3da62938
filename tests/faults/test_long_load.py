"""Mixed load for long: what the server holds is in the last third what it was in the first.

The load is a minute long; FUSEWIRE_LOAD_S=600 makes it ten minutes.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psutil
import pytest

from fusewire._stream import resumption
from fusewire.testing import ServerProcess
from tests.bounds import Bounded
from tests.faults.costly_attackers import Order, attackers, script_of
from tests.faults.cutting_proxy import Cut, proxy_to
from tests.faults.kernel_folders import Folders
from tests.faults.mixed_load import Connect, mixed_load
from tests.faults.server import Inspector, pause, serving
from tests.patience import HANGS_S
from tests.server.costs.choosing import Round

pytestmark = pytest.mark.faults

_LOAD_S = float(os.environ.get("FUSEWIRE_LOAD_S", "60"))
_WARM_S = 15.0  # in which the caches of the server and of its libraries fill
_LOOK_S = 0.5
_SHORT, _LONG = 2, 20  # rounds of a session
# Frames that cost a server much for each byte, or in one step. `test_costly_frames` has them all, chosen by their cost.
_COSTLY = (
    Round("loop: many results kept", 64),
    Round("segment: unknown handle, all of many results", 64),
    Round("program: distinct ops", 1024),
    Round("fetch: many of one value", 1024),
    Round("upload: declared large and never sent", 256),
)
# So that the table of programs is full before the first look.
_ENVIRONMENT = {"FUSEWIRE_PLANNER__CACHED_PLANS": "100"}
_COSTLY_BYTES_A_S = 50_000.0
_CUT_AFTER_BYTES = (10_000, 3_000_000)
_MIB = 1 << 20


class Held(NamedTuple):
    """What a server and its workers hold at one time."""

    resident_bytes: float
    files: float
    threads: float
    processes: float
    sessions: float
    value_bytes: float
    programs: float


# By how much the median of the last third may exceed that of the first. Compilers and sessions come and go, and the
# allocator keeps what it has got: floods of messages leave 45 MiB, see `bystander`.
_SLACK = Held(48 * _MIB, 10, 3, 3, 2, 8 * _MIB, 100)


def _look(server: ServerProcess, inspector: Inspector) -> Held:
    process = psutil.Process(server.pid)
    sessions, value_bytes = inspector.held()
    programs: int = inspector.ask("/v1/stats")["programs"]
    return Held(
        process.memory_info().rss,
        process.num_fds(),
        process.num_threads(),
        len(process.children(recursive=True)),
        sessions,
        value_bytes,
        programs,
    )


@contextmanager
def _looking(look: Callable[[], Held]) -> Iterator[list[Held]]:
    """Looks again and again while the `with` body runs."""
    looks, stop = list[Held](), threading.Event()

    def repeat() -> None:
        while not stop.wait(_LOOK_S):
            with suppress(OSError):  # a server that is busy may not answer
                looks.append(look())

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield looks
    finally:
        stop.set()
        thread.join(HANGS_S)


def _medians(looks: list[Held]) -> Held:
    return Held(*[median(field) for field in zip(*looks, strict=True)])


def _cuts(drawn: random.Random) -> Cut:
    return Cut(drawn.randint(*_CUT_AFTER_BYTES), drawn.random() < 0.5, drawn.random() < 0.5)


@pytest.mark.timeout(_LOAD_S + HANGS_S)
def test_what_a_server_holds_stays_the_same(
    token: str,
    attacking: str,
    inspecting: str,
    token_file: Path,
    tmp_path: Path,
    bounded: Bounded,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sessions come and go, programs are new, connections break, and another tenant sends costly frames."""
    monkeypatch.setattr(resumption, "_FIRST_DELAY_S", 0.005)
    scripts = {round_.name: script_of(round_) for round_ in _COSTLY}
    environment = {**Folders(tmp_path).environment, **_ENVIRONMENT}
    with (
        attackers(1, scripts, tmp_path) as costly,
        serving(token_file, environment=environment) as server,
        proxy_to(server.grpc, partial(_cuts, random.Random(1))) as proxy,
        costly.sending(Order(server.grpc, attacking, tuple(scripts), _COSTLY_BYTES_A_S), 1),
    ):
        short, long = [Connect(server.grpc, token, rounds=each) for each in (_SHORT, _LONG)]
        cut = Connect(proxy.target, token, may_be_lost=True, rounds=_LONG, local=False)
        with mixed_load(short, short, long, cut) as seen:
            pause(_WARM_S)
            with _looking(partial(_look, server, Inspector(server, inspecting))) as looks:
                ends_at_s = time.monotonic() + _LOAD_S
                while not seen.failures and time.monotonic() < ends_at_s:
                    pause(_LOOK_S)
    third = len(looks) // 3
    first, last = _medians(looks[:third]), _medians(looks[-third:])
    assert seen.failures == []
    assert seen.losses == []
    for name, before, after, slack in zip(Held._fields, first, last, _SLACK, strict=True):
        unit = "B" if name.endswith("_bytes") else ""
        what = name.removesuffix("_bytes").replace("_", " ")
        bounded(f"growth of {what} in {_LOAD_S:.0f} s", after - before, slack, unit)
