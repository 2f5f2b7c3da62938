"""The device time of array functions: measured on the CPU, and how it is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from loadtests.measuring.errors import WrongResult
from loadtests.microbenchmarks.device.array_functions import ARRAY_FUNCTIONS, MANY_EQUATIONS, device_us, figure
from loadtests.system.context import Context
from loadtests.workloads.array_functions import CALLS, Call

_SMALL = Call(
    "cumsum",
    lambda number: (np.arange(6.0, dtype=np.float32).reshape(2, 3) + number,),
    lambda operands: np.cumsum(operands[0], axis=1),
    lambda fw, operands: fw.cumsum(operands[0], axis=1),
)


@pytest.mark.slow
def test_a_call_is_checked_and_its_device_time_is_measured() -> None:
    with Context("cpu").session() as (service, session):
        assert device_us(service, session, _SMALL) > 0
        wrong = replace(_SMALL, name="wrong", expected=lambda operands: operands[0])
        with pytest.raises(WrongResult, match="wrong"):
            device_us(service, session, wrong)


@pytest.mark.slow
def test_many_equations_are_compared_with_numpy_on_a_processor() -> None:
    (found,) = MANY_EQUATIONS.measure(Context("cpu"))
    assert found.name == "solve_1000x16"
    assert found.peer is not None
    assert found.peer.name == "NumPy"
    assert found.peer.ratio > 0


def test_every_call_has_a_figure_of_the_ratio_to_the_peer() -> None:
    figures = [figure(name, 50.0, 100.0) for name in CALLS]
    assert tuple(each.name for each in figures) == ARRAY_FUNCTIONS.names
    assert all(each.peer is not None and each.peer.ratio == pytest.approx(0.5) for each in figures)
