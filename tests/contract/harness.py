"""Runs programs on a device, through the real compiler, in every manner in which a server may run them.

A runner keeps the plans it has made. `prepare` plans whatever it is told of and compiles all kernels that are missing
together: a compiler started once costs little more for many kernels than for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from fusewire_kernels.build import build_plan, plan_from
from fusewire_kernels.codegen.dialect import dialect_of
from fusewire_kernels.compile.dialect_compilers import compiler_of
from fusewire_kernels.devices.base import Block, Device, LoadedPlan
from fusewire_kernels.plan.plan import ROWS_THAT_CHOOSE, KernelSource, Plan
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_kernels.unfused.steps import steps_of
from fusewire_kernels.unfused.twins import has_same_bits
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.ops.signatures import signature_of
from fusewire_protos.programs.codec import encode
from fusewire_protos.programs.program import Program
from tests.contract.pieces import Piece, pieces_of, run_in_pieces
from tests.contract.rows import random_rows
from tests.kernels.launching import RowSlots, launch_rows
from tests.kernels.op_by_op import by_twin, in_steps, run_op_by_op
from tests.kernels.separate import design_separately
from tests.strategies import Work
from tests.tolerances import assert_same_bytes

Array = npt.NDArray[Any]

ROWS = (7, 64)  # of a launch; one is what everything else is compared with
_RUBBISH = 0xA5


class Manner(NamedTuple):
    """How a plan is made and run. `shift_bytes` is how far arrays lie behind the device's own alignment.

    Kernels load up to 16 bytes at once, from addresses that are multiples of 16.
    """

    is_fused: bool = True
    is_donated: bool = False
    shift_bytes: int = 0


FUSED = Manner()
UNFUSED = Manner(is_fused=False)
DONATED = Manner(is_donated=True)
SHIFTED = Manner(shift_bytes=16)
_MANNERS_OF_ROWS = {"fused": FUSED, "unfused": UNFUSED, "donated": DONATED}


class Job(NamedTuple):
    """A plan to be made."""

    program: Program
    is_fused: bool

    @property
    def key(self) -> tuple[bytes, bool]:
        return encode(self.program), self.is_fused


def _plan_of(job: Job, dialect: str) -> Plan:
    if job.is_fused:
        return build_plan(job.program, dialect)
    return plan_from(dialect, design_separately(job.program, for_gpu=dialect_of(dialect).for_gpu), ROWS_THAT_CHOOSE)


class Runner:
    """Plans, loads and runs programs on one device. Used by one thread."""

    def __init__(self, device: Device) -> None:
        assert device.info.dialect is not None, "the device has no compiler"
        self.device = device
        self._dialect = device.info.dialect
        self._compiler = compiler_of(device.info.dialect, device.info.architecture)
        self._ready: dict[tuple[bytes, bool], LoadedPlan] = {}

    def prepare(self, jobs: Iterable[Job]) -> None:
        """Makes, compiles and loads all these plans that are not yet there."""
        wanted = {job.key: job for job in jobs}
        plans = {key: _plan_of(job, self._dialect) for key, job in wanted.items() if key not in self._ready}
        sources = {source.text: source for plan in plans.values() for source in plan.kernels}
        paths = dict(zip(sources, self._compiler.compile(list(sources.values())).paths, strict=True))
        for key, plan in plans.items():
            self._ready[key] = self.device.load(plan, [paths[source.text] for source in plan.kernels])

    def heirs(self, program: Program) -> dict[int, int]:
        """Which input each result of the fused plan is written over when donated, by position."""
        return _heirs(self.loaded(program).plan)

    def run(self, work: Work, manner: Manner = FUSED) -> list[Array]:
        """The live results of one row."""
        return self.run_rows([work], manner)[0]

    def run_rows(self, rows: Sequence[Work], manner: Manner = FUSED) -> list[list[Array]]:
        """The live results of rows of one program, all in the same launches where the arena holds them."""
        loaded = self.loaded(rows[0].program, is_fused=manner.is_fused)
        fit = max(1, min(len(rows), self.device.rows_that_fit(loaded.plan.arena_bytes)))
        results = []
        for begin in range(0, len(rows), fit):
            with _Buffers(self.device, manner.shift_bytes) as buffers:
                results += self._run_together(loaded, rows[begin : begin + fit], manner, buffers)
        return results

    def run_op_by_op(self, work: Work) -> list[Array]:
        """Tier 0: the steps of each op, by their NumPy twins where those give our bits, else by one-op plans."""
        return run_op_by_op(work.program, work.inputs, work.scalars, work.starts, in_steps(self._run_call))

    def find_kernels(self, sources: Sequence[KernelSource]) -> Sequence[str]:
        """The compiled files of kernels, which are compiled now if they were not yet."""
        return self._compiler.compile(sources).paths

    def run_pieces(self, work: Work, pieces: Sequence[Piece], manner: Manner = FUSED) -> list[Array]:
        """The program cut into pieces, each with a plan of its own."""
        return run_in_pieces(work, pieces, lambda piece: self.run(piece, manner))

    def loaded(self, program: Program, *, is_fused: bool = True) -> LoadedPlan:
        """The plan of a program, which is made if it is not yet there."""
        job = Job(program, is_fused)
        if job.key not in self._ready:
            self.prepare([job])
        return self._ready[job.key]

    def _run_together(
        self, loaded: LoadedPlan, rows: Sequence[Work], manner: Manner, buffers: _Buffers
    ) -> list[list[Array]]:
        addresses = [self._place(loaded.plan, row, manner, buffers) for row in rows]
        launch_rows(self.device, loaded, addresses)
        program = rows[0].program
        specs = [program.result_spec(index) for index in program.live]
        return [
            [buffers.read(address, spec) for address, spec in zip(row.outputs, specs, strict=True)] for row in addresses
        ]

    def _place(self, plan: Plan, row: Work, manner: Manner, buffers: _Buffers) -> RowSlots:
        inputs = [buffers.add(array) for array in row.inputs]
        heirs = _heirs(plan) if manner.is_donated else {}
        outputs = [
            inputs[heirs[position]] if position in heirs else buffers.add_rubbish(row.program.result_spec(index))
            for position, index in enumerate(row.program.live)
        ]
        return RowSlots(inputs, outputs, row.scalars, row.starts)

    def _run_call(self, call: OneOpCall, operands: Sequence[Array], starts: Sequence[int]) -> Array:
        if self._dialect == "c" and has_same_bits(call):
            return by_twin(signature_of(*call), operands, starts)
        return self.run(Work(call.program(), tuple(operands), (), tuple(starts)))[0]


class _Buffers:
    """The blocks of one run, by the address of what they hold; given back at its end."""

    def __init__(self, device: Device, shift_bytes: int) -> None:
        self._device = device
        self._shift_bytes = shift_bytes
        self._blocks: dict[int, Block] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for block in self._blocks.values():
            self._device.release(block)

    def add(self, array: Array) -> int:
        """The address of a copy."""
        return self._add(np.ascontiguousarray(array).tobytes())

    def add_rubbish(self, spec: Spec) -> int:
        """The address of room for an array, in which something else stands."""
        return self._add(bytes([_RUBBISH]) * spec.size_bytes)

    def read(self, address: int, spec: Spec) -> Array:
        readback = self._device.read(self._blocks[address], self._shift_bytes + spec.size_bytes)
        self._device.fence().wait()
        raw = bytes(readback.data())[self._shift_bytes :]
        return np.frombuffer(raw, dtypes.to_numpy(spec.dtype)).reshape(spec.shape)

    def _add(self, content: bytes) -> int:
        """Fills a block with the content, behind as many other bytes as the run asks for."""
        block = self._device.allocate(max(self._shift_bytes + len(content), 1))
        self._device.write(block, memoryview(bytes(self._shift_bytes) + content))
        address = block.address + self._shift_bytes
        self._blocks[address] = block
        return address


def assert_one_meaning(runner: Runner, works: Sequence[Work]) -> None:
    """Each program gives the same bytes in every manner. Compiles what all of them need at once."""
    runner.prepare(job for work in works for job in _jobs(runner, work.program))
    for work in works:
        expected = runner.run(work)
        for name, run in _manners(runner, work):
            _assert_same(run(), expected, work, name)
        _assert_rows_alike(runner, work)


def _jobs(runner: Runner, program: Program) -> Iterator[Job]:
    """Every plan that a program needs in all manners."""
    yield Job(program, is_fused=True)
    yield Job(program, is_fused=False)
    for signature in program.distinct:
        for step in steps_of(signature).steps:
            yield Job(step.call.program(), is_fused=True)
    for most_ops in _piece_sizes(program):
        for piece in pieces_of(program, most_ops):
            yield Job(piece.program, is_fused=True)


def _manners(runner: Runner, work: Work) -> Iterator[tuple[str, Callable[[], list[Array]]]]:
    """Every way of running one row, by name."""
    yield "unfused", partial(runner.run, work, UNFUSED)
    yield "op by op", partial(runner.run_op_by_op, work)
    yield "shifted", partial(runner.run, work, SHIFTED)
    yield "donated", partial(runner.run, work, DONATED)
    for most_ops in _piece_sizes(work.program):
        pieces = pieces_of(work.program, most_ops)
        yield f"cut every {most_ops} ops", partial(runner.run_pieces, work, pieces)
        yield f"cut every {most_ops} ops and donated", partial(runner.run_pieces, work, pieces, DONATED)


def _piece_sizes(program: Program) -> tuple[int, ...]:
    count = len(program.ops)
    return tuple(sorted({1, max(1, count // 2)} - {count}))


def _assert_rows_alike(runner: Runner, work: Work) -> None:
    """However many rows a launch has, each gives what it gives alone, fused or not, donated or not."""
    rows = random_rows(work, max(ROWS))
    alone = [runner.run(row) for row in rows]
    for count, (name, manner) in product(ROWS, _MANNERS_OF_ROWS.items()):
        for number, results in enumerate(runner.run_rows(rows[:count], manner)):
            _assert_same(results, alone[number], rows[number], f"row {number} of {count}, {name}")


def _assert_same(actual: Sequence[Array], expected: Sequence[Array], work: Work, manner: str) -> None:
    for position, (one, other) in enumerate(zip(actual, expected, strict=True)):
        try:
            assert_same_bytes(one, other)
        except AssertionError as difference:
            raise AssertionError(f"{manner}: live result {position}: {difference}\n{_described(work)}") from None


def _described(work: Work) -> str:
    """The program, a line a value, for whoever reads a failure."""
    program = work.program
    first = program.first_result
    lines = [f"%{number} = {spec}" for number, spec in enumerate(program.specs[:first])]
    for index, (op, operands, attributes) in enumerate(program.ops):
        text = ", ".join((*(f"%{operand}" for operand in operands), *map(str, attributes)))
        live = " (live)" if index in program.live else ""
        lines.append(f"%{first + index} = {op.name}({text}) -> {program.result_spec(index)}{live}")
    return "\n".join(lines)


def _heirs(plan: Plan) -> dict[int, int]:
    """Which input each result is written over, by position; an input has one heir."""
    heirs: dict[int, int] = {}
    for donation in plan.donations:
        if donation.position not in heirs and donation.input not in heirs.values():
            heirs[donation.position] = donation.input
    return heirs
