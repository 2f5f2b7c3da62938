"""What rejected program bytes claim."""

from __future__ import annotations

import tracemalloc

import msgpack
import pytest

from fusewire_protos.credit import Amount
from fusewire_protos.errors import BY_NAME as CASES
from fusewire_protos.errors import CaseError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.programs.codec import decode, encode
from fusewire_protos.programs.limits import ProgramLimits
from fusewire_protos.programs.program import ProgramOp, build
from fusewire_server.programs import claim as claims
from fusewire_server.programs.claim import Claim, claim_of
from tests.program_bytes import program_bytes
from tests.server.parts import VECTOR, chain

MALFORMED = CASES["bad_operand"]


def test_rejected_bytes_claim_each_live_result_once_and_in_range() -> None:
    raw = program_bytes([], [], [[0, []]] * 2, [1, 0, 1, 2, 255])
    assert claim_of(raw, ProgramLimits(), MALFORMED) == Claim.of((0, 1), Amount(0, 0, 1))


def test_a_program_of_too_large_arrays_claims_what_its_client_counted() -> None:
    ones = ProgramOp(BY_NAME["full"], (0,), ((1 << 16, 1 << 16), dtypes.float32.code))
    raw = encode(build((), (dtypes.float32,), (ones,), (0,)))
    limits = ProgramLimits(array_bytes=1 << 20)
    with pytest.raises(CaseError, match="quota_array_bytes"):
        decode(raw, limits)
    assert claim_of(raw, limits, CASES["quota_array_bytes"]) == Claim.of((0,), Amount(1, 1 << 34, 1), (1 << 34,))


@pytest.mark.parametrize("limits", [ProgramLimits(program_operands=8), ProgramLimits(program_ops=2)])
def test_a_program_of_too_much_claims_its_results_without_being_read(limits: ProgramLimits) -> None:
    many = ProgramOp(BY_NAME["concat"], (0,) * 3, (0,))
    raw = encode(build((VECTOR,), (), (many,) * 3, (2,)))
    assert claim_of(raw, limits, CASES["quota_program"]) == Claim.of((2,), Amount(0, 0, 1))


def test_a_program_that_breaks_a_rule_is_not_read_again_for_its_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "decode", None)
    assert claim_of(encode(chain()), ProgramLimits(), MALFORMED) == Claim.of((0,), Amount(0, 0, 1))


def test_what_rejected_bytes_claim_is_small_whatever_they_say() -> None:
    many = 200_000
    raw = program_bytes([], [], [[0, []]] * many, range(many))
    tracemalloc.start()
    claim = claim_of(raw, ProgramLimits(), MALFORMED)
    taken_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert claim.live() == [*range(1 << 16)]
    assert taken_bytes < 1 << 16


@pytest.mark.parametrize(
    "garbage",
    [b"", b"\xc1", b"\x01", b"\x90", *map(msgpack.packb, ([b""] * 7, [b"", b"", [], [], b"\0", b"", [0]]))],
)
def test_rejected_bytes_that_cannot_be_read_claim_nothing(garbage: bytes) -> None:
    assert claim_of(garbage, ProgramLimits(), MALFORMED).live() == []
