"""The functions of NumPy's older interface draw from one generator, and one seed makes all of them draw the same."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect

METHODS = [
    *("beta", "binomial", "chisquare", "dirichlet", "f", "gamma", "geometric", "pareto", "power", "standard_cauchy"),
    *("logseries", "multinomial", "negative_binomial", "noncentral_chisquare", "noncentral_f", "poisson"),
    *("standard_gamma", "standard_t", "triangular", "wald", "weibull"),
    *("choice", "exponential", "gumbel", "laplace", "logistic", "lognormal", "normal", "permutation", "random"),
    *("multivariate_normal", "rayleigh", "shuffle", "standard_exponential", "standard_normal", "uniform"),
]
DRAWS: list[tuple[Callable[[], fw.Array], Callable[[fw.random.Generator], fw.Array]]] = [
    (lambda: fw.random.rand(2, 3), lambda rng: rng.random((2, 3))),
    (fw.random.rand, lambda rng: rng.random()),
    (lambda: fw.random.randn(4), lambda rng: rng.standard_normal(4)),
    (lambda: fw.random.randint(3, 9, size=5), lambda rng: rng.integers(3, 9, size=5)),
    (lambda: fw.random.random_sample(2), lambda rng: rng.random(2)),
    (lambda: fw.random.RandomState(7).randn(2, 3), lambda rng: rng.standard_normal((2, 3))),
    (lambda: fw.random.RandomState(7).randint(9, size=5), lambda rng: rng.integers(9, size=5)),
    (lambda: fw.random.RandomState(seed=7).permutation(5), lambda rng: rng.permutation(5)),
    (lambda: fw.random.normal(1.0, 2.0, 3), lambda rng: rng.normal(1.0, 2.0, 3)),
    (lambda: fw.random.choice(9, size=4, replace=False), lambda rng: rng.choice(9, size=4, replace=False)),
]


@pytest.fixture(autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


@pytest.mark.parametrize(("draw", "of_generator"), DRAWS)
def test_a_seed_determines_what_the_functions_draw(
    draw: Callable[[], fw.Array], of_generator: Callable[[fw.random.Generator], fw.Array]
) -> None:
    fw.random.seed(7)
    drawn = draw().numpy()
    np.testing.assert_array_equal(drawn, of_generator(fw.random.default_rng(7)).numpy())
    assert fw.random.seed(7) is None
    np.testing.assert_array_equal(draw().numpy(), drawn)


def test_all_functions_draw_from_one_generator() -> None:
    fw.random.seed(7)
    rng = fw.random.default_rng(7)
    for function, method in ((fw.random.rand, rng.random), (fw.random.randn, rng.standard_normal)):
        np.testing.assert_array_equal(function(3).numpy(), method(3).numpy())


def test_without_a_seed_each_process_draws_other_numbers() -> None:
    fw.random.seed()
    drawn = fw.random.rand(4).numpy()
    fw.random.seed()
    assert not np.array_equal(drawn, fw.random.rand(4).numpy())


@pytest.mark.parametrize("name", METHODS)
def test_a_function_has_the_parameters_of_the_method(name: str) -> None:
    _, *expected = inspect.signature(getattr(fw.random.Generator, name)).parameters.values()
    function: Any = getattr(fw.random, name)
    assert [*inspect.signature(function).parameters.values()] == expected
    assert function.__doc__ == getattr(fw.random.Generator, name).__doc__


def test_a_body_that_is_recorded_once_may_not_draw_from_the_shared_generator() -> None:
    with pytest.raises(fw.RequestError):
        fw.fori_loop(3, lambda i, x: x + fw.random.rand(2), fw.zeros(2))


def test_a_negative_seed_is_refused_and_the_generator_stays() -> None:
    fw.random.seed(7)
    with pytest.raises(ValueError, match="non-negative"):
        fw.random.seed(-1)
    np.testing.assert_array_equal(fw.random.rand(2).numpy(), fw.random.default_rng(7).random(2).numpy())


def test_a_state_brings_the_same_numbers_again() -> None:
    state = fw.random.RandomState(7)
    for source in (fw.random, state):
        source.seed(7)
        first = source.rand(3).numpy()
        kept = source.get_state()
        drawn = source.rand(3).numpy()
        source.set_state(kept)
        np.testing.assert_array_equal(source.rand(3).numpy(), drawn)
        source.seed(7)
        np.testing.assert_array_equal(source.rand(3).numpy(), first)
    fw.random.set_state(state.get_state(legacy=False))
    np.testing.assert_array_equal(fw.random.rand(3).numpy(), state.rand(3).numpy())


def test_a_state_may_come_as_a_list() -> None:
    state = fw.random.RandomState(7)
    fw.random.set_state([*state.get_state()])
    np.testing.assert_array_equal(fw.random.rand(3).numpy(), state.rand(3).numpy())


def test_a_state_of_numpys_or_of_nobody_is_refused() -> None:
    numpys = np.random.RandomState(7)
    name = fw.random.get_state()[0]
    of_nobody = ((name,), (name, "x", "y"), (name, 1, -1), (name, 2**64, 0), None)
    for state in (numpys.get_state(), numpys.get_state(legacy=False), *of_nobody):
        with pytest.raises(fw.ArgumentError, match="seed both by an integer"):
            fw.random.set_state(state)
