"""Runs a program op by op on arrays (tier 0), so that no program waits for its plan.

Views, moves and exact ops (`Op.is_exact`) run in the array library where it gives the same bits as our kernels.
Composite ops are expanded as a plan expands them. Every other op runs in a one-op kernel of the device, or in its NumPy
twin if the device has no compiler.

Two things are prepared once and then reused. A program is prepared for all its rows (`PreparedProgram`). An op is
prepared for operands of given specs, and all programs of a device share it (`OpCache`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from fusewire_kernels.ops import conversions, reference
from fusewire_kernels.ops.composites import expand
from fusewire_protos.ops import nans
from fusewire_protos.ops.catalogue import BY_NAME, Attributes, Category, Op, passes_bits_on
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.ops.signatures import Signature
from fusewire_protos.programs.program import Program, ProgramOp, build

MOST_OPS = 1024  # in an `OpCache`, with the plans of their kernels
MOST_SCALARS = 256  # in an `OpCache`

T = TypeVar("T")

Kernel = Callable[..., Any]  # (*operand arrays, of any memory order) → the result in C order
KernelOf = Callable[[Op, tuple[Spec, ...], Attributes], Kernel]  # the kernel of an op over operands of these specs

_Parts = tuple[Op, tuple[Spec, ...], Attributes]  # the parts of a signature that decide its prepared op


class PreparedOp(NamedTuple):
    """An op prepared for operands of given specs. It depends on no program and no row.

    `run` takes the operands. `starts` is the number of the op's slice starts; if it is not 0, `run` also takes the
    starts, as `starts=`. If `is_program`, a program replaces the op. Then `run` takes a list of operands and an
    iterator over the row's remaining slice starts, and returns a generator that runs one op each time it is resumed.
    If `leaves_nan_open`, a NaN in the result has arbitrary bits, which must be settled before a user can see them.
    """

    run: Callable[..., Any]
    starts: int = 0
    is_program: bool = False
    leaves_nan_open: bool = False

    def settled(self) -> PreparedOp:
        """The same op, but every NaN in its result has the NaN bits of the result's dtype."""
        if not self.leaves_nan_open:
            return self
        run = self.run
        return PreparedOp(lambda *operands: nans.settle(run(*operands)))


@dataclass(frozen=True, eq=False)
class PreparedProgram:
    """A program prepared for all its rows on one device."""

    program: Program
    op_cache: OpCache
    ops: Sequence[PreparedOp]  # one for each op of the program
    dying: Sequence[Sequence[int]]  # for each op, the operand numbers that no later op reads


class OpCache:
    """The prepared ops and the scalars that all programs of a device share. Used by one thread.

    `library` is NumPy or has NumPy's interface. `is_library_exact` is as in `DeviceInfo`. The cache holds `most_ops`
    ops and drops the op that programs have used least recently. A prepared op holds its kernel, and so keeps it loaded.
    """

    def __init__(self, library: Any, *, is_library_exact: bool, most_ops: int = MOST_OPS) -> None:
        self.library = library
        self._is_library_exact = is_library_exact
        self._most_ops = most_ops
        self._ops: OrderedDict[_Parts, PreparedOp] = OrderedDict()
        self._scalar = lru_cache(MOST_SCALARS, typed=True)(partial(conversions.scalar, library))

    def prepare(self, program: Program, kernel_of: KernelOf | None) -> Generator[None, None, PreparedProgram]:
        """Prepares a program, one of its distinct signatures each time the generator is resumed.

        `kernel_of` returns the kernel of an op. It is called for ops that are not in the cache and that the library
        would compute with other bits. It is None on a device without a compiler.
        """
        op_of: dict[Signature, PreparedOp] = {}
        for signature in program.distinct:
            op_of[signature] = self._op(signature, kernel_of)
            yield
        ops = [*map(op_of.__getitem__, program.signatures)]
        for index in _with_visible_nan(program):
            ops[index] = ops[index].settled()
        return PreparedProgram(program, self, ops, _dying(program))

    def scalar(self, value: int | float, dtype: DType) -> Any:
        """A scalar of a row as an array of rank 0. Callers must not write to it, because rows share it."""
        if value == 0:  # not cached, because −0.0 and 0.0 are equal keys
            return conversions.scalar(self.library, value, dtype)
        return self._scalar(value, dtype)

    def scalars(self, values: Sequence[int | float], dtypes: Sequence[DType]) -> list[Any]:
        return [self.scalar(value, dtype) for value, dtype in zip(values, dtypes, strict=True)]

    def _op(self, signature: Signature, kernel_of: KernelOf | None) -> PreparedOp:
        if signature.op.most_operands is None:  # not cached, because the size of its key has no bound
            return self._new_op(signature, kernel_of)
        parts = (signature.op, signature.operands, signature.attributes)  # equal signatures may be distinct objects
        op = self._ops.get(parts)
        if op is None:
            op = self._ops[parts] = self._new_op(signature, kernel_of)
        self._ops.move_to_end(parts)
        if len(self._ops) > self._most_ops:
            self._ops.popitem(last=False)
        return op

    def _new_op(self, signature: Signature, kernel_of: KernelOf | None) -> PreparedOp:
        op, specs, attributes = signature.op, signature.operands, signature.attributes
        if op.category is Category.COMPOSITE:
            program, constants = expand(op, specs, attributes)
            return self._op_of_program(program, self.scalars(constants, program.scalars), kernel_of)
        if kernel_of is not None and needs_kernel(op, is_library_exact=self._is_library_exact):
            return PreparedOp(kernel_of(op, specs, attributes))
        if kernel_of is not None and not self._is_library_exact:
            casts = converted_first(op, specs, attributes)
            if casts:
                return self._op_of_program(_move_of_casts(casts, op, specs, attributes), (), kernel_of)
        run = reference.prepare(op, self.library, specs, attributes)
        is_open = reference.leaves_nan_open(op, _dtypes(specs), signature.result.dtype)
        return PreparedOp(run, signature.starts, leaves_nan_open=is_open)

    def _op_of_program(self, program: Program, constants: Sequence[Any], kernel_of: KernelOf | None) -> PreparedOp:
        """The prepared op that runs `program` in place of an op. `constants` are the program's scalars."""
        prepared = run_to_end(self.prepare(program, kernel_of))
        return PreparedOp(partial(_run_program, prepared, constants), is_program=True)


def execute(
    prepared: PreparedProgram, inputs: Sequence[Any], scalars: Sequence[int | float], starts: Sequence[int]
) -> Generator[None, None, list[Any]]:
    """Runs a row, one op each time the generator is resumed. Returns the live results in order, each in C order.

    `inputs` are arrays of the cache's library in C order; a result may share memory with them. The caller has checked
    that inputs, scalars and starts fit the program. The caller also suppresses NumPy's floating-point warnings.
    """
    program, op_cache = prepared.program, prepared.op_cache
    values = [*inputs, *op_cache.scalars(scalars, program.scalars)]
    yield from _run_ops(prepared, values, iter(starts))
    return [_dense(op_cache.library, values[program.first_result + index]) for index in program.live]


def _run_ops(prepared: PreparedProgram, values: list[Any], starts: Iterator[int]) -> Generator[None, None, None]:
    """Runs all ops. Appends each result to `values`, by operand number, and drops values after their last use."""
    value_of = values.__getitem__
    for op, operands, dying in zip(prepared.ops, prepared.program.operands, prepared.dying, strict=True):
        run, count, is_program, _ = op
        if is_program:
            values.append((yield from run([*map(value_of, operands)], starts)))
        elif count:
            values.append(run(*map(value_of, operands), starts=[*islice(starts, count)]))
        elif len(operands) == 1:
            values.append(run(values[operands[0]]))
        elif len(operands) == 2:
            values.append(run(values[operands[0]], values[operands[1]]))
        else:  # unpacking a map takes five times as long as passing one or two operands
            values.append(run(*map(value_of, operands)))
        for number in dying:
            values[number] = None
        yield


def _run_program(
    prepared: PreparedProgram, constants: Sequence[Any], operands: list[Any], starts: Iterator[int]
) -> Generator[None, None, Any]:
    """Runs a program in place of an op, and returns its last result."""
    values = [*operands, *constants]
    yield from _run_ops(prepared, values, starts)
    return values[-1]


def needs_kernel(op: Op, *, is_library_exact: bool) -> bool:
    """Whether the array library may give other bits than our kernels for a primitive op.

    A library that is not exact is used only to move elements, and only if the elements need no conversion (see
    `converted_first`). CuPy is not exact, because it flushes denormals to zero.
    """
    if op.category in _MOVING:
        return False
    return not (op.is_exact and is_library_exact)


def converted_first(op: Op, operands: tuple[Spec, ...], attributes: Attributes) -> list[tuple[int, ProgramOp]]:
    """The casts of float operands that a move op implies, each as (operand position, op that casts the operand)."""
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
    """A program that first casts operands and then moves them. Each cast is an op, so that a kernel computes it."""
    operands = [*range(len(specs))]
    for number, (position, _) in enumerate(casts, len(specs)):
        operands[position] = number
    ops = [cast for _, cast in casts]
    return build(specs, (), [*ops, ProgramOp(op, tuple(operands), attributes)], (len(ops),))


def _dying(program: Program) -> list[tuple[int, ...]]:
    """For each op, the operand numbers that no later op reads. An unused result is listed at its own op."""
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
    """The indices of ops whose NaN bits a user can see, because the result or a copy of its bits is live."""
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
    """Resumes a generator until it ends, and gives what it returns."""
    while True:
        try:
            next(generator)
        except StopIteration as end:
            returned: T = end.value
            return returned
