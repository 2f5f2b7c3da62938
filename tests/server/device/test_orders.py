"""Orders by what they take: which go on in slices, and which others may let go before them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from fusewire_kernels.devices.base import LoadedPlan, Staged
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.credit import NO_WORK
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_server.device.orders import (
    LARGE_BYTES,
    SHORT_BYTES,
    SHORT_LAUNCHES,
    SHORT_VALUES,
    NoKernel,
    Order,
    Read,
    Release,
    Run,
    Submission,
    Write,
    goes_in_slices,
    is_brief,
    is_short,
)
from fusewire_server.sessions.session import PendingFetch, Row, Value, ValueState
from tests.server.parts import VECTOR, VECTOR_BYTES, chain, entry_of, session

ONE = session("a")
VALUE = Value(1, VECTOR, ValueState.READY)
LARGE = Value(2, Spec(dtypes.uint8, (LARGE_BYTES + 1,)), ValueState.READY)
STAGED = cast("Staged", object())
ENTRY = entry_of(chain())
RUN = Run(1, Submission(ENTRY, None, {}, (), ()))


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (Read(PendingFetch(ONE, 1, VALUE)), True),
        (Read(PendingFetch(ONE, 1, LARGE)), False),
        (Write(ONE, VALUE, VECTOR_BYTES, NO_WORK), True),
        (Write(ONE, VALUE, STAGED, NO_WORK), False),
        (Release(frozenset([ONE]), (VALUE,)), True),
        (RUN, False),
    ],
)
def test_what_is_bounded_by_a_frame_is_brief(order: Order, expected: bool) -> None:
    assert is_brief(order) is expected


@pytest.mark.parametrize(
    ("order", "expected"),
    [(Read(PendingFetch(ONE, 1, VALUE)), False), (Read(PendingFetch(ONE, 1, LARGE)), True), (RUN, True)],
)
def test_op_by_op_and_large_reads_go_in_slices(order: Order, expected: bool) -> None:
    assert goes_in_slices(order) is expected


def run_of(rows: int, *, iterations: int = 1, is_planned: bool = True, launches: int = 1) -> Run:
    """A run of so many rows of a program with one input and one result."""
    spans = {Row(ONE, ENTRY, 1, [VALUE], [], (), (), 0): range(iterations) for _ in range(rows)}
    loaded = SimpleNamespace(plan=SimpleNamespace(launches=(None,) * launches)) if is_planned else None
    return Run(1, Submission(ENTRY, cast("LoadedPlan | None", loaded), spans, (), ()))


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (run_of(SHORT_VALUES // 2), True),
        (run_of(SHORT_VALUES // 2 + 1), False),
        (run_of(1, iterations=2), False),
        (run_of(1, is_planned=False), False),
        (run_of(1, launches=SHORT_LAUNCHES), True),
        (run_of(1, launches=SHORT_LAUNCHES + 1), False),
        (Read(PendingFetch(ONE, 1, VALUE)), True),
        (Read(PendingFetch(ONE, 1, LARGE)), False),
        (Write(ONE, VALUE, bytes(SHORT_BYTES), NO_WORK), True),
        (Write(ONE, VALUE, bytes(SHORT_BYTES + 1), NO_WORK), False),
        (Write(ONE, VALUE, STAGED, NO_WORK), False),
        (Release(frozenset([ONE]), (VALUE,) * SHORT_VALUES), True),
        (Release(frozenset([ONE]), (VALUE,) * (SHORT_VALUES + 1)), False),
        (NoKernel(cast("OneOpCall", object()), "why"), False),
    ],
)
def test_what_takes_a_gpu_no_long_launch_is_short(order: Order, expected: bool) -> None:
    assert is_short(order) is expected
