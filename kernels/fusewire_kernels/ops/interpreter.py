"""Tier 0: a program run op by op on arrays, so that no program waits for its plan.

Exact ops and views are the array library's, whose bits are ours; composite ops are expanded as a plan expands them;
every other op goes to the device's one-op kernels, or to its twin where nothing can be compiled.

What is the same for all rows of a program is worked out once, as its steps. What is the same for all programs, an op on
operands of the same specs, is worked out once for the device, as its op_cache.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from fusewire_kernels.ops import conversions, reference
from fusewire_kernels.ops.expand import expand
from fusewire_protos import nans
from fusewire_protos.catalogue import BY_NAME, Attributes, Category, Op, passes_bits_on
from fusewire_protos.dtypes import DType
from fusewire_protos.program import Program, ProgramOp, build
from fusewire_protos.shapes import Spec
from fusewire_protos.signatures import Signature

MOST_OPS = 1024  # that a op_cache remembers, with the plans of their kernels
MOST_SCALARS = 256  # that a op_cache remembers

T = TypeVar("T")

Kernel = Callable[..., Any]  # (*operand arrays, in any order) → the result in C order
KernelOf = Callable[[Op, tuple[Spec, ...], Attributes], Kernel]  # what computes an op on operands of these specs


_Parts = tuple[Op, tuple[Spec, ...], Attributes]  # of a signature


class PreparedOp(NamedTuple):
    """An op made ready for operands of its specs, whatever the program and the row.

    `run` takes the operands, and `starts` if the op has any. Where a program stands for the op, it takes a list of
    operands and all starts that are left, and runs an op each time it is resumed. Where `leaves_nan_open`, which NaN a
    NaN of the result is must be settled for whoever sees it.
    """

    run: Callable[..., Any]
    starts: int = 0
    is_program: bool = False
    leaves_nan_open: bool = False

    def settled(self) -> PreparedOp:
        """The step with all bits of its result."""
        if not self.leaves_nan_open:
            return self
        run = self.run
        return PreparedOp(lambda *operands: nans.settle(run(*operands)))


@dataclass(frozen=True, eq=False)
class PreparedProgram:
    """A program made ready for any row on one device."""

    program: Program
    op_cache: OpCache
    ready: Sequence[PreparedOp]  # one an op
    dying: Sequence[Sequence[int]]  # for each op, the operand numbers that nothing needs after it


class OpCache:
    """What a device has ready for all programs: ops, and scalars. Used by one thread.

    `library` is NumPy or has its interface; `is_library_exact` is the device's. Of more than `most_ops` ops that leaves
    which no program has brought for longest. An op that is ready holds its kernel, and so keeps it loaded.
    """

    def __init__(self, library: Any, *, is_library_exact: bool = True, most_ops: int = MOST_OPS) -> None:
        self.library = library
        self._is_library_exact = is_library_exact
        self._most_ops = most_ops
        self._steps: OrderedDict[_Parts, PreparedOp] = OrderedDict()
        self._scalar = lru_cache(MOST_SCALARS, typed=True)(partial(conversions.scalar, library))

    def prepare(self, program: Program, kernel_of: KernelOf | None) -> Generator[None, None, PreparedProgram]:
        """Makes a program ready, one of the ops that differ each time it is resumed.

        `kernel_of` is asked for ops whose bits are not the library's, unless they are ready; None stands for a device
        without a compiler.
        """
        steps: dict[Signature, PreparedOp] = {}
        for signature in program.distinct:
            steps[signature] = self._step(signature, kernel_of)
            yield
        ready = [*map(steps.__getitem__, program.signatures)]
        for index in _with_visible_nan(program):
            ready[index] = ready[index].settled()
        return PreparedProgram(program, self, ready, _dying(program))

    def scalar(self, value: int | float, dtype: DType) -> Any:
        """A scalar of a row as an array of rank 0, which nobody may write to."""
        if value == 0:  # −0.0 is equal to 0.0
            return conversions.scalar(self.library, value, dtype)
        return self._scalar(value, dtype)

    def scalars(self, values: Sequence[int | float], dtypes: Sequence[DType]) -> list[Any]:
        return [self.scalar(value, dtype) for value, dtype in zip(values, dtypes, strict=True)]

    def _step(self, signature: Signature, kernel_of: KernelOf | None) -> PreparedOp:
        if signature.op.most_operands is None:  # nor would then the memory be bounded of what is remembered
            return self._new_step(signature, kernel_of)
        parts = (signature.op, signature.operands, signature.attributes)  # equal signatures may be two
        step = self._steps.get(parts)
        if step is None:
            step = self._steps[parts] = self._new_step(signature, kernel_of)
        self._steps.move_to_end(parts)
        if len(self._steps) > self._most_ops:
            self._steps.popitem(last=False)
        return step

    def _new_step(self, signature: Signature, kernel_of: KernelOf | None) -> PreparedOp:
        op, specs, attributes = signature.op, signature.operands, signature.attributes
        if op.category is Category.COMPOSITE:
            program, constants = expand(op, specs, attributes)
            return self._program_step(program, self.scalars(constants, program.scalars), kernel_of)
        if kernel_of is not None and needs_kernel(op, is_library_exact=self._is_library_exact):
            return PreparedOp(kernel_of(op, specs, attributes))
        if kernel_of is not None and not self._is_library_exact:
            casts = converted_first(op, specs, attributes)
            if casts:
                return self._program_step(_move_of_casts(casts, op, specs, attributes), (), kernel_of)
        run = reference.prepare(op, self.library, specs, attributes)
        is_open = reference.leaves_nan_open(op, _dtypes(specs), signature.result.dtype)
        return PreparedOp(run, signature.starts, leaves_nan_open=is_open)

    def _program_step(self, program: Program, constants: Sequence[Any], kernel_of: KernelOf | None) -> PreparedOp:
        """The step of an op for which a program stands, whose scalars are `constants`."""
        steps = run_to_end(self.prepare(program, kernel_of))
        return PreparedOp(partial(_run_program, steps, constants), is_program=True)


def execute(
    steps: PreparedProgram, inputs: Sequence[Any], scalars: Sequence[int | float], starts: Sequence[int]
) -> Generator[None, None, list[Any]]:
    """Runs a row, one op each time it is resumed; returns the live results in order, each in C order.

    `inputs` are arrays of the op_cache's library in C order, with which a result may share memory. Bindings fit the
    program: the caller has checked them. Floating-point errors may warn: whoever resumes it ignores them.
    """
    program, op_cache = steps.program, steps.op_cache
    values = [*inputs, *op_cache.scalars(scalars, program.scalars)]
    yield from _run_steps(steps, values, iter(starts))
    return [_dense(op_cache.library, values[program.first_result + index]) for index in program.live]


def _run_steps(steps: PreparedProgram, values: list[Any], starts: Iterator[int]) -> Generator[None, None, None]:
    """Runs all ops over `values`, which are by operand number and grow; those that die are let go."""
    value_of = values.__getitem__
    for step, operands, dying in zip(steps.ready, steps.program.operands, steps.dying, strict=True):
        run, count, is_program, _ = step
        if is_program:
            values.append((yield from run([*map(value_of, operands)], starts)))
        elif count:
            values.append(run(*map(value_of, operands), starts=[*islice(starts, count)]))
        elif len(operands) == 1:
            values.append(run(values[operands[0]]))
        elif len(operands) == 2:
            values.append(run(values[operands[0]], values[operands[1]]))
        else:  # takes five times as long to hand over
            values.append(run(*map(value_of, operands)))
        for number in dying:
            values[number] = None
        yield


def _run_program(
    steps: PreparedProgram, constants: Sequence[Any], operands: list[Any], starts: Iterator[int]
) -> Generator[None, None, Any]:
    """The last result of a program that stands for an op."""
    values = [*operands, *constants]
    yield from _run_steps(steps, values, starts)
    return values[-1]


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


def _move_of_casts(
    casts: Sequence[tuple[int, ProgramOp]], op: Op, specs: tuple[Spec, ...], attributes: Attributes
) -> Program:
    """A move behind casts of its operands, which by their positions are not left to the library."""
    operands = [*range(len(specs))]
    for number, (position, _) in enumerate(casts, len(specs)):
        operands[position] = number
    ops = [cast for _, cast in casts]
    return build(specs, (), [*ops, ProgramOp(op, tuple(operands), attributes)], (len(ops),))


def _dying(program: Program) -> list[tuple[int, ...]]:
    """For each op, the operand numbers that nothing needs after it: an unused result dies at its own op."""
    first_result, ops = program.first_result, program.op_count
    last_uses = dict(zip(range(first_result, first_result + ops), range(ops), strict=True))
    for index, operands in enumerate(program.operands):
        for operand in operands:
            last_uses[operand] = index
    for index in program.live:
        del last_uses[first_result + index]
    dying: list[tuple[int, ...]] = [()] * ops
    for number, last in last_uses.items():
        dying[last] += (number,)
    return dying


def _with_visible_nan(program: Program) -> Iterator[int]:
    """The ops of which somebody sees which NaN a NaN of the result is: it is live, or its bits pass on to what is."""
    first_result = program.first_result
    seen = {first_result + index for index in program.live}
    for index in reversed(range(program.op_count)):
        if first_result + index in seen:
            yield index
            signature = program.signatures[index]
            if passes_bits_on(signature.op, _dtypes(signature.operands), signature.result.dtype):
                seen.update(program.operands[index])


def _dtypes(specs: Sequence[Spec]) -> tuple[DType, ...]:
    return tuple([spec.dtype for spec in specs])


def _dense(library: Any, array: Any) -> Any:
    return library.asarray(array, order="C")


def run_to_end(generator: Generator[None, None, T]) -> T:
    """What a generator returns, once it has been resumed to its end: for those who have nothing to do between."""
    while True:
        try:
            next(generator)
        except StopIteration as end:
            returned: T = end.value
            return returned
