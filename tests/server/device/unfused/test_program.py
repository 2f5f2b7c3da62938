"""Programs as tier 0 runs them: what is found for each op, what is missing, and what can never run."""

from __future__ import annotations

import numpy as np

from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.ops import dtypes
from fusewire_protos.programs.program import Program
from fusewire_server.device.unfused.program import NUMBER_BYTES, UnfusedProgram
from tests.kernels.programs import Writer
from tests.server.device.runs_alone import KernelDevice, RunsAlone
from tests.server.parts import EXP, NEGATIVE, chain


def prepared(runs: RunsAlone, unfused: UnfusedProgram) -> set[OneOpCall]:
    """Prepares a program. Returns the calls whose kernels are missing."""
    lacking: set[OneOpCall] = set()
    for _ in unfused.prepare(runs.one_ops, lacking):
        assert not unfused.is_ready
    return lacking


def made_ready(program: Program, runs: RunsAlone | None = None) -> UnfusedProgram:
    unfused = UnfusedProgram(program)
    assert not prepared(runs or RunsAlone(), unfused)
    assert unfused.is_ready
    return unfused


def test_ops_of_one_signature_share_their_steps() -> None:
    first, second, third = made_ready(chain(["exp", "negative", "exp"])).kinds
    assert first is third
    assert first is not second


def test_a_program_is_made_ready_one_signature_after_another() -> None:
    runs = RunsAlone()
    steps = UnfusedProgram(chain(["exp", "negative", "exp", "abs"])).prepare(runs.one_ops, set())
    assert len([*steps]) == 3


def test_what_has_been_found_is_kept_while_the_rest_is_missing() -> None:
    runs = RunsAlone(KernelDevice())
    runs.load(EXP)
    unfused = UnfusedProgram(chain(["exp", "negative"]))
    assert prepared(runs, unfused) == {NEGATIVE}
    assert not unfused.is_ready
    runs.load(NEGATIVE)
    assert prepared(runs, unfused) == set()
    assert unfused.is_ready
    assert len(unfused.kinds) == 2


def test_two_that_prepare_a_program_at_once_make_it_ready_once() -> None:
    runs, unfused = RunsAlone(), UnfusedProgram(chain(["exp", "negative", "abs"]))
    both = [unfused.prepare(runs.one_ops, set()) for _ in range(2)]
    for _ in range(4):
        for steps in both:
            next(steps, None)
    assert unfused.is_ready
    assert len(unfused.kinds) == len(unfused.dying) == 3


def test_refused_ops_are_told_apart_by_what_refuses_them() -> None:
    runs, writer = RunsAlone(KernelDevice()), Writer()
    x = writer.input(4)
    raised, negated = writer.exp(x), writer.negative(x)
    unfused = UnfusedProgram(writer.program(raised, negated, writer.negative(raised), writer.exp(negated)))
    runs.load(NEGATIVE)
    runs.one_ops.refuse(EXP, "it cannot be")
    assert not prepared(runs, unfused)
    assert unfused.refused == {"no kernel for exp: it cannot be": [0, 3]}


def test_a_refused_op_waits_for_none_of_its_other_kernels() -> None:
    runs, writer = RunsAlone(KernelDevice()), Writer()
    program = writer.program(writer.softmax(writer.input(4), axes=(0,)))
    lacking = prepared(runs, UnfusedProgram(program))
    assert len(lacking) > 1
    runs.one_ops.refuse(lacking.pop(), "it cannot be")
    assert len(made_ready(program, runs).refused) == 1


def test_numbers_lie_apart_the_scalars_before_the_constants() -> None:
    writer = Writer()
    x, whole, s = writer.input(4), writer.scalar(dtype=dtypes.int64), writer.scalar(dtype=dtypes.float16)
    program = writer.program(writer.multiply(x, s), writer.add(x, whole), writer.mean(x, axes=(0,), keepdims=False))
    unfused = made_ready(program)
    data = unfused.numbers((-3, 0.5))
    assert len(data) == (2 + sum(kind.constants for kind in unfused.kinds)) * NUMBER_BYTES
    assert np.frombuffer(data[:8], np.int64)[0] == -3
    assert np.frombuffer(data[NUMBER_BYTES : NUMBER_BYTES + 2], np.float16)[0] == 0.5


def test_constants_of_an_op_lie_where_its_kind_says() -> None:
    writer = Writer()
    x, y = writer.input(4), writer.input(5, 3)
    program = writer.program(*[writer.mean(each, axes=(0,), keepdims=False) for each in (x, y)])
    unfused = made_ready(program)
    first, second = unfused.kinds
    assert (first.first_constant, second.first_constant) == (0, first.constants)
    assert len(unfused.constants) == (first.constants + second.constants) * NUMBER_BYTES


def test_a_program_of_empty_arrays_runs() -> None:
    writer = Writer()
    x = writer.input(0, 4)
    runs = RunsAlone()
    (result,) = runs.results(writer.program(writer.sum(x, axes=(0,), keepdims=False)), [np.zeros((0, 4), np.float32)])
    assert result.tolist() == [0, 0, 0, 0]
