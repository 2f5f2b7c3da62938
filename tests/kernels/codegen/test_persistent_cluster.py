"""Persistent cluster kernels, run by threads of this machine: values are those of the NumPy twins, whoever waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusewire_kernels.build import build_plan
from fusewire_protos.programs.program import Program
from tests.kernels.codegen.cuda_on_threads import COMPILER, Array, ClusterKernel
from tests.kernels.loops_of_note import (
    descending,
    driven,
    gated,
    leaky,
    narrowing,
    normalised,
    recurrent,
    stacked,
    with_memory,
    with_sums,
)
from tests.kernels.programs import meaning, random_inputs

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

COUNT = 6
BODIES = {
    "recurrent, some rows a cluster": recurrent(40, 33),
    "leaky, eight blocks": leaky(1, 256),
    "driven": driven(3, 64),
    "gated": gated(2, 100),
    "with memory": with_memory(17, 64),
    "stacked": stacked(2, 64),
    "narrowing": narrowing(20, 130),
    "descending": descending(120, 20),
    "with sums": with_sums(2, 96),
    "normalised": normalised(5, 40),
}


def in_numpy(program: Program, inputs: list[Array], scalars: list[float]) -> list[list[Array]]:
    """The live results of each iteration."""
    results = []
    for _ in range(COUNT):
        found = meaning(program, inputs, scalars)
        results.append(found)
        carried = {
            number: found[program.live_positions[source - program.first_result]] for number, source in program.carried
        }
        inputs = [carried.get(number, array) for number, array in enumerate(inputs)]
    return results


@pytest.mark.parametrize("name", BODIES)
def test_a_kernel_gives_the_values_of_its_iterations_and_the_same_bytes_each_time(name: str, tmp_path: Path) -> None:
    program = BODIES[name]
    kernel = ClusterKernel(program, build_plan(program, "cuda"), tmp_path)
    inputs: list[Any] = [
        np.array(array / max(array.shape, default=1) ** 0.5, array.dtype) for array in random_inputs(program)
    ]
    scalars = [0.3] * len(program.scalars)
    results, expected = kernel.results(inputs, scalars, COUNT), in_numpy(program, inputs, scalars)
    for position, result in enumerate(results):
        for iteration in range(COUNT):
            np.testing.assert_allclose(result[iteration], expected[iteration][position], rtol=2e-4, atol=2e-5)
    again = kernel.results(inputs, scalars, COUNT)
    assert [result.tobytes() for result in again] == [result.tobytes() for result in results]
