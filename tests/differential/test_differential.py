"""Functions that NumPy has too give NumPy's results, and the same bytes in whichever manner they run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from fusewire.testing import session_in_memory
from tests.contract.service import Service, serving
from tests.differential.agreement import assert_agrees, expected
from tests.differential.calls import Call
from tests.differential.kinds import KINDS
from tests.differential.manners import OUT_OF_LOOPS, Pack, Results, one_by_one
from tests.effort import seeds
from tests.tolerances import assert_same_bytes

_SEEDS = seeds(2)
_ITERATIONS = 3
# A pack is every so manieth function: a plan for many functions takes its time. A deep run has a pack for each of them.
_PACKS = 20


def _call(name: str, seed: int) -> Call:
    """Returns what is drawn for a name; it depends on the seed and on the name alone."""
    return KINDS[name](name, np.random.default_rng([seed, *name.encode()]))


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(request.param, cache=tmp_path_factory.mktemp("cache")) as served:
        yield served


@pytest.mark.parametrize("seed", _SEEDS, ids="seed{}".format)
@pytest.mark.parametrize("name", KINDS)
def test_a_function_in_memory_is_numpys(name: str, seed: int) -> None:
    call = _call(name, seed)
    with session_in_memory() as session:
        (results,) = one_by_one(session, [call])
    assert_agrees(call, results, expected(call))


@pytest.mark.parametrize("seed", _SEEDS, ids="seed{}".format)
def test_functions_one_by_one_on_a_server_are_numpys(service: Service, seed: int) -> None:
    calls = [_call(name, seed) for name in KINDS]
    with service.connect() as session:
        alone = one_by_one(session, calls)
    for call, results in zip(calls, alone, strict=True):
        assert_agrees(call, results, expected(call))


@pytest.mark.parametrize("seed", _SEEDS, ids="seed{}".format)
def test_functions_give_the_same_bytes_one_by_one_by_their_plan_and_in_a_loop(service: Service, seed: int) -> None:
    names = [name for name in KINDS if name not in OUT_OF_LOOPS][seed % _PACKS :: _PACKS]
    calls = [_call(name, seed) for name in names]
    with service.connect() as session:
        alone = one_by_one(session, calls)
        pack = Pack(session, calls)
        service.wait_until_told()
        known = {*service.programs()}

        def is_planned() -> bool:
            """Runs the pack first: where a busy client cuts it depends on time; only what comes again is planned."""
            _assert_same(pack.together(), alone)
            return _has_plan(service, known)

        service.wait_until(is_planned, "a plan for the pack")
        _assert_same(pack.together(), alone)
        _assert_same(pack.in_a_loop(_ITERATIONS), alone)
        _assert_same(pack.in_a_function(_ITERATIONS), alone)


def _has_plan(service: Service, known: set[str]) -> bool:
    """Whether a program that came after the known ones runs by its plan now."""
    return any(each["tier"] > 0 for digest, each in service.programs().items() if digest not in known)


def _assert_same(results: Results, wanted: Results) -> None:
    for of_call, others in zip(results, wanted, strict=True):
        for mine, other in zip(of_call, others, strict=True):
            assert_same_bytes(mine, other)
