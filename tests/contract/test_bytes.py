"""Random programs and chains as users write them: every manner of running one gives the same bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from tests.contract.chains import CHAINS, FLOATS, Chain, rnn_steps, training_step
from tests.contract.harness import Runner, assert_one_meaning
from tests.contract.rows import random_row
from tests.effort import of_a_hundred
from tests.kernels.programs import Writer
from tests.strategies import Work, programs

pytestmark = pytest.mark.timeout(300)  # while nothing is in the cache, all of it is compiled

# Several programs an example: their kernels are compiled together.
_PROGRAMS_AN_EXAMPLE = 6


@given(st.lists(programs(), min_size=_PROGRAMS_AN_EXAMPLE, max_size=_PROGRAMS_AN_EXAMPLE))
@of_a_hundred(10)
def test_a_random_program_gives_the_same_bytes_in_every_manner(runner: Runner, works: list[Work]) -> None:
    assert_one_meaning(runner, works)


@pytest.mark.parametrize(("chain", "of"), CHAINS, ids=[chain.__name__ for chain, _ in CHAINS])
def test_a_chain_gives_the_same_bytes_in_every_manner(runner: Runner, chain: Chain, of: tuple[DType, ...]) -> None:
    assert_one_meaning(runner, [random_row(chain(dtype), seed=7) for dtype in of])


@pytest.mark.parametrize("chain", [rnn_steps, training_step])
def test_a_chain_with_a_state_has_results_that_are_written_over_inputs(runner: Runner, chain: Chain) -> None:
    assert all(runner.heirs(chain(dtype)) for dtype in FLOATS), "running it donated would show nothing"


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int64], ids=lambda dtype: dtype.name)
def test_the_least_integer_is_its_own_absolute_value_whatever_takes_it(runner: Runner, dtype: DType) -> None:
    writer = Writer()
    magnitude = writer.abs(writer.input(3, dtype=dtype))
    program = writer.program(magnitude, writer.sigmoid(magnitude), writer.exp(magnitude))
    least = np.iinfo(dtypes.to_numpy(dtype)).min
    assert_one_meaning(runner, [Work(program, (np.array([least, -1, 7], dtypes.to_numpy(dtype)),), (), ())])


def test_evenly_spaced_integers_are_the_same_in_every_manner_and_end_where_they_shall(runner: Runner) -> None:
    length, start, stop = 50, -1.5, 1.0
    writer = Writer()
    first, step, last = (writer.scalar(dtypes.float64) for _ in range(3))
    points = writer.linspace(first, step, length=length, dtype=dtypes.float64.code)
    ended = writer.assign_slice(points, last, axes=(0,), lengths=(1,), steps=(1,), dropped=(0,))
    whole = writer.astype(writer.floor(ended), dtype=dtypes.int32.code)
    work = Work(writer.program(whole), (), (start, (stop - start) / (length - 1), stop), (length - 1,))
    assert_one_meaning(runner, [work])
    assert runner.run(work)[0].tolist() == np.linspace(start, stop, length, dtype=np.int32).tolist()
