"""The table of programs: shared by bytes, bounded, and when a program is worth compiling."""

import gc
import pickle
import tracemalloc
import weakref

import pytest

from fusewire_kernels.build import build_plan
from fusewire_protos.errors import CaseError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.codec import decode, encode
from fusewire_protos.programs.limits import ProgramLimits
from fusewire_protos.programs.program import ProgramOp, build
from fusewire_server.inspect.snapshots.plan_views import compiled_view
from fusewire_server.programs.program_table import (
    PlanState,
    ProgramEntry,
    ProgramTable,
    TableBounds,
    bucket,
    bytes_of_plan,
)
from tests.server.parts import VECTOR, chain, op

MATRIX = Spec(dtypes.float32, (4, 4))
NAMES = ("negative", "abs", "square", "sign", "floor", "ceil")


def table(*, promote_fragment_after: int = 3, **bounds: int) -> ProgramTable:
    return ProgramTable(ProgramLimits(), promote_fragment_after, TableBounds(**{"programs": 100, **bounds}))


def size_bytes(index: int) -> int:
    return ProgramEntry(b"", raw(index), decode(raw(index), ProgramLimits()), is_fragment=False).size_bytes


def raw(index: int) -> bytes:
    return encode(chain(NAMES[: index + 1]))


def intern(programs: ProgramTable, raw: bytes, *, is_fragment: bool = False) -> ProgramEntry:
    known = programs.find(raw, is_fragment=is_fragment)
    return known or programs.add(raw, decode(raw, programs.limits), is_fragment=is_fragment)


def test_equal_bytes_are_one_entry() -> None:
    programs = table()
    assert intern(programs, raw(0)) is intern(programs, raw(0))
    assert intern(programs, raw(1)) is not intern(programs, raw(0))


def test_a_program_that_two_sessions_read_at_the_same_time_is_one_entry() -> None:
    programs = table()
    first, second = [programs.add(raw(0), decode(raw(0), programs.limits), is_fragment=False) for _ in range(2)]
    assert first is second
    assert (programs.hits, programs.misses) == (1, 1)


def test_a_program_of_a_library_op_is_never_planned_and_says_why() -> None:
    program = build([MATRIX], (), [ProgramOp(BY_NAME["svdvals"], (0,), ())], [0])
    programs = table()
    entry = programs.add(encode(program), program, is_fragment=False)
    assert entry.state is PlanState.REFUSED
    assert "svdvals: the array library computes it" in entry.refusal
    assert not programs.use(entry)


def test_known_new_and_dropped_programs_are_counted() -> None:
    programs = table(programs=2)
    for index in (0, 0, 1, 2):
        intern(programs, raw(index))
    assert (programs.hits, programs.misses, programs.evictions) == (1, 3, 1)


def test_what_is_unused_longest_goes_first() -> None:
    programs = table(programs=2)
    first, second = intern(programs, raw(0)), intern(programs, raw(1))
    intern(programs, raw(0))
    third = intern(programs, raw(2))
    assert list(programs.entries.values()) == [first, third]
    assert intern(programs, raw(1)) is not second


def test_what_a_session_has_numbered_stays() -> None:
    programs = table(programs=1)
    held: list[ProgramEntry] = []
    for index in range(3):
        held.append(intern(programs, raw(index)))
        programs.hold("a", held[-1])
    newest = intern(programs, raw(3))
    assert list(programs.entries.values()) == [*held, newest]


def test_what_sessions_have_numbered_leaves_the_others_their_room() -> None:
    programs = table(programs=2)
    for index in range(3):
        programs.hold("a", intern(programs, raw(index)))
    read_ahead = [intern(programs, raw(index)) for index in (3, 4)]
    assert [intern(programs, raw(index)) for index in (3, 4)] == read_ahead


def test_what_a_session_lets_go_of_counts_as_used_last() -> None:
    programs = table(programs=2)
    first, second = [intern(programs, raw(index)) for index in (0, 1)]
    programs.hold("a", first)
    third = intern(programs, raw(2))
    programs.let_go("a", first)
    assert list(programs.entries.values()) == [first, third]
    assert intern(programs, raw(1)) is not second


def test_what_is_new_or_used_is_to_be_shown_anew() -> None:
    programs = table()
    first = intern(programs, raw(0))
    assert programs.changed == {first}
    programs.changed.clear()
    programs.hold("a", intern(programs, raw(0)))
    assert not programs.changed
    for change in (lambda: programs.use(first), lambda: first.enter(PlanState.PLANNING), lambda: first.ran(3)):
        change()
        assert programs.changed == {first}
        programs.changed.clear()


def test_nothing_keeps_a_program_that_was_dropped_while_nobody_looks() -> None:
    programs = table(programs=1)
    first = intern(programs, raw(0))
    dropped = weakref.ref(first)
    second = intern(programs, raw(1))
    first.ran(1)
    del first
    assert dropped() is None
    assert programs.changed == {second}


def test_what_nobody_holds_goes_when_all_take_too_much_memory() -> None:
    programs = table(table_bytes=size_bytes(0) + size_bytes(1))
    for index in range(2):
        intern(programs, raw(index))
    newest = intern(programs, raw(2))
    assert list(programs.entries.values()) == [newest]
    assert programs.size_bytes == size_bytes(2)


def test_a_session_that_holds_too_much_is_refused_until_it_lets_go() -> None:
    programs = table(session_bytes=size_bytes(2))
    first, second = [intern(programs, raw(index)) for index in (1, 2)]
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
        programs.hold(session, intern(programs, raw(ord(session) - ord("a"))))
    refused = intern(programs, raw(2))
    with pytest.raises(CaseError, match=r"all programs .* planner\.cached_bytes"):
        programs.hold("c", refused)
    assert refused.holders == 0


def test_the_sessions_of_a_tenant_hold_half_of_the_memory_and_leave_others_theirs() -> None:
    programs = table(table_bytes=2 * (size_bytes(0) + size_bytes(1)))
    programs.quota.tenant_of = lambda session: session[0]
    entries = [intern(programs, raw(index)) for index in range(3)]
    programs.hold("a1", entries[0])
    programs.hold("a2", entries[1])
    with pytest.raises(CaseError, match=r"its tenant's programs .* half of planner\.cached_bytes"):
        programs.hold("a3", entries[2])
    programs.hold("b1", entries[2])
    programs.hold("a3", entries[0])  # counts once for all of them


def test_a_program_is_to_be_planned_at_its_first_use() -> None:
    programs = table()
    entry = intern(programs, raw(0))
    assert programs.use(entry)
    entry.state = PlanState.PLANNING
    assert not programs.use(entry)


def test_a_fragment_is_to_be_planned_once_it_keeps_coming() -> None:
    programs = table(promote_fragment_after=3)
    entry = intern(programs, raw(0), is_fragment=True)
    assert [programs.use(entry) for _ in range(3)] == [False, False, True]


def test_a_fragment_that_comes_as_a_program_is_one() -> None:
    programs = table()
    entry = intern(programs, raw(0), is_fragment=True)
    intern(programs, raw(0))
    intern(programs, raw(0), is_fragment=True)
    assert programs.use(entry)


MANY = 4000
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
        (ONE, [ProgramOp(BY_NAME["concat"], (0,) * MANY, (0,))]),
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


@pytest.mark.parametrize(
    ("inputs", "ops", "live"),
    [
        ([VECTOR], [op("negative", 0)], 1),
        ([VECTOR], [op("exp", number) for number in range(300)], 1),
        ([VECTOR], [op("negative", 0)] * 300, 300),
        ([MATRIX], [op("matmul", number, number) for number in range(30)], 1),
    ],
    ids=["small", "many ops", "many results", "many launches"],
)
def test_a_plan_counts_for_about_the_memory_that_it_takes(inputs: list[Spec], ops: list[ProgramOp], live: int) -> None:
    program = build(inputs, (), ops, range(len(ops) - live, len(ops)))
    sent = pickle.dumps(build_plan(program, "c"))
    copies = 100
    gc.collect()  # empties Python's lists of freed objects, whose memory would be taken again without being counted
    tracemalloc.start()
    plans = [pickle.loads(sent) for _ in range(copies)]  # noqa: S301 - as a planner's answer comes
    shown = [compiled_view(plan, program) for plan in plans]
    taken_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert all(view.sources for view in shown)
    assert 0.5 * taken_bytes < copies * bytes_of_plan(plans[0]) < 2 * taken_bytes


def test_a_plan_counts_for_the_table_and_for_the_tenants_whose_sessions_hold_its_program() -> None:
    programs = table()
    entry, plan = intern(programs, raw(0)), build_plan(chain(NAMES[:1]), "c")
    programs.hold("a", entry)
    programs.add_plan(entry, plan)
    held_bytes = size_bytes(0) + bytes_of_plan(plan)
    assert (programs.size_bytes, programs.quota.tenant_bytes("a"), programs.quota.tenant_bytes("b")) == (
        held_bytes,
        held_bytes,
        0,
    )
    programs.hold("b", entry)
    assert programs.quota.tenant_bytes("b") == held_bytes
    assert (programs.let_go("a", entry), programs.let_go("b", entry)) == (0, 0)


def test_a_small_program_counts_for_about_the_memory_that_it_takes() -> None:
    programs = table(programs=1 << 20)
    raws = [encode(build((Spec(dtypes.float32, (dim,)),), (), [op("negative", 0)], (0,))) for dim in range(1, 1000)]
    tracemalloc.start()
    for each in raws:
        programs.hold("a", intern(programs, each))
    taken_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.7 * taken_bytes < programs.size_bytes < 6 * taken_bytes


@pytest.mark.parametrize(("count", "upper"), [(0, 1), (1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (64, 64), (65, 128)])
def test_counts_fall_into_powers_of_two(count: int, upper: int) -> None:
    assert bucket(count) == upper
