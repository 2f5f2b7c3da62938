"""Programs give what NumPy gives, whether all of `np` is Fusewire or only their data are on the server."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect
from tests.programs import idioms, images, learning, numerics, series, simulation

Program = Callable[[Any, Any], list[Any]]

_MODULES = (idioms, images, learning, numerics, series, simulation)
PROGRAMS = {
    name: program
    for module in _MODULES
    for name, program in vars(module).items()
    if inspect.isfunction(program) and program.__module__ == module.__name__
}
_RELATIVE, _ABSOLUTE = 1e-6, 1e-8


@pytest.fixture(scope="module")
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


@pytest.mark.parametrize("namespace", [fw, np], ids=["all of np is Fusewire", "only data are on the server"])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy's logarithms of 0
def test_a_program_gives_what_numpy_gives(session: fw.Session, name: str, namespace: ModuleType) -> None:
    expected = PROGRAMS[name](np, np.copy)
    results = PROGRAMS[name](namespace, session.array)
    assert len(results) == len(expected)
    for ours, numpys in zip(results, expected, strict=True):
        if isinstance(numpys, str):
            assert ours == numpys
        else:
            np.testing.assert_allclose(np.asarray(ours), numpys, rtol=_RELATIVE, atol=_ABSOLUTE)


def test_numbers_are_drawn_by_numpys_older_names(session: fw.Session) -> None:
    fw.random.seed(0)
    assert 0 <= float(fw.random.rand(100).min()) <= float(fw.random.rand(100).max()) < 1
    assert abs(float(fw.random.randn(100).mean())) < 0.5
    assert {*fw.random.randint(0, 3, 100).tolist()} == {0, 1, 2}
