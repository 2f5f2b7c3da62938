"""Programs for tests, written as a user would write them, and their meaning by NumPy twins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire_kernels.interpreter import run
from fusewire_protos import catalogue, dtypes, program
from fusewire_protos.dtypes import DType
from fusewire_protos.program import Program, ProgramOp
from fusewire_protos.shapes import Shape, Spec

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

    def program(self, *live: int) -> Program:
        first = len(self._inputs) + len(self._scalars)
        return program.build(self._inputs, self._scalars, self._ops, sorted(number - first for number in live))


def meaning(
    subject: Program, inputs: Sequence[Array], scalars: Sequence[int | float] = (), starts: Sequence[int] = ()
) -> list[Array]:
    """The live results by the NumPy twin of every op."""
    return [np.asarray(result) for result in run(subject, np, inputs, scalars, starts, None)]


def random_inputs(subject: Program, seed: int = 0) -> list[Array]:
    """Arrays of small numbers for the inputs of a program."""
    generator = np.random.default_rng(seed)
    return [_random(spec, generator) for spec in subject.inputs]


def _random(spec: Spec, generator: np.random.Generator) -> Array:
    dtype = dtypes.to_numpy(spec.dtype)
    if spec.dtype.is_floating:
        return generator.standard_normal(spec.shape).astype(dtype)
    return generator.integers(0, 2 if spec.dtype.is_boolean else 7, spec.shape).astype(dtype)
