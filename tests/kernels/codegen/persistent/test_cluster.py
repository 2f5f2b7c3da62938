"""Persistent cluster kernels, run by threads of this machine: values are those of the NumPy twins, whoever waits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from fusewire_kernels.build import build_plan
from fusewire_kernels.plan.plan import Plan
from fusewire_protos.programs.program import Program
from tests.effort import of_a_hundred
from tests.kernels.codegen.persistent.cuda_on_threads import COMPILER, Array, ClusterKernel
from tests.kernels.drawn_clusters import drawn_bodies
from tests.kernels.loops_of_note import (
    along_rows,
    bottleneck,
    descending,
    driven,
    gated,
    gates_along_rows,
    joined,
    joined_vectors,
    keeping,
    leaky,
    normalised,
    recurrent,
    stacked,
    with_gates_together,
    with_memory,
    with_sums,
)
from tests.kernels.programs import meaning, random_inputs, starts_side_by_side

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

COUNT = 6
BODIES = {
    "recurrent, some rows a cluster": recurrent(40, 33),
    "leaky, eight blocks": leaky(1, 256),
    "driven": driven(3, 64),
    "gated": gated(2, 100),
    "joined": joined(3, 64),
    "joined, eight blocks": joined(1, 250),
    "joined vectors": joined_vectors(64),
    "along rows": along_rows(3, 64, COUNT + 1),
    "along rows, again at the first": along_rows(1, 100, 4),
    "keeping": keeping(3, 64, COUNT),
    "keeping, again at the first": keeping(1, 40, 4),
    "with memory": with_memory(17, 64),
    "with gates together": with_gates_together(3, 40),
    "stacked": stacked(2, 64),
    "bottleneck": bottleneck(20, 130),
    "descending": descending(120, 20),
    "with sums": with_sums(2, 96),
    "normalised": normalised(5, 40),
}


def in_numpy(program: Program, inputs: list[Array], scalars: list[float], starts: list[list[int]]) -> list[list[Array]]:
    """The live results of each iteration. `starts` are those of each."""
    results = []
    for iteration in range(COUNT):
        found = meaning(program, inputs, scalars, starts[iteration])
        results.append(found)
        carried = {
            number: found[program.live_positions[source - program.first_result]] for number, source in program.carried
        }
        inputs = [carried.get(number, array) for number, array in enumerate(inputs)]
    return results


def check(program: Program, plan: Plan, folder: Path, starts: list[list[int]] | None = None) -> None:
    """Fails unless a kernel gives the values of the NumPy twins, and the same bytes when it runs again.

    `starts` are those of each iteration; without them, slices of one value lie side by side.
    """
    kernel = ClusterKernel(program, plan, folder)
    arrays = random_inputs(program)
    inputs = [np.array(array / max(array.shape, default=1) ** 0.5, array.dtype) for array in arrays]
    scalars = [0.3] * len(program.scalars)
    starts = starts or [starts_side_by_side(program, iteration) for iteration in range(COUNT)]
    stepped = [*np.transpose(starts)]
    results, expected = kernel.results(inputs, scalars, stepped, COUNT), in_numpy(program, inputs, scalars, starts)
    for position, result in enumerate(results):
        for found, wanted in zip(result[::-1], expected[::-1], strict=False):
            np.testing.assert_allclose(found, wanted[position], rtol=1e-3, atol=1e-4)
    again = kernel.results(inputs, scalars, stepped, COUNT)
    assert [result.tobytes() for result in again] == [result.tobytes() for result in results]


@pytest.mark.parametrize("name", BODIES)
def test_a_kernel_gives_the_values_of_its_iterations_and_the_same_bytes_each_time(name: str, tmp_path: Path) -> None:
    check(BODIES[name], build_plan(BODIES[name], "cuda"), tmp_path)


@pytest.mark.parametrize("first", [0, 5])
def test_two_reads_of_the_row_before_may_be_of_other_rows_in_the_first_iteration(first: int, tmp_path: Path) -> None:
    program = gates_along_rows(3, 64, COUNT + 1)
    starts = [[iteration, iteration or first, iteration + 1] for iteration in range(COUNT)]
    check(program, build_plan(program, "cuda"), tmp_path, starts)


# Not every drawn body is one that a cluster can run.
@settings(of_a_hundred(15), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(program=drawn_bodies())
def test_a_kernel_of_a_drawn_body_gives_the_values_of_its_iterations(
    tmp_path_factory: pytest.TempPathFactory, program: Program
) -> None:
    plan = build_plan(program, "cuda")
    assume(plan.persistent is not None and plan.persistent.clusters > 0)
    check(program, plan, tmp_path_factory.mktemp("drawn"))
