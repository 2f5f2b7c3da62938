"""Runs at tier 0, slice by slice: what they compute, what fails alone, and what they wait for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_server.device.orders import Lacks, NoKernel, RunIsLong
from fusewire_server.device.unfused.run import MOST_STOPS
from fusewire_server.scheduling.time_shares import Progress
from fusewire_server.sessions.session import SessionState
from tests.kernels.programs import Writer, meaning, random_inputs, random_program
from tests.server.device.runs_alone import (
    AT_ONCE_NS,
    MOST_SLICES,
    NEVER_NS,
    KernelDevice,
    RunsAlone,
    assert_same_arrays,
    end,
)
from tests.server.parts import EXP, NEGATIVE, SIZE_BYTES, VECTOR, call_of, chain, entry_of, session
from tests.strategies import Work, programs

NUMBERS = np.array([1, 2, 3, 4], np.float32)


# ---- what they compute ----


@given(st.integers(0, 1 << 30), st.sampled_from((AT_ONCE_NS, NEVER_NS)))
def test_a_random_program_gives_what_its_twins_do_and_leaves_nothing_allocated(seed: int, until_ns: int) -> None:
    runs, drawn = RunsAlone(), random_program(seed)
    inputs = random_inputs(drawn.program, seed)
    found = runs.results(drawn.program, inputs, drawn.scalars, drawn.starts, until_ns=until_ns)
    assert_same_arrays(found, meaning(drawn.program, inputs, drawn.scalars, drawn.starts))
    runs.assert_nothing_is_held()


@given(programs(), st.sampled_from((AT_ONCE_NS, NEVER_NS)))
def test_any_ops_of_the_catalogue_give_what_their_twins_do(work: Work, until_ns: int) -> None:
    runs = RunsAlone()
    found = runs.results(work.program, work.inputs, work.scalars, work.starts, until_ns=until_ns)
    assert_same_arrays(found, meaning(work.program, work.inputs, work.scalars, work.starts))
    runs.assert_nothing_is_held()


def test_rows_of_one_run_get_their_own_results() -> None:
    runs, entry = RunsAlone(), entry_of(chain())
    factors = (1, 2, 3)
    rows = [runs.row(entry, [NUMBERS * factor]) for factor in factors]
    run = runs.begin(*rows)
    end(run, AT_ONCE_NS)
    assert_same_arrays([runs.array(row.outputs[0]) for row in rows], [-NUMBERS * factor for factor in factors])


# ---- kernels that are missing ----


def test_a_run_without_kernels_says_which_it_lacks_and_who_waits_and_goes_on_once_they_come() -> None:
    runs, one, other = RunsAlone(KernelDevice()), session("one"), session("other")
    entry = entry_of(chain(["exp", "negative", "exp"]))
    run = runs.begin(runs.row(entry, [NUMBERS], owner=one), runs.row(entry, [NUMBERS], owner=other))
    assert run.go_on(NEVER_NS) is Progress.LACKS_KERNELS
    calls = frozenset([EXP, NEGATIVE])
    assert runs.reports == [RunIsLong(1), Lacks(calls, frozenset([one, other]))]
    plans = [runs.load(call).plan for call in calls]
    end(run)
    assert not run.failed
    assert {id(plan) for plan, _ in runs.device.launched} == set(map(id, plans))
    assert len(runs.device.launched) == 6


def test_a_run_that_lacks_kernels_holds_no_temporaries() -> None:
    runs = RunsAlone(KernelDevice())
    runs.load(EXP)
    run = runs.begin(runs.row(entry_of(chain(["exp", "negative"])), [NUMBERS]))
    assert run.go_on(NEVER_NS) is Progress.LACKS_KERNELS
    assert not runs.temporary_bytes


def test_runs_of_one_program_get_ready_side_by_side() -> None:
    runs, entry = RunsAlone(), entry_of(chain(["exp", "negative", "abs", "exp"]))
    rows = [runs.row(entry, [NUMBERS]), runs.row(entry, [-NUMBERS])]
    unfinished = [runs.begin(row) for row in rows]
    for _ in range(MOST_SLICES):
        unfinished = [run for run in unfinished if run.go_on(AT_ONCE_NS) is not Progress.ENDED]
    assert not unfinished
    for row, numbers in zip(rows, (NUMBERS, -NUMBERS), strict=True):
        assert_same_arrays([runs.array(row.outputs[0])], meaning(entry.program, [numbers]))


def test_a_session_that_ends_while_its_run_lacks_kernels_is_given_up() -> None:
    runs, leaving, staying = RunsAlone(KernelDevice()), session("leaving"), session("staying")
    entry = entry_of(chain(["exp"]))
    rows = [runs.row(entry, [NUMBERS], owner=owner) for owner in (leaving, staying)]
    run = runs.begin(*rows)
    assert run.go_on(NEVER_NS) is Progress.LACKS_KERNELS
    leaving.state = SessionState.CLOSED
    assert run.go_on(NEVER_NS) is Progress.LACKS_KERNELS
    assert [(failed.row, failed.case) for failed in run.failed] == [(rows[0], "cancelled")]
    assert runs.reports[-1] == Lacks(frozenset([EXP]), frozenset([staying]))
    runs.load(EXP)
    end(run)
    assert len(run.failed) == 1


# ---- what fails alone ----


def test_a_refused_call_fails_what_depends_on_it_and_names_its_op() -> None:
    runs = RunsAlone(KernelDevice())
    writer = Writer()
    x = writer.input(4)
    doubled = writer.add(x, x)
    raised = writer.exp(x)
    entry = entry_of(writer.program(doubled, raised, writer.add(doubled, raised)))
    runs.load(call_of("add", VECTOR, VECTOR))
    runs.one_ops.refuse(EXP, "it cannot be")
    rows = [runs.row(entry, [NUMBERS]), runs.row(entry, [NUMBERS])]
    run = runs.run(*rows)
    assert [(each.row, each.case, each.text, each.ops) for each in run.failed] == [
        (row, "server_fault", "no kernel for exp: it cannot be", (1,)) for row in rows
    ]
    assert [[value.block is None for value in row.outputs] for row in rows] == [[False, True, True]] * 2
    assert len(runs.device.launched) == 2


def test_a_composite_op_without_a_kernel_is_named_by_the_op_that_has_none() -> None:
    runs = RunsAlone(KernelDevice())
    writer = Writer()
    entry = entry_of(writer.program(writer.softmax(writer.input(4), axes=(0,))))
    run = runs.begin(runs.row(entry, [NUMBERS]))
    run.go_on(NEVER_NS)
    lacks = runs.reports[-1]
    assert isinstance(lacks, Lacks)
    for call in lacks.calls:
        if call.op.name == "exp":
            runs.one_ops.refuse(call, "it cannot be")
        else:
            runs.load(call)
    end(run)
    assert [(each.text, each.ops) for each in run.failed] == [("no kernel for exp: it cannot be", (0,))]


def test_a_fault_fails_its_row_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    device = KernelDevice()
    runs, entry = RunsAlone(device), entry_of(chain(["exp"]))
    runs.load(EXP)
    launch = device.launch
    rows = [runs.row(entry, [NUMBERS]) for _ in range(3)]

    def fail_first(loaded: Any, *table: Any) -> None:
        if not device.launched:
            device.launched.append((loaded.plan, 1))
            raise ValueError("a fault")
        launch(loaded, *table)

    monkeypatch.setattr(device, "launch", fail_first)
    run = runs.run(*rows)
    assert [(each.row, each.case, each.ops) for each in run.failed] == [(rows[0], "server_fault", ())]
    assert [row.outputs[0].block is None for row in rows] == [True, False, False]


def test_a_fault_in_making_a_program_ready_fails_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("a fault")

    runs, entry = RunsAlone(), entry_of(chain(["exp"]))
    monkeypatch.setattr(runs.one_ops, "find", fail)
    rows = [runs.row(entry, [NUMBERS]) for _ in range(2)]
    run = runs.run(*rows)
    assert [(each.row, each.case) for each in run.failed] == [(row, "server_fault") for row in rows]


def test_a_session_that_has_ended_is_given_up_between_two_ops() -> None:
    runs, one = RunsAlone(), session()
    row = runs.row(entry_of(chain(["exp", "negative"])), [NUMBERS], owner=one)
    run = runs.begin(row)
    while not runs.temporary_bytes:
        assert run.go_on(AT_ONCE_NS) is Progress.GOES_ON
    one.state = SessionState.CLOSED
    assert run.go_on(NEVER_NS) is Progress.ENDED
    assert [(each.row, each.case) for each in run.failed] == [(row, "cancelled")]
    runs.forget(row)
    assert runs.device.live_bytes == 0


def test_a_session_that_has_ended_is_given_up_behind_one_that_lacks_kernels() -> None:
    runs, one = RunsAlone(KernelDevice()), session("ended")
    entry = entry_of(chain(["exp"]))
    rows = [runs.row(entry, [NUMBERS]), runs.row(entry, [NUMBERS], owner=one)]
    run = runs.begin(*rows)
    assert run.go_on(NEVER_NS) is Progress.LACKS_KERNELS
    one.state = SessionState.CLOSED
    assert run.goes_on_after(NoKernel(EXP, ""))
    assert run.go_on(NEVER_NS) is Progress.LACKS_KERNELS
    assert [(each.row, each.case) for each in run.failed] == [(rows[1], "cancelled")]
    assert rows[1].outputs[0].block is None


def test_a_run_that_is_given_up_fails_all_its_rows() -> None:
    runs, entry = RunsAlone(KernelDevice()), entry_of(chain(["exp"]))
    rows = [runs.row(entry, [NUMBERS]) for _ in range(2)]
    run = runs.begin(*rows)
    assert run.go_on(NEVER_NS) is Progress.LACKS_KERNELS
    run.give_up()
    assert run.go_on(NEVER_NS) is Progress.ENDED
    assert [(each.row, each.case) for each in run.failed] == [(row, "cancelled") for row in rows]


# ---- memory ----


def test_an_op_that_finds_no_memory_fails_alone_and_other_results_come() -> None:
    runs = RunsAlone()
    writer = Writer()
    x = writer.input(4)
    wide = writer.broadcast_to(x, shape=(1000, 4))
    entry = entry_of(writer.program(writer.sum(wide, axes=(0,), keepdims=False), writer.negative(x)))
    row = runs.row(entry, [NUMBERS])
    runs.device._memory_bytes = 10 * SIZE_BYTES
    run = runs.run(row)
    assert [(each.case, each.ops) for each in run.failed] == [("out_of_memory", (0,))]
    assert row.outputs[0].block is None
    assert runs.array(row.outputs[1]).tolist() == [-1, -2, -3, -4]


def test_an_op_whose_scalar_finds_no_memory_fails_alone_and_other_results_come() -> None:
    runs = RunsAlone()
    writer = Writer()
    x, s = writer.input(4), writer.scalar()
    entry = entry_of(writer.program(writer.multiply(x, s), writer.negative(x)))
    row = runs.row(entry, [NUMBERS], (2.0,))
    runs.device._memory_bytes = 3 * SIZE_BYTES  # the input and the results
    run = runs.run(row)
    assert [(each.case, each.ops) for each in run.failed] == [("out_of_memory", (0,))]
    assert runs.array(row.outputs[1]).tolist() == [-1, -2, -3, -4]


def test_a_host_without_memory_for_making_a_program_ready_fails_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    runs, entry = RunsAlone(), entry_of(chain(["exp"]))
    rows = [runs.row(entry, [NUMBERS]) for _ in range(2)]
    with monkeypatch.context() as full:
        full.setattr(runs.one_ops, "find", fail)
        run = runs.run(*rows)
    assert [(each.row, each.case) for each in run.failed] == [(row, "out_of_memory") for row in rows]
    assert not runs.run(runs.row(entry, [NUMBERS])).failed


def test_a_run_waits_for_an_older_one_that_holds_temporaries_as_often_as_it_must() -> None:
    runs = RunsAlone()
    older = runs.memory.begin_run(lambda: None)
    row = runs.row(entry_of(chain(["exp", "negative", "abs"])), [NUMBERS])
    run = runs.begin(row)
    for _ in range(20):
        runs.device._memory_bytes = 1 << 30
        while not runs.temporary_bytes:
            assert run.go_on(AT_ONCE_NS) is Progress.GOES_ON
        held = older.allocate(SIZE_BYTES)
        runs.device._memory_bytes = runs.device.live_bytes
        assert run.go_on(NEVER_NS) is Progress.WAITS
        assert run.go_on(NEVER_NS) is Progress.WAITS
        older.give_back(held)
    runs.device._memory_bytes = 1 << 30
    end(run)
    assert run.failed == []


def test_a_younger_run_gives_way_to_an_older_one() -> None:
    runs = RunsAlone()
    run = runs.begin(runs.row(entry_of(chain(["exp", "negative", "abs"])), [NUMBERS]))
    younger = runs.memory.begin_run(lambda: younger.release())  # noqa: PLW0108 - it has no name yet
    younger.allocate(2 * SIZE_BYTES)
    runs.memory._unfinished.is_empty = False
    runs.device._memory_bytes = runs.device.live_bytes
    end(run)
    assert (run.failed, younger.size_bytes) == ([], 0)


def test_an_op_that_finds_no_memory_beside_younger_runs_alone_fails() -> None:
    runs = RunsAlone()
    run = runs.begin(runs.row(entry_of(chain(["exp", "negative", "abs"])), [NUMBERS]))
    younger = runs.memory.begin_run(lambda: None)
    younger.allocate(SIZE_BYTES // 2)
    runs.memory._unfinished.is_empty = False
    runs.device._memory_bytes = runs.device.live_bytes
    end(run)
    assert [(each.case, each.ops) for each in run.failed] == [("out_of_memory", (0,))]
    assert younger.size_bytes


def test_a_row_fails_whose_memory_values_take_again_and_again() -> None:
    runs = RunsAlone()
    run = runs.begin(runs.row(entry_of(chain(["exp"] * 6)), [NUMBERS]))
    runs.memory._unfinished.is_empty = False
    stops = 0
    while not run.failed:
        runs.device._memory_bytes = 1 << 30
        while not runs.temporary_bytes and run.go_on(AT_ONCE_NS) is Progress.GOES_ON:
            pass
        runs.device._memory_bytes = runs.device.live_bytes
        stops += bool(runs.temporary_bytes)
        if runs.temporary_bytes:
            runs.memory.give_back(runs.memory.allocate(SIZE_BYTES))
    assert stops == MOST_STOPS + 1
    assert [each.case for each in run.failed] == ["out_of_memory"]


def test_an_input_without_memory_fails_the_ops_that_depend_on_it_alone() -> None:
    runs = RunsAlone()
    writer = Writer()
    x, y = writer.input(4), writer.input(4)
    entry = entry_of(writer.program(writer.negative(writer.exp(x)), writer.negative(y)))
    row = runs.row(entry, [NUMBERS, NUMBERS])
    runs.memory.release((row.inputs[0],))
    run = runs.run(row)
    assert [(each.case, sorted(each.ops)) for each in run.failed] == [("out_of_memory", [0, 1])]
    assert row.outputs[0].block is None
    assert runs.array(row.outputs[1]).tolist() == [-1, -2, -3, -4]


def test_an_op_that_failed_in_the_first_iterations_of_a_loop_runs_in_no_later_ones() -> None:
    runs = RunsAlone()
    row = runs.loop(entry_of(chain(["exp", "negative"])), 4, [NUMBERS])
    assert row.iterations is not None
    runs.device._memory_bytes = runs.device.live_bytes + SIZE_BYTES
    first = runs.run(row, spans={row: range(2)})
    assert [each.ops for each in first.failed] == [(0,)]
    runs.device._memory_bytes = 1 << 30
    last = runs.run(row, spans={row: range(2, 4)})
    assert last.failed == []
    assert row.outputs[0].block is None
    runs.forget(row)
    assert runs.memory.count().live_bytes == 0


def test_a_run_that_waits_for_memory_is_given_up_once_its_session_has_ended() -> None:
    runs, one = RunsAlone(), session()
    row = runs.row(entry_of(chain(["exp", "negative"])), [NUMBERS], owner=one)
    older = runs.memory.begin_run(lambda: None)
    run = runs.begin(row)
    older.allocate(SIZE_BYTES)
    runs.device._memory_bytes = runs.device.live_bytes
    assert run.go_on(NEVER_NS) is Progress.WAITS
    one.state = SessionState.CLOSED
    assert run.go_on(NEVER_NS) is Progress.ENDED
    assert [each.case for each in run.failed] == ["cancelled"]


@given(st.integers(0, 1 << 30), st.integers(0, 4000))
def test_a_random_program_in_too_little_memory_gives_right_values_or_none_and_leaks_nothing(
    seed: int, spare_bytes: int
) -> None:
    runs, drawn = RunsAlone(), random_program(seed)
    inputs = random_inputs(drawn.program, seed)
    row = runs.row(entry_of(drawn.program), inputs, drawn.scalars, drawn.starts)
    runs.device._memory_bytes = runs.device.live_bytes + drawn.program.live_bytes + spare_bytes
    run = runs.begin(row)
    end(run)
    expected = meaning(drawn.program, inputs, drawn.scalars, drawn.starts)
    for value, right in zip(row.outputs, expected, strict=True):
        assert value.block is None or runs.array(value).tobytes() == right.tobytes()
    assert any(value.block is None for value in row.outputs) <= bool(run.failed)
    runs.forget(row)
    runs.assert_nothing_is_held()


@given(st.integers(0, 1 << 30), st.integers(0, 50))
def test_a_random_program_that_is_stopped_begins_again_and_gives_the_same(seed: int, slices: int) -> None:
    runs, drawn = RunsAlone(), random_program(seed)
    inputs = random_inputs(drawn.program, seed)
    row = runs.row(entry_of(drawn.program), inputs, drawn.scalars, drawn.starts)
    run = runs.begin(row)
    is_over = any(run.go_on(AT_ONCE_NS) is Progress.ENDED for _ in range(slices))
    for temporaries in runs.memory._temporaries:
        temporaries.stop()
    assert not runs.temporary_bytes
    if not is_over:
        end(run)
    found = [runs.array(value) for value in row.outputs]
    assert_same_arrays(found, meaning(drawn.program, inputs, drawn.scalars, drawn.starts))
