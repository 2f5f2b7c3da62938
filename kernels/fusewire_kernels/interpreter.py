"""Tier 0: a program run op by op on arrays, so that no program waits for its plan.

Exact ops and views are the array library's, whose bits are ours; composite ops are expanded as a plan expands them;
every other op goes to the device's one-op kernels, or to its twin where nothing can be compiled.

What is the same for all rows of a program is worked out once, as its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fusewire_kernels import reference
from fusewire_kernels.conversions import scalar
from fusewire_kernels.expand import Expansion, expand
from fusewire_kernels.reference import Prepared
from fusewire_protos.catalogue import BY_NAME, Attributes, Category, Op, infer
from fusewire_protos.program import Program, ProgramOp
from fusewire_protos.shapes import Spec

# (op, operand specs, attributes, operand arrays in C order) → the result in C order.
RunInexact = Callable[[Op, Sequence[Spec], Attributes, Sequence[Any]], Any]

Kernel = Callable[[Sequence[Any]], Any]  # operand arrays in C order → the result in C order
KernelOf = Callable[[Op, tuple[Spec, ...], Attributes], Kernel]  # what computes an op on operands of these specs


class Step(NamedTuple):
    """A primitive op, of a program or of the expansion of one of its ops, made ready for any row.

    A run keeps values by number: inputs, scalars, then the result of each step. `operands` and `dying` (what no later
    step needs) are such numbers. Its slice starts are those of the row from `first_start` up to `end_start`.
    """

    run: Prepared
    operands: tuple[int, ...]
    first_start: int
    end_start: int
    dying: tuple[int, ...]


class Steps:
    """A program made ready for runs on one device, op by op, each when a run first comes to it. Used by one thread.

    `library` is NumPy or has its interface; `is_library_exact` is the device's. `kernel_of` is asked for ops whose bits
    are not the library's; None stands for a device without a compiler.
    """

    def __init__(
        self, program: Program, library: Any, kernel_of: KernelOf | None, *, is_library_exact: bool = True
    ) -> None:
        self.program = program
        self.library = library
        self._kernel_of = kernel_of
        self._is_library_exact = is_library_exact
        self._first_result = program.first_result
        self._dying = _dying(program)
        self._steps: list[Step] = []
        self._numbers = [*range(self._first_result)]  # of values in a run, by operand number of the program
        self._starts = 0  # slice starts of the ops that are ready

    def __iter__(self) -> Iterator[Step]:
        """All steps in order. Any number of iterations may be under way at once."""
        index = 0
        while index < len(self._steps) or self._prepare_next():
            yield self._steps[index]
            index += 1

    def live(self) -> list[int]:
        """The numbers of the live results, once all steps have been iterated over."""
        return [self._numbers[self._first_result + index] for index in self.program.live]

    def _prepare_next(self) -> bool:
        """Makes an op ready; False if all are. If that raises, it is tried again when a run next comes to the op."""
        program, numbers = self.program, self._numbers
        index = len(numbers) - self._first_result
        if index == len(program.ops):
            return False
        op = program.ops[index]
        specs = tuple([program.specs[operand] for operand in op.operands])
        operands = tuple([numbers[operand] for operand in op.operands])
        *steps, last = self._made_ready(op, specs, operands)
        numbers.append(self._next_number + len(steps))
        dying = tuple([numbers[operand] for operand in self._dying[index]])
        self._steps += steps
        self._steps.append(last._replace(dying=last.dying + dying) if dying else last)
        self._starts = last.end_start
        return True

    def _made_ready(self, op: ProgramOp, specs: tuple[Spec, ...], operands: tuple[int, ...]) -> list[Step]:
        if op.op.category is Category.COMPOSITE:
            return self._expanded(expand(op.op, specs, op.attributes), operands)
        if op.op.category is Category.MOVE and self._kernel_of is not None and not self._is_library_exact:
            return self._converted(op, specs, operands)
        end_start = self._starts + op.op.starts(op.attributes)
        return [Step(self._prepared(op, specs), operands, self._starts, end_start, ())]

    def _converted(self, op: ProgramOp, specs: tuple[Spec, ...], operands: tuple[int, ...]) -> list[Step]:
        """A move behind the conversions of its operands, which are not left to the library."""
        ready, ready_specs, steps = list(operands), list(specs), []
        for position, cast in converted_first(op.op, specs, op.attributes):
            steps.append(Step(self._prepared(cast, (specs[position],)), (operands[position],), 0, 0, ()))
            ready[position] = self._next_number + len(steps) - 1
            ready_specs[position] = infer(cast.op, (specs[position],), cast.attributes)
        first = self._next_number
        made_here = tuple(range(first, first + len(steps)))
        end_start = self._starts + op.op.starts(op.attributes)
        last = Step(self._prepared(op, tuple(ready_specs)), tuple(ready), self._starts, end_start, made_here)
        return [*steps, last]

    def _expanded(self, expansion: Expansion, operands: tuple[int, ...]) -> list[Step]:
        """An expansion's constants, as steps without operands, and its ops. None of them takes slice starts."""
        program = expansion.program
        bare = partial(Step, first_start=self._starts, end_start=self._starts)
        constants = [
            scalar(self.library, value, dtype)
            for value, dtype in zip(expansion.constants, program.scalars, strict=True)
        ]
        steps = [bare(run=_constant(value), operands=(), dying=()) for value in constants]
        first = self._next_number
        numbers = [*operands, *range(first, first + len(constants) + len(program.ops))]
        for op, dying in zip(program.ops, _dying(program), strict=True):
            specs = tuple([program.specs[operand] for operand in op.operands])
            own = tuple([numbers[operand] for operand in dying if operand >= len(operands)])
            inner = tuple([numbers[operand] for operand in op.operands])
            steps.append(bare(run=self._prepared(op, specs), operands=inner, dying=own))
        return steps

    def _prepared(self, op: ProgramOp, specs: tuple[Spec, ...]) -> Prepared:
        if self._kernel_of is None or not needs_kernel(op.op, is_library_exact=self._is_library_exact):
            return reference.prepare(op.op, self.library, tuple([spec.dtype for spec in specs]), op.attributes)
        return _of_dense(self.library, self._kernel_of(op.op, specs, op.attributes))

    @property
    def _next_number(self) -> int:
        return self._first_result + len(self._steps)


def execute(
    steps: Steps, inputs: Sequence[Any], scalars: Sequence[int | float], starts: Sequence[int]
) -> Generator[None, None, list[Any]]:
    """Runs a row, one step each time it is resumed; returns what `run` does.

    Floating-point errors may warn: whoever resumes it ignores them.
    """
    library = steps.library
    values = [*inputs]
    values += [scalar(library, value, dtype) for value, dtype in zip(scalars, steps.program.scalars, strict=True)]
    for run_step, operands, first_start, end_start, dying in steps:
        values.append(run_step([values[number] for number in operands], starts[first_start:end_start]))
        for number in dying:
            values[number] = None
        yield
    return [_dense(library, values[number]) for number in steps.live()]


def run(
    program: Program,
    library: Any,
    inputs: Sequence[Any],
    scalars: Sequence[int | float],
    starts: Sequence[int],
    run_inexact: RunInexact | None,
    *,
    is_library_exact: bool = True,
) -> list[Any]:
    """The live results in order, each in C order; one may share memory with an input or with another.

    `library` is NumPy or has its interface, `inputs` are its arrays in C order. Bindings fit the program: the caller
    has checked them. `run_inexact` None stands for a device without a compiler; `is_library_exact` is the device's.
    """
    kernel_of = None if run_inexact is None else partial(partial, run_inexact)
    steps = Steps(program, library, kernel_of, is_library_exact=is_library_exact)
    execution = execute(steps, inputs, scalars, starts)
    with np.errstate(all="ignore"):
        while True:
            try:
                next(execution)
            except StopIteration as end:
                results: list[Any] = end.value
                return results


def needs_kernel(op: Op, *, is_library_exact: bool) -> bool:
    """Whether the array library may get other bits for a primitive op than our kernels.

    One that is not exact (CuPy flushes denormals to zero) is trusted to move elements, and no further: what it moves
    must be converted first.
    """
    if op.category in _MOVING:
        return False
    return not (op.is_exact and is_library_exact)


def converted_first(op: Op, operands: tuple[Spec, ...], attributes: Attributes) -> list[tuple[int, ProgramOp]]:
    """The floats that a move casts to another dtype: their positions, and the op that casts each."""
    if op.category is not Category.MOVE:
        return []
    sources = tuple([spec.dtype for spec in operands])
    targets = op.dtype_rule(sources, attributes).operands
    return [
        (position, ProgramOp(_ASTYPE, (position,), (target.code,)))
        for position, (source, target) in enumerate(zip(sources, targets, strict=True))
        if source.is_floating and source is not target
    ]


_MOVING = (Category.VIEW, Category.MOVE)
_ASTYPE = BY_NAME["astype"]


def _constant(value: Any) -> Prepared:
    return lambda operands, starts: value


def _of_dense(library: Any, kernel: Kernel) -> Prepared:
    return lambda operands, starts: kernel([_dense(library, operand) for operand in operands])


def _dying(program: Program) -> list[list[int]]:
    """For each op, the operand numbers that nothing needs after it: an unused result dies at its own op."""
    last_use = {program.first_result + index: index for index in range(len(program.ops))}
    for index, op in enumerate(program.ops):
        last_use.update((operand, index) for operand in op.operands)
    kept = {program.first_result + index for index in program.live}
    dying: list[list[int]] = [[] for _ in program.ops]
    for number, index in last_use.items():
        if number not in kept:
            dying[index].append(number)
    return dying


def _dense(library: Any, array: Any) -> Any:
    return library.asarray(array, order="C")
