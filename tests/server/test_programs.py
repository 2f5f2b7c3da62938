"""The table of programs: shared by bytes, bounded, and when a program is worth compiling."""

import pytest

from fusewire_protos import dtypes
from fusewire_protos.catalogue import BY_NAME
from fusewire_protos.errors import CaseError
from fusewire_protos.program import ProgramLimits, ProgramOp, build, decode, encode
from fusewire_server.programs import Claim, PlanState, ProgramEntry, ProgramTable, bucket, claim_of
from fusewire_server.work import Amount
from tests.server.parts import addition, chain

NAMES = ("negative", "abs", "square", "sign", "floor", "ceil")


def table(*, capacity: int = 100, promote_fragment_after: int = 3) -> ProgramTable:
    return ProgramTable(ProgramLimits(), promote_fragment_after, capacity)


def raw(index: int) -> bytes:
    return encode(chain(NAMES[: index + 1]))


def test_equal_bytes_are_one_entry() -> None:
    programs = table()
    assert programs.intern(raw(0), is_fragment=False) is programs.intern(raw(0), is_fragment=False)
    assert programs.intern(raw(1), is_fragment=False) is not programs.intern(raw(0), is_fragment=False)


def test_bad_bytes_leave_no_entry() -> None:
    programs = table()
    with pytest.raises(CaseError):
        programs.intern(b"\xc0", is_fragment=False)
    assert not programs.entries


def test_what_is_unused_longest_goes_first() -> None:
    programs = table(capacity=2)
    first, second = programs.intern(raw(0), is_fragment=False), programs.intern(raw(1), is_fragment=False)
    programs.intern(raw(0), is_fragment=False)
    third = programs.intern(raw(2), is_fragment=False)
    assert list(programs.entries.values()) == [first, third]
    assert programs.intern(raw(1), is_fragment=False) is not second


def test_what_a_session_has_numbered_stays() -> None:
    programs = table(capacity=1)
    held: list[ProgramEntry] = []
    for index in range(3):
        held.append(programs.intern(raw(index), is_fragment=False))
        held[-1].holders = 1
    newest = programs.intern(raw(3), is_fragment=False)
    assert list(programs.entries.values()) == [*held, newest]


def test_a_program_is_to_be_planned_at_its_first_use() -> None:
    programs = table()
    entry = programs.intern(raw(0), is_fragment=False)
    assert programs.use(entry)
    entry.state = PlanState.PLANNING
    assert not programs.use(entry)


def test_a_fragment_is_to_be_planned_once_it_keeps_coming() -> None:
    programs = table(promote_fragment_after=3)
    entry = programs.intern(raw(0), is_fragment=True)
    assert [programs.use(entry) for _ in range(3)] == [False, False, True]


def test_a_fragment_that_comes_as_a_program_is_one() -> None:
    programs = table()
    entry = programs.intern(raw(0), is_fragment=True)
    programs.intern(raw(0), is_fragment=False)
    programs.intern(raw(0), is_fragment=True)
    assert programs.use(entry)


@pytest.mark.parametrize(("count", "upper"), [(0, 1), (1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (64, 64), (65, 128)])
def test_counts_fall_into_powers_of_two(count: int, upper: int) -> None:
    assert bucket(count) == upper


def test_rejected_bytes_claim_each_live_result_once_and_in_range() -> None:
    inputs, scalars, ops = b"\x90", b"\x90", b"\x92\x90\x90"
    raw = b"\x94" + inputs + scalars + ops + b"\x95\x01\x00\x01\x02\xff"
    assert claim_of(raw, ProgramLimits()) == Claim((0, 1), Amount(0, 0, 1))


def test_a_program_that_is_only_too_large_claims_what_its_client_counted() -> None:
    ones = ProgramOp(BY_NAME["full"], (0,), ((1 << 16, 1 << 16), dtypes.float32.code))
    raw = encode(build((), (dtypes.float32,), (ones,), (0,)))
    limits = ProgramLimits(array_bytes=1 << 20)
    with pytest.raises(CaseError, match="quota_array_bytes"):
        decode(raw, limits)
    assert claim_of(raw, limits) == Claim((0,), Amount(1, 1 << 34, 1))


@pytest.mark.parametrize(
    "garbage", [b"", b"\xc1", b"\x01", b"\x90", b"\x94\x90\x90\x00\x91\x00", b"\x94\x90\x90\x90\x07"]
)
def test_rejected_bytes_that_cannot_be_read_claim_nothing(garbage: bytes) -> None:
    assert claim_of(garbage, ProgramLimits()).live == ()


def test_measured_time_is_smoothed() -> None:
    entry = ProgramEntry(b"", b"", addition(), is_fragment=False)
    entry.measured(800)
    entry.measured(1600)
    assert entry.row_ns == 900
