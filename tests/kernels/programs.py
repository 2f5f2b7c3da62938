"""Programs for tests, written as a user would write them, and their meaning by NumPy twins."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire_protos.errors import RequestError
from fusewire_protos.ops import catalogue, dtypes, inference
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import Region, Shape, Spec
from fusewire_protos.programs import program
from fusewire_protos.programs.program import Program, ProgramOp
from tests.kernels.op_by_op import run_op_by_op

Array = npt.NDArray[Any]


class Writer:
    """Writes a program op by op: `writer.add(x, y)`, `writer.sum(x, axes=(1,), keepdims=False)`.

    Inputs and scalars come before the first op. Operands are what the writer returned.
    """

    def __init__(self) -> None:
        self._inputs: list[Spec] = []
        self._scalars: list[DType] = []
        self._ops: list[ProgramOp] = []

    def input(self, *shape: int, dtype: DType = dtypes.float32) -> int:
        self._inputs.append(Spec(dtype, shape))
        return len(self._inputs) - 1

    def scalar(self, dtype: DType = dtypes.float32) -> int:
        self._scalars.append(dtype)
        return len(self._inputs) + len(self._scalars) - 1

    def op(self, name: str, *operands: int, attributes: Sequence[Any] = ()) -> int:
        self._ops.append(ProgramOp(catalogue.BY_NAME[name], operands, tuple(attributes)))
        return len(self._inputs) + len(self._scalars) + len(self._ops) - 1

    def __getattr__(self, name: str) -> Any:
        def add(*operands: int, **attributes: Any) -> int:
            given = [attributes[attribute.name] for attribute in catalogue.BY_NAME[name].attributes]
            return self.op(name, *operands, attributes=given)

        return add

    def slice(self, operand: int, axes: Shape, lengths: Shape, steps: Shape = (), dropped: Shape = ()) -> int:
        return self.op("slice", operand, attributes=(axes, lengths, steps or (1,) * len(axes), dropped))

    def assign(self, operand: int, value: int, axis: int) -> int:
        """Returns an array of which the elements at one place along an axis are replaced by those of `value`."""
        return self.op("assign_slice", operand, value, attributes=((axis,), (1,), (1,), (axis,)))

    def program(self, *live: int, carried: Sequence[tuple[int, int]] = ()) -> Program:
        """Returns the program. Each pair of `carried` is an input, and the operand that it takes in a loop."""
        first = len(self._inputs) + len(self._scalars)
        return program.build(self._inputs, self._scalars, self._ops, sorted(number - first for number in live), carried)


def meaning(
    subject: Program, inputs: Sequence[Array], scalars: Sequence[int | float] = (), starts: Sequence[int] = ()
) -> list[Array]:
    """The live results by the NumPy twin of every op."""
    return run_op_by_op(subject, inputs, scalars, starts)


def starts_side_by_side(subject: Program, iteration: int = 0) -> list[int]:
    """Starts of the slices along one axis of each value: each begins where the one before ends, or where it fits.

    Slices of what is assigned to begin at one place, and the assignment behind them. All of these begin one element
    further in each iteration, and again at the first.
    """
    ends: dict[int, int] = {}
    starts = []
    changed = {op.operands[0] for op in subject.ops if op.op.name == "assign_slice"}
    for op in subject.ops:
        if op.op.takes_starts:
            (axis,), (length,), (step,), _ = Region(*op.attributes)
            value = op.operands[0]
            last = subject.specs[value].shape[axis] - 1 - (length - 1) * step
            is_read_before = value in changed and op.op.name == "slice"
            starts.append(0 if is_read_before else min(ends.get(value, 0), last))
            ends[value] = starts[-1] + length
            if value in changed:
                starts[-1] = (starts[-1] + iteration) % (last + 1)
    return starts


def random_inputs(subject: Program, seed: int = 0) -> list[Array]:
    """Arrays of small numbers for the inputs of a program."""
    generator = np.random.default_rng(seed)
    return [_random(spec, generator) for spec in subject.inputs]


def _random(spec: Spec, generator: np.random.Generator) -> Array:
    dtype = dtypes.to_numpy(spec.dtype)
    if spec.dtype.is_floating:
        return generator.standard_normal(spec.shape).astype(dtype)
    return generator.integers(0, 2 if spec.dtype.is_boolean else 7, spec.shape).astype(dtype)


# ---- random programs whose values meet again in many shapes, so that fusion has much to decide ----

_SHAPES: tuple[Shape, ...] = (
    *((2, 3, 4), (3, 4), (4,), (2, 1, 4), (2, 3, 1), (4, 3), (2, 12), (6, 4), (24,), (), (1, 4), (4, 4)),
    *((3, 8), (2, 2, 6), (1, 24), (12, 2), (3, 2, 4), (2, 2)),
)
_MOST_ELEMENTS = 300


class RandomProgram(NamedTuple):
    """A program with scalars and slice starts that fit it."""

    program: Program
    scalars: tuple[int | float, ...]
    starts: tuple[int, ...]


def random_program(seed: int, most_ops: int = 30) -> RandomProgram:
    """A program of some of all kinds of ops over few shapes, the same for the same seed."""
    return _Random(random.Random(seed)).program(most_ops)


class _Random:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._writer = Writer()
        self._specs: list[Spec] = []
        self._starts: list[int] = []

    def program(self, most_ops: int) -> RandomProgram:
        writer, chance = self._writer, self._chance
        for _ in range(chance.randint(1, 4)):
            dtype = chance.choice([dtypes.float32] * 5 + [dtypes.int32, dtypes.float16])
            self._specs.append(Spec(dtype, chance.choice(_SHAPES)))
            writer.input(*self._specs[-1].shape, dtype=dtype)
        for dtype in (dtypes.float32, dtypes.int64):
            writer.scalar(dtype)
            self._specs.append(Spec(dtype, ()))
        first = len(self._specs)
        for _ in range(chance.randint(3, most_ops)):
            self._add_one()
        numbers = range(first, len(self._specs))
        live = {numbers[-1], *chance.choices(numbers, k=3)}
        return RandomProgram(writer.program(*live), (1.5, 2), tuple(self._starts))

    def _add_one(self) -> None:
        """Adds one op that is legal; what is not is drawn again."""
        while True:
            maker = self._chance.choice(_RANDOM_OPS)
            name, operands, attributes, starts = maker(self, self._pick())
            if self._is_legal(name, operands, attributes):
                self._writer.op(name, *operands, attributes=attributes)
                self._starts += starts
                return

    def _is_legal(self, name: str, operands: tuple[int, ...], attributes: tuple[Any, ...]) -> bool:
        try:
            spec = inference.infer(catalogue.BY_NAME[name], tuple(self._specs[n] for n in operands), attributes)
        except RequestError:
            return False
        if spec.elements > _MOST_ELEMENTS:
            return False
        self._specs.append(spec)
        return True

    def _pick(self) -> int:
        """A value, more often one of the last."""
        known = len(self._specs)
        is_recent = self._chance.random() < 0.7
        return max(0, known - 1 - int(self._chance.expovariate(0.25))) if is_recent else self._chance.randrange(known)

    def _shape(self, number: int) -> Shape:
        return self._specs[number].shape

    def _axis(self, number: int) -> int:
        return self._chance.randrange(max(len(self._shape(number)), 1))

    def unary(self, a: int) -> _Drawn:
        return _Drawn(self._chance.choice(("tanh", "negative", "abs", "exp", "relu", "sigmoid")), (a,))

    def binary(self, a: int) -> _Drawn:
        return _Drawn(self._chance.choice(("add", "multiply", "subtract", "maximum", "less")), (a, self._pick()))

    def reduction(self, a: int) -> _Drawn:
        rank = len(self._shape(a))
        axes = tuple(sorted(self._chance.sample(range(rank), self._chance.randint(0, rank))))
        name = self._chance.choice(("sum", "max", "mean", "argmax", "any"))
        return _Drawn(name, (a,), (axes, self._chance.random() < 0.5))

    def softmax(self, a: int) -> _Drawn:
        return _Drawn(self._chance.choice(("softmax", "log_softmax")), (a,), ((self._axis(a),),))

    def transpose(self, a: int) -> _Drawn:
        rank = len(self._shape(a))
        return _Drawn("transpose", (a,), (tuple(self._chance.sample(range(rank), rank)),))

    def reshape(self, a: int) -> _Drawn:
        return _Drawn("reshape", (a,), (self._chance.choice(_SHAPES),))

    def broadcast(self, a: int) -> _Drawn:
        return _Drawn("broadcast_to", (a,), (self._chance.choice(_SHAPES),))

    def slice(self, a: int) -> _Drawn:
        axis, step = self._axis(a), self._chance.choice((1, 1, 2, -1))
        dim = self._shape(a)[axis] if self._shape(a) else 1
        length = self._chance.randint(1, dim)
        span = (length - 1) * step
        low, high = max(0, -span), min(dim, dim - span) - 1
        dropped = (axis,) if length == 1 and self._chance.random() < 0.5 else ()
        start = self._chance.randint(low, high) if low <= high else 0
        return _Drawn("slice", (a,), ((axis,), (length,), (step,), dropped), (start,))

    def assign(self, a: int) -> _Drawn:
        axis = self._axis(a)
        dim = self._shape(a)[axis] if self._shape(a) else 1
        length = self._chance.randint(1, dim)
        start = self._chance.randint(0, dim - length)
        return _Drawn("assign_slice", (a, self._pick()), ((axis,), (length,), (1,), ()), (start,))

    def concat(self, a: int) -> _Drawn:
        return _Drawn("concat", (a, self._pick()), (self._axis(a),))

    def product(self, a: int) -> _Drawn:
        return _Drawn("matmul", (a, self._pick()))

    def take(self, a: int) -> _Drawn:
        return _Drawn("take", (a, self._pick()), (self._axis(a),))

    def one_hot(self, a: int) -> _Drawn:
        return _Drawn("one_hot", (a,), (4, dtypes.float32.code))

    def arange(self, a: int) -> _Drawn:
        dtype = self._chance.choice((dtypes.float32, dtypes.int64))
        return _Drawn("arange", (a, self._pick()), (self._chance.choice((3, 4, 24)), dtype.code))

    def eye(self, a: int) -> _Drawn:
        return _Drawn("eye", (), (4, self._chance.choice((3, 4)), self._chance.choice((0, 1, -1)), dtypes.float32.code))


class _Drawn(NamedTuple):
    """An op that may or may not be legal."""

    name: str
    operands: tuple[int, ...]
    attributes: tuple[Any, ...] = ()
    starts: tuple[int, ...] = ()


_RANDOM_OPS: tuple[Callable[[_Random, int], _Drawn], ...] = (
    *([_Random.unary, _Random.reduction] * 3),
    *([_Random.binary] * 8),
    *([_Random.transpose, _Random.reshape, _Random.slice, _Random.concat, _Random.assign] * 2),
    *(_Random.softmax, _Random.broadcast, _Random.product, _Random.take, _Random.one_hot, _Random.arange, _Random.eye),
)
