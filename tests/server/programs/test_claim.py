"""What rejected program bytes claim."""

from __future__ import annotations

import tracemalloc

import msgpack
import pytest

from fusewire_protos.credit import Amount
from fusewire_protos.in_steps import finished
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.programs.limits import ProgramLimits
from fusewire_protos.programs.program import ProgramOp, build
from fusewire_server.programs.claim import Claim, claim_of_bytes, claim_of_program
from tests.program_bytes import program_bytes

LIMITS = ProgramLimits()


def claimed(raw: bytes, limits: ProgramLimits = LIMITS) -> Claim:
    return finished(claim_of_bytes(raw, limits))


def test_rejected_bytes_claim_each_live_result_once_and_in_range() -> None:
    raw = program_bytes([], [], [[0, []]] * 2, [1, 0, 1, 2, 255])
    assert claimed(raw) == Claim.of((0, 1), Amount(0, 0, 1))


def test_a_program_that_a_quota_rejects_claims_what_its_client_counted() -> None:
    ones = ProgramOp(BY_NAME["full"], (0,), ((1 << 16, 1 << 16), dtypes.float32.code))
    program = build((), (dtypes.float32,), (ones,), (0,))
    assert claim_of_program(program) == Claim.of((0,), Amount(1, 1 << 34, 1), (1 << 34,))


def test_what_rejected_bytes_claim_is_small_whatever_they_say() -> None:
    many = 200_000
    raw = program_bytes([], [], [[0, []]] * many, range(many))
    tracemalloc.start()
    claim = claimed(raw, ProgramLimits(program_bytes=len(raw)))
    taken_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert claim.outline.live == (1 << (1 << 16)) - 1
    assert taken_bytes < 1 << 16


@pytest.mark.parametrize(
    "garbage",
    [b"", b"\xc1", b"\x01", b"\x90", *map(msgpack.packb, ([b""] * 7, [b"", b"", [], [], b"\0", b"", [0]]))],
)
def test_rejected_bytes_that_cannot_be_read_claim_nothing(garbage: bytes) -> None:
    assert claimed(garbage).outline.live == 0


def test_bytes_beyond_the_limit_are_not_read_and_claim_nothing() -> None:
    raw = program_bytes([], [], [[0, []]] * 2, [0, 1])
    assert claimed(raw, ProgramLimits(program_bytes=len(raw) - 1)).outline.live == 0
