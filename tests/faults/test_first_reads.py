"""The first read of each op waits for no compiler, on a server that has nothing but the packs of kernels."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

import fusewire as fw
from fusewire_kernels.compile.binary_cache import CACHE_VARIABLE
from fusewire_kernels.ops import small_matrices
from fusewire_kernels.unfused.all_calls import all_calls
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import OPS
from fusewire_protos.ops.op import Category, Op
from fusewire_protos.ops.shapes import Spec
from tests.attributes import sample_attributes
from tests.bounds import Bounded
from tests.contract.recorded import record_loop
from tests.contract.rows import random_row
from tests.faults.busy_machine import busy_processes
from tests.faults.server import serving
from tests.strategies import Work

pytestmark = pytest.mark.faults

_WARM_READS = 7
# What a first read may take: some warm reads and a time.
_MOST_WARM_READS = 3
_MOST_MORE_S = 0.005
MOST_BESIDE_BUSY_PROCESSES_S = 2.0
_OF_OTHERS = {"transpose", "strided", "assign_strided"}  # the kernels of other views copy for them
_SERVERS = 8  # an op is slow if it is slow on each of them, because now and then another process takes the time


class FirstRead(NamedTuple):
    op: str
    first_s: float
    warm_s: float

    @property
    def share(self) -> float:
        """How much of the time that it may take it takes."""
        return self.first_s / (_MOST_WARM_READS * self.warm_s + _MOST_MORE_S)


def first_reads(session: fw.Session) -> Iterator[FirstRead]:
    """Reads a result of each op, for the first time and then again and again."""
    for name, call in _calls().items():
        work = random_row(call.program(), seed=1)
        first_s = _read_s(session, work)
        warm_s = median([_read_s(session, work) for _ in range(_WARM_READS)])
        yield FirstRead(name, first_s, warm_s)


def _read_s(session: fw.Session, work: Work) -> float:
    began_s = time.perf_counter()
    record_loop(session, work, turns=1)[0].numpy()
    return time.perf_counter() - began_s


def _calls() -> dict[str, OneOpCall]:
    """A call of each op, of float32 if there is one."""
    calls: dict[str, OneOpCall] = {}
    for call in sorted(all_calls(), key=lambda call: any(spec.dtype is not dtypes.float32 for spec in call.operands)):
        calls.setdefault(call.op.name, call)
    return calls | {op.name: _composite_call(op) for op in OPS if op.category is Category.COMPOSITE}


def _composite_call(op: Op) -> OneOpCall:
    numbers = (Spec(dtypes.float32, ()),) * (op.least_operands - 1)
    return OneOpCall(op, (Spec(dtypes.float32, (4, 8)), *numbers), sample_attributes(op, axes=(1,)))


@contextmanager
def fresh_session(token: str, token_file: Path, cache: Path) -> Iterator[fw.Session]:
    """A session with a server whose cache of kernels is empty. What servers and clients do once is done."""
    cache.mkdir(mode=0o700)
    with (
        serving(token_file, environment={CACHE_VARIABLE: str(cache)}) as server,
        fw.connect(server.grpc, token=token) as session,
    ):
        (session.array([1.0]) * 2.0).numpy()
        yield session


def test_there_is_a_call_of_each_op() -> None:
    planned = {op.name for op in OPS if op.category is not Category.LIBRARY} | small_matrices.NAMES
    assert {*_calls()} == planned - _OF_OTHERS


def test_a_first_read_takes_little_longer_than_a_warm_one(
    token: str, token_file: Path, tmp_path: Path, bounded: Bounded
) -> None:
    shares = dict.fromkeys(_calls(), float("inf"))
    for number in range(_SERVERS):
        if max(shares.values()) > 1:
            with fresh_session(token, token_file, tmp_path / str(number)) as session:
                shares |= {read.op: min(shares[read.op], read.share) for read in first_reads(session)}
    slowest = max(shares, key=lambda op: shares[op])
    bounded(f"first read of the slowest op ({slowest}) / what it may take", shares[slowest], 1.0, "×")


def test_a_first_read_beside_busy_processes_takes_at_most_two_seconds(
    token: str, token_file: Path, tmp_path: Path, bounded: Bounded
) -> None:
    with fresh_session(token, token_file, tmp_path / "cache") as session, busy_processes():
        first_s = max(read.first_s for read in first_reads(session))
    bounded("longest first read beside busy processes", first_s, MOST_BESIDE_BUSY_PROCESSES_S, "s")
