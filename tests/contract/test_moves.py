"""Moves keep every bit of what they move, and convert as casts do: denormals too, which a library may flush to zero."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from tests.contract.harness import Runner, assert_one_meaning
from tests.kernels.programs import Writer
from tests.strategies import Work

pytestmark = pytest.mark.timeout(300)  # while nothing is in the cache, all of it is compiled

_FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
_DENORMALS = np.array([1e-40, -1e-45, 6e-8, -0.0, 1.5])


def _moves(first: DType, second: DType) -> Work:
    """Joins arrays of two dtypes, and writes each into the other."""
    writer = Writer()
    x, y = writer.input(5, dtype=first), writer.input(5, dtype=second)
    whole = {"axes": (0,), "lengths": (4,), "steps": (1,), "dropped": ()}
    part = writer.slice(y, (0,), (4,))
    program = writer.program(writer.concat(x, y, axis=0), writer.assign_slice(x, part, **whole))
    inputs = tuple(_DENORMALS.astype(dtypes.to_numpy(dtype)) for dtype in (first, second))
    return Work(program, inputs, (), (1, 0))


def test_denormals_survive_moves_between_dtypes(runner: Runner) -> None:
    assert_one_meaning(runner, [_moves(first, second) for first, second in permutations(_FLOATS, 2)])
