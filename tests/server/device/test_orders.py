"""Orders by what they take: which go on in slices, and which others may let go before them."""

from __future__ import annotations

from typing import cast

import pytest

from fusewire_kernels.devices.base import Staged
from fusewire_protos.credit import NO_WORK
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_server.device.orders import (
    LARGE_BYTES,
    Order,
    Read,
    Release,
    Run,
    Submission,
    Write,
    goes_in_slices,
    is_brief,
)
from fusewire_server.sessions.session import Fetching, Value, ValueState
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
        (Read(Fetching(ONE, 1, VALUE)), True),
        (Read(Fetching(ONE, 1, LARGE)), False),
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
    [(Read(Fetching(ONE, 1, VALUE)), False), (Read(Fetching(ONE, 1, LARGE)), True), (RUN, True)],
)
def test_op_by_op_and_large_reads_go_in_slices(order: Order, expected: bool) -> None:
    assert goes_in_slices(order) is expected
