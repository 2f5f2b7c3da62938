"""The table of programs: shared by bytes, bounded, and when a program is worth compiling."""

import tracemalloc
import weakref

import msgpack
import pytest

from fusewire_protos.credit import Amount
from fusewire_protos.errors import BY_NAME as CASES
from fusewire_protos.errors import CaseError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.codec import decode, encode
from fusewire_protos.programs.limits import ProgramLimits
from fusewire_protos.programs.program import ProgramOp, build
from fusewire_server.programs import program_table as programs
from fusewire_server.programs.program_table import (
    Claim,
    PlanState,
    ProgramEntry,
    ProgramTable,
    TableBounds,
    bucket,
    claim_of,
)
from tests.program_bytes import program_bytes
from tests.server.parts import VECTOR, chain, op

MALFORMED = CASES["bad_operand"]
NAMES = ("negative", "abs", "square", "sign", "floor", "ceil")


def table(*, promote_fragment_after: int = 3, **bounds: int) -> ProgramTable:
    return ProgramTable(ProgramLimits(), promote_fragment_after, TableBounds(**{"programs": 100, **bounds}))


def size_bytes(index: int) -> int:
    return ProgramEntry(b"", raw(index), decode(raw(index), ProgramLimits()), is_fragment=False).size_bytes


def raw(index: int) -> bytes:
    return encode(chain(NAMES[: index + 1]))


def test_equal_bytes_are_one_entry() -> None:
    programs = table()
    assert programs.intern(raw(0), is_fragment=False) is programs.intern(raw(0), is_fragment=False)
    assert programs.intern(raw(1), is_fragment=False) is not programs.intern(raw(0), is_fragment=False)


def test_known_new_and_dropped_programs_are_counted() -> None:
    programs = table(programs=2)
    for index in (0, 0, 1, 2):
        programs.intern(raw(index), is_fragment=False)
    assert (programs.hits, programs.misses, programs.evictions) == (1, 3, 1)


def test_bad_bytes_leave_no_entry() -> None:
    programs = table()
    with pytest.raises(CaseError):
        programs.intern(b"\xc0", is_fragment=False)
    assert not programs.entries


def test_what_is_unused_longest_goes_first() -> None:
    programs = table(programs=2)
    first, second = programs.intern(raw(0), is_fragment=False), programs.intern(raw(1), is_fragment=False)
    programs.intern(raw(0), is_fragment=False)
    third = programs.intern(raw(2), is_fragment=False)
    assert list(programs.entries.values()) == [first, third]
    assert programs.intern(raw(1), is_fragment=False) is not second


def test_what_a_session_has_numbered_stays() -> None:
    programs = table(programs=1)
    held: list[ProgramEntry] = []
    for index in range(3):
        held.append(programs.intern(raw(index), is_fragment=False))
        programs.hold("a", held[-1])
    newest = programs.intern(raw(3), is_fragment=False)
    assert list(programs.entries.values()) == [*held, newest]


def test_what_sessions_have_numbered_leaves_the_others_their_room() -> None:
    programs = table(programs=2)
    for index in range(3):
        programs.hold("a", programs.intern(raw(index), is_fragment=False))
    read_ahead = [programs.intern(raw(index), is_fragment=False) for index in (3, 4)]
    assert [programs.intern(raw(index), is_fragment=False) for index in (3, 4)] == read_ahead


def test_what_a_session_lets_go_of_counts_as_used_last() -> None:
    programs = table(programs=2)
    first, second = [programs.intern(raw(index), is_fragment=False) for index in (0, 1)]
    programs.hold("a", first)
    third = programs.intern(raw(2), is_fragment=False)
    programs.let_go("a", first)
    assert list(programs.entries.values()) == [first, third]
    assert programs.intern(raw(1), is_fragment=False) is not second


def test_what_is_new_or_used_is_to_be_shown_anew() -> None:
    programs = table()
    first = programs.intern(raw(0), is_fragment=False)
    assert programs.changed == {first}
    programs.changed.clear()
    programs.hold("a", programs.intern(raw(0), is_fragment=False))
    assert not programs.changed
    for change in (lambda: programs.use(first), lambda: first.enter(PlanState.PLANNING), lambda: first.ran(3)):
        change()
        assert programs.changed == {first}
        programs.changed.clear()


def test_nothing_keeps_a_program_that_was_dropped_while_nobody_looks() -> None:
    programs = table(programs=1)
    first = programs.intern(raw(0), is_fragment=False)
    dropped = weakref.ref(first)
    second = programs.intern(raw(1), is_fragment=False)
    first.ran(1)
    del first
    assert dropped() is None
    assert programs.changed == {second}


def test_what_nobody_holds_goes_when_all_take_too_much_memory() -> None:
    programs = table(table_bytes=size_bytes(0) + size_bytes(1))
    for index in range(2):
        programs.intern(raw(index), is_fragment=False)
    newest = programs.intern(raw(2), is_fragment=False)
    assert list(programs.entries.values()) == [newest]
    assert programs.size_bytes == size_bytes(2)


def test_a_session_that_holds_too_much_is_refused_until_it_lets_go() -> None:
    programs = table(session_bytes=size_bytes(2))
    first, second = [programs.intern(raw(index), is_fragment=False) for index in (1, 2)]
    programs.hold("a", first)
    with pytest.raises(CaseError, match=rf"limits\.held_program_bytes = {size_bytes(2)}"):
        programs.hold("a", second)
    programs.hold("b", second)
    programs.let_go("a", first)
    programs.hold("a", second)
    assert (first.holders, second.holders) == (0, 2)


def test_when_what_sessions_hold_takes_all_memory_no_more_is_held() -> None:
    programs = table(table_bytes=2 * size_bytes(2))
    for session in ("a", "b"):
        programs.hold(session, programs.intern(raw(ord(session) - ord("a")), is_fragment=False))
    refused = programs.intern(raw(2), is_fragment=False)
    with pytest.raises(CaseError, match=r"all programs .* planner\.cached_bytes"):
        programs.hold("c", refused)
    assert refused.holders == 0


def test_the_sessions_of_a_tenant_hold_half_of_the_memory_and_leave_others_theirs() -> None:
    programs = table(table_bytes=2 * (size_bytes(0) + size_bytes(1)))
    programs.quota.tenant_of = lambda session: session[0]
    entries = [programs.intern(raw(index), is_fragment=False) for index in range(3)]
    programs.hold("a1", entries[0])
    programs.hold("a2", entries[1])
    with pytest.raises(CaseError, match=r"its tenant's programs .* half of planner\.cached_bytes"):
        programs.hold("a3", entries[2])
    programs.hold("b1", entries[2])
    programs.hold("a3", entries[0])  # counts once for all of them


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


MANY = 8000
ONE, ALIKE, UNLIKE = [VECTOR], [VECTOR] * MANY, [Spec(dtypes.float32, (dim,)) for dim in range(MANY)]


@pytest.mark.parametrize(
    ("inputs", "ops"),
    [
        (ONE, [ProgramOp(BY_NAME["negative"], (index,), ()) for index in range(MANY)]),
        (ONE, [ProgramOp(BY_NAME["add"], (index, 0), ()) for index in range(MANY)]),
        (ALIKE, [ProgramOp(BY_NAME["add"], (index, index), ()) for index in range(MANY)]),
        (ONE, [ProgramOp(BY_NAME["broadcast_to"], (0,), ((dim, 4),)) for dim in range(MANY)]),
        (ALIKE, [ProgramOp(BY_NAME["add"], (0, 0), ())]),
        (UNLIKE, [ProgramOp(BY_NAME["add"], (0, 0), ())]),
        (ALIKE, [ProgramOp(BY_NAME["concat"], tuple(range(MANY)), (0,))]),
        (ONE, [ProgramOp(BY_NAME["concat"], (0,) * 4 * MANY, (0,))]),
    ],
    ids=[
        "ops",
        "ops of two",
        "ops and inputs",
        "ops that differ",
        "inputs",
        "inputs that differ",
        "one op of all inputs",
        "one op of one input",
    ],
)
def test_a_program_counts_for_about_the_memory_that_it_takes(inputs: list[Spec], ops: list[ProgramOp]) -> None:
    raw = encode(build(inputs, (), ops, (0,)))
    tracemalloc.start()
    entry = ProgramEntry(b"", raw, decode(raw, ProgramLimits()), is_fragment=False)
    assert len(entry.program.signatures) == len(entry.program.operands), "as running it op by op asks for them"
    taken_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.7 * taken_bytes < entry.size_bytes < 6 * taken_bytes


def test_a_small_program_counts_for_about_the_memory_that_it_takes() -> None:
    programs = table(programs=1 << 20)
    raws = [encode(build((Spec(dtypes.float32, (dim,)),), (), [op("negative", 0)], (0,))) for dim in range(1, 1000)]
    tracemalloc.start()
    for each in raws:
        programs.hold("a", programs.intern(each, is_fragment=False))
    taken_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.7 * taken_bytes < programs.size_bytes < 6 * taken_bytes


@pytest.mark.parametrize(("count", "upper"), [(0, 1), (1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (64, 64), (65, 128)])
def test_counts_fall_into_powers_of_two(count: int, upper: int) -> None:
    assert bucket(count) == upper


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
    monkeypatch.setattr(programs, "decode", None)
    assert claim_of(encode(chain()), ProgramLimits(), MALFORMED) == Claim.of((0,), Amount(0, 0, 1))


def test_what_rejected_bytes_claim_is_small_whatever_they_say() -> None:
    many = 200_000
    raw = program_bytes([], [], [[0, []]] * many, range(many))
    tracemalloc.start()
    claim = claim_of(raw, ProgramLimits(), MALFORMED)
    taken_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert claim.live == tuple(range(1 << 16))
    assert taken_bytes < 1 << 16


@pytest.mark.parametrize(
    "garbage",
    [b"", b"\xc1", b"\x01", b"\x90", *map(msgpack.packb, ([b""] * 7, [b"", b"", [], [], b"\0", b"", [0]]))],
)
def test_rejected_bytes_that_cannot_be_read_claim_nothing(garbage: bytes) -> None:
    assert claim_of(garbage, ProgramLimits(), MALFORMED).live == ()
