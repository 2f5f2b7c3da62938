"""Random numbers have one value: by every backend's kernels and by NumPy, alone and in company, however a loop runs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire.testing import session_in_memory
from fusewire_kernels.ops.random_numbers import exponential_of_bits, normal_of_bits
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import ProgramOp, build
from tests.contract.harness import FUSED, UNFUSED, Job, Runner
from tests.contract.service import Service
from tests.kernels.ops.test_random_numbers import KNOWN, joined, some_bits
from tests.patience import HANGS_S
from tests.strategies import Work
from tests.tolerances import assert_same_bytes

_CLIENTS = 4
_STEPS = 200
_U64 = dtypes.uint64


@pytest.mark.parametrize("counters_in", ["bindings", "arrays"])
def test_kernels_give_the_known_answers(runner: Runner, counters_in: str) -> None:
    is_array = counters_in == "arrays"
    inputs, scalars = ([Spec(_U64, ())] * 3, ()) if is_array else ([], (_U64,) * 3)
    program = build(inputs, scalars, [ProgramOp(BY_NAME["random_bits"], (0, 1, 2), ((2, 1, 2),))], [0])
    runner.prepare([Job(program, is_fused=True)])
    for counter, key, words in KNOWN:
        numbers = [joined(*counter[:2]), joined(*counter[2:]), joined(*key)]
        given = Work(program, tuple(map(np.asarray, numbers)) if is_array else (), (), ())
        work = given if is_array else given._replace(scalars=tuple(map(int, numbers)))
        assert runner.run(work)[0][0, 0, 0] == joined(*words[:2])


@pytest.mark.parametrize("function", [normal_of_bits, exponential_of_bits])
def test_kernels_give_the_numbers_of_bits_at_all_edges(runner: Runner, function: Callable[..., Any]) -> None:
    bits = some_bits()
    ops = [ProgramOp(BY_NAME[function.__name__], (0,), ()), ProgramOp(BY_NAME["astype"], (1,), (dtypes.float32.code,))]
    program = build([Spec(_U64, bits.shape)], (), ops, [0, 1])
    runner.prepare(Job(program, is_fused) for is_fused in (True, False))
    expected = function(np, bits)
    for manner in (FUSED, UNFUSED):
        wide, narrow = runner.run(Work(program, (bits,), (), ()), manner)
        assert_same_bytes(wide, expected)
        assert_same_bytes(narrow, expected.astype(np.float32))


# ---- through a server ----

_SIZE = (37, 211)
DRAWS: dict[str, Callable[[fw.random.Generator], fw.Array]] = {
    "bits": lambda rng: rng.bits(_SIZE, "uint8"),
    "random": lambda rng: rng.random(_SIZE, "float32"),
    "uniform": lambda rng: rng.uniform(-1, 3, _SIZE),
    "normal": lambda rng: rng.normal(1, 2, _SIZE, "float32"),
    "normal in float64": lambda rng: rng.normal(1, 2, _SIZE),
    "normal in float16": lambda rng: rng.normal(1, 2, _SIZE, "float16"),
    "exponential": lambda rng: rng.exponential(3, _SIZE, "float32"),
    "exponential in float64": lambda rng: rng.exponential(3, _SIZE),
    "integers": lambda rng: rng.integers(-5, 1000, _SIZE),
    "integers of a wide range": lambda rng: rng.integers(-5, 2**63 - 7, _SIZE),
    "bernoulli": lambda rng: rng.bernoulli(0.3, _SIZE),
    "permutation": lambda rng: rng.permutation(9000),
    "permuted": lambda rng: rng.permuted(np.arange(2000.0).reshape(4, 500), axis=1),
    "choice": lambda rng: rng.choice(1000, _SIZE),
    "choice by probabilities": lambda rng: rng.choice(5, _SIZE, p=[0.1, 0.2, 0.3, 0.4, 0.0]),
    "choice without replacement": lambda rng: rng.choice(5000, 4000, replace=False),
    "choice of both": lambda rng: rng.choice(5000, 400, replace=False, p=np.arange(1, 5001) / 12502500),
    "rayleigh": lambda rng: rng.rayleigh(2, _SIZE, "float32"),
    "laplace": lambda rng: rng.laplace(0, 2, _SIZE, "float32"),
    "one": lambda rng: rng.normal(dtype="float32"),
    "of a key": lambda rng: fw.random.Generator(fw.random.fold_in(rng.bits(), 3)).normal(size=5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_server_draws_the_bits_that_numpy_draws(service: Service, name: str) -> None:
    with session_in_memory():
        expected = [DRAWS[name](fw.random.Generator(seed)).numpy() for seed in (1, 2)]
    with service.connect():
        drawn = [DRAWS[name](fw.random.Generator(seed)).numpy(timeout=HANGS_S) for seed in (1, 2)]
    assert [(each.dtype, each.tobytes()) for each in drawn] == [(each.dtype, each.tobytes()) for each in expected]


def walk(x: fw.Array, rng: fw.random.Generator) -> fw.Array:
    return x * 0.9 + rng.normal(0, 0.1, 32, "float32") * rng.random((), "float32")


def walked(session: fw.Session, seed: Any) -> fw.Array:
    """A loop in Python: one generator draws on and on."""
    rng, x = fw.random.Generator(seed), session.array(np.zeros(32, np.float32))
    for _ in range(_STEPS):
        x = walk(x, rng)
    return x


def walked_by_keys(session: fw.Session, seed: int, *, is_recorded_once: bool) -> fw.Array:
    """A loop whose generators are those of its counter."""
    key = session.array(np.uint64(seed))

    def body(i: Any, x: fw.Array) -> fw.Array:
        return walk(x, fw.random.Generator(fw.random.fold_in(key, i)))

    x = session.array(np.zeros(32, np.float32))
    if is_recorded_once:
        result: fw.Array = fw.fori_loop(_STEPS, body, x)
        return result
    for i in range(_STEPS):
        x = body(i, x)
    return x


def test_a_loop_draws_the_same_in_company_as_alone(service: Service) -> None:
    with session_in_memory() as session:
        expected = [walked(session, seed).numpy().tobytes() for seed in range(_CLIENTS)]
    together = Barrier(_CLIENTS)

    def run(seed: int) -> list[bytes]:
        with service.connect() as session:
            together.wait(HANGS_S)
            key = session.array(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
            return [walked(session, key).numpy(timeout=HANGS_S).tobytes() for _ in range(3)]

    with ThreadPoolExecutor(_CLIENTS) as clients:
        assert [*clients.map(run, range(_CLIENTS))] == [[each] * 3 for each in expected]


def test_a_loop_that_is_recorded_once_draws_what_a_python_loop_draws(service: Service) -> None:
    with session_in_memory() as session:
        expected = walked_by_keys(session, 5, is_recorded_once=False).numpy().tobytes()
    with service.connect() as session:
        for is_recorded_once in (True, False):
            result = walked_by_keys(session, 5, is_recorded_once=is_recorded_once)
            assert result.numpy(timeout=HANGS_S).tobytes() == expected


def test_a_loop_that_draws_makes_no_new_program_for_another_seed(service: Service) -> None:
    seeds = range(1, 7)
    assert {fw.random.Generator(seed)._key >> 63 for seed in seeds} == {0, 1}  # keys of both halves of uint64
    with session_in_memory() as session:
        expected = [walked(session, seed).numpy().tobytes() for seed in seeds]
    with service.connect() as session:
        drawn = [walked(session, 1).numpy(timeout=HANGS_S).tobytes()]
        before = len(service.programs())
        drawn += [walked(session, seed).numpy(timeout=HANGS_S).tobytes() for seed in seeds[1:]]
        assert len(service.programs()) <= before + 3  # other cuts of the same loop
    assert drawn == expected
