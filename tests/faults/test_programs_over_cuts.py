"""Drawn programs over connections that are cut: the same bytes as without cuts, and the server holds nothing after."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import fusewire as fw
from fusewire.testing import ServerProcess
from fusewire_protos.frames import INLINE_BYTES
from fusewire_server.access.tokens import Scope, mint
from tests.contract.recorded import record_loop
from tests.effort import of_a_hundred
from tests.faults.cuts import SETTLED_S, connected, cuts
from tests.faults.cutting_proxy import proxy_to
from tests.faults.server import Inspector, serving, until
from tests.patience import HANGS_S
from tests.strategies import Work, programs

pytestmark = pytest.mark.faults

_LARGE_ELEMENTS = INLINE_BYTES // 4 + 1  # of float32: they travel in calls of their own
_HALF_OPEN = 0.2


class Manner(Enum):
    """What a client does with the results of a program."""

    READ = "reads them one after another"
    FUTURES = "asks for all of them at once"
    AWAITED = "awaits them"
    CANCELLED = "asks for them, cancels, and asks again"
    DROPPED = "frees them unread"


class Job(NamedTuple):
    """A program that a client runs some times in a row, perhaps beside values that travel in calls of their own."""

    work: Work
    turns: int
    manner: Manner
    larges: int


class Plan(NamedTuple):
    """What a session does: the jobs of each of its threads, and where its connections break."""

    threads: tuple[tuple[Job, ...], ...]
    seed: int

    @property
    def most_bytes(self) -> int:
        """So many bytes that what is to pass in one piece sometimes does."""
        return 3 * INLINE_BYTES if any(job.larges for jobs in self.threads for job in jobs) else 5_000


def jobs() -> st.SearchStrategy[tuple[Job, ...]]:
    job = st.builds(Job, programs(), st.integers(1, 6), st.sampled_from(Manner), st.sampled_from([0, 0, 0, 1, 2]))
    return st.lists(job, min_size=1, max_size=3).map(tuple)


def plans() -> st.SearchStrategy[Plan]:
    return st.builds(Plan, st.lists(jobs(), min_size=1, max_size=3).map(tuple), st.integers(0, 2**32))


class Served(NamedTuple):
    """A server, the token of its client, and what an inspector sees of it."""

    server: ServerProcess
    token: str
    inspector: Inspector


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server for many small tests. In the end it holds what it held before them."""
    tokens: Path = tmp_path_factory.mktemp("served") / "tokens"
    token, inspecting = mint(tokens, tenant="quiet", scope=Scope.USE), mint(tokens, tenant="i", scope=Scope.INSPECT)
    with serving(tokens) as server:
        inspector = Inspector(server, inspecting)
        before = inspector.held()
        yield Served(server, token, inspector)
        until(lambda: inspector.held()[0] == 0, SETTLED_S)
        assert inspector.held() == before


def run_plan(plan: Plan, session: fw.Session) -> list[list[bytes]]:
    """Runs the jobs of each thread. Returns the values that each reads."""
    with ThreadPoolExecutor(len(plan.threads)) as threads:
        running = [threads.submit(run_jobs, each, session) for each in plan.threads]
        return [each.result(HANGS_S) for each in running]


def run_jobs(jobs: Sequence[Job], session: fw.Session) -> list[bytes]:
    values: list[bytes] = []
    for job in jobs:
        sources = [np.arange(_LARGE_ELEMENTS + number, dtype=np.float32) for number in range(job.larges)]
        larges = [session.array(source) * 2 for source in sources]
        for source in sources:
            source[:] = 0  # nobody may send from here what has been copied
        values += read([*record_loop(session, job.work, turns=job.turns), *larges], job.manner)
    return values


def read(arrays: Sequence[fw.Array], manner: Manner) -> list[bytes]:
    """Returns the values of arrays, unless they are dropped."""
    if manner is Manner.DROPPED:
        return []
    if manner is Manner.CANCELLED:
        for future in [array.future() for array in arrays]:
            future.cancel()
    if manner is Manner.FUTURES:
        return [future.result(HANGS_S).tobytes() for future in [array.future() for array in arrays]]
    if manner is Manner.AWAITED:
        return [value.tobytes() for value in asyncio.run(_awaited(arrays))]
    return [array.numpy(timeout=HANGS_S).tobytes() for array in arrays]


async def _awaited(arrays: Sequence[fw.Array]) -> Sequence[np.ndarray]:
    async def value(array: fw.Array) -> np.ndarray:
        return await array

    async with asyncio.timeout(HANGS_S):
        return await asyncio.gather(*map(value, arrays))


def values_of(plan: Plan, target: str, served: Served) -> list[list[bytes]]:
    """Runs a plan in a session. Returns what was read.

    Waits until the server has run each op once, and holds nothing for the session, which is still open.
    """
    before = ops_run(served.inspector)
    with connected(target, served.token) as session:
        values = run_plan(plan, session)
        ops = session.stats.ops_recorded
        until(lambda: ops_run(served.inspector) - before >= ops and holds_nothing(served.inspector))
        assert ops_run(served.inspector) - before == ops
    return values


def ops_run(inspector: Inspector) -> int:
    ops: int = inspector.ask("/v1/stats")["totals"]["ops"]
    return ops


def holds_nothing(inspector: Inspector) -> bool:
    gc.collect()
    return not any(inspector.ask("/v1/stats")["session_bytes"].values())


@pytest.mark.usefixtures("hasty")
@settings(of_a_hundred(40), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(plan=plans())
def test_a_drawn_program_is_run_once_and_gives_the_same_bytes_over_connections_that_are_cut(
    served: Served, plan: Plan
) -> None:
    wanted = values_of(plan, served.server.grpc, served)
    next_cut = cuts(plan.seed, plan.most_bytes, half_open=_HALF_OPEN)
    with proxy_to(served.server.grpc, next_cut) as proxy:
        assert values_of(plan, proxy.target, served) == wanted
