"""Counts have their probabilities, whether their mean is small or large, and take NumPy's arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import comb, exp, lgamma, log, log1p, sqrt
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire._api.random import counts
from tests.client.peer import connect

MANY = 20_000
STANDARD_ERRORS = 5
LEAST_EXPECTED = 10  # of a count that is compared by itself; rarer ones are compared together


@pytest.fixture(autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def generator(seed: Any = 1) -> fw.random.Generator:
    return fw.random.Generator(seed)


def _poisson(mean: float) -> Callable[[int], float]:
    return lambda k: exp(k * log(mean) - mean - lgamma(k + 1))


def _binomial(n: int, p: float) -> Callable[[int], float]:
    return lambda k: exp(log(comb(n, k)) + k * log(p) + (n - k) * log1p(-p)) if k <= n else 0.0


def _negative_binomial(n: float, p: float) -> Callable[[int], float]:
    return lambda k: exp(lgamma(k + n) - lgamma(n) - lgamma(k + 1) + n * log(p) + k * log1p(-p))


Distribution = tuple[Callable[[fw.random.Generator], fw.Array], Callable[[int], float]]


def _of_mean(mean: float) -> Distribution:
    return lambda rng: rng.poisson(mean, MANY), _poisson(mean)


def _of_trials(n: int, p: float) -> Distribution:
    return lambda rng: rng.binomial(n, p, MANY), _binomial(n, p)


# Each: how it is drawn, and the probability of a count.
DISTRIBUTIONS: dict[str, Distribution] = {
    **{f"poisson {mean}": _of_mean(mean) for mean in (0.1, 9.9, 10, 60)},
    **{f"binomial {n}, {p}": _of_trials(n, p) for n, p in ((4, 0.25), (20, 0.5), (200, 0.04), (200, 0.3), (100, 0.9))},
    "negative_binomial": (lambda rng: rng.negative_binomial(2.5, 0.3, MANY), _negative_binomial(2.5, 0.3)),
    "multinomial": (lambda rng: rng.multinomial(60, [0.2, 0.5, 0.3], MANY)[:, 1], _binomial(60, 0.5)),
    "the last of multinomial": (lambda rng: rng.multinomial(60, [0.2, 0.5, 0.3], MANY)[:, 2], _binomial(60, 0.3)),
    "geometric": (lambda rng: rng.geometric(0.25, MANY) - 1, lambda k: 0.25 * 0.75**k),
    "logseries": (lambda rng: rng.logseries(0.7, MANY) - 1, lambda k: -(0.7 ** (k + 1)) / (k + 1) / log(0.3)),
}


def chi_square(values: Any, probability: Callable[[int], float]) -> float:
    """How far the counts are from their probabilities: about a standard normal number if they are as probable."""
    known = np.array([probability(k) for k in range(int(values.max()) + 2)])
    expected, seen = known * len(values), np.bincount(values, minlength=len(known))
    by_itself = expected >= LEAST_EXPECTED
    rest = np.array([len(values) - expected[by_itself].sum(), seen[~by_itself].sum()])
    expected, seen = np.append(expected[by_itself], rest[0]), np.append(seen[by_itself], rest[1])
    freedom = len(expected) - 1
    return float((((seen - expected) ** 2 / np.maximum(expected, 1)).sum() - freedom) / sqrt(2 * freedom))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_counts_are_as_frequent_as_they_are_probable(name: str) -> None:
    draw, probability = DISTRIBUTIONS[name]
    drawn = draw(generator())
    assert drawn.dtype is fw.int64
    assert chi_square(drawn.numpy(), probability) < STANDARD_ERRORS


@pytest.mark.parametrize(
    ("draw", "mean", "variance"),
    [
        (lambda rng: rng.poisson(1e15, MANY), 1e15, 1e15),
        (lambda rng: rng.binomial(10**12, 0.25, MANY), 0.25e12, 0.1875e12),
        (lambda rng: rng.negative_binomial(1000, 0.01, MANY), 99e3, 99e5),
        (lambda rng: rng.noncentral_chisquare(0.5, 20.0, MANY), 20.5, 81.0),
        (lambda rng: rng.noncentral_f(4.0, 12.0, 2.0, MANY), 1.8, 2.61),
    ],
)
def test_numbers_have_their_mean_and_variance(draw: Any, mean: float, variance: float) -> None:
    values = draw(generator()).numpy().astype(np.float64) - mean
    assert abs(values.mean()) < STANDARD_ERRORS * sqrt(variance / MANY)
    fourth = (values**4).mean() / variance**2
    assert abs((values**2).mean() / variance - 1) < STANDARD_ERRORS * sqrt((fourth - 1) / MANY)


def test_results_of_one_trial_exclude_each_other() -> None:
    drawn = generator().multinomial(40, [0.1, 0.6, 0.3], MANY).numpy()
    assert (drawn.sum(1) == 40).all()
    assert np.cov(drawn[:, 0], drawn[:, 1])[0, 1] == pytest.approx(-40 * 0.06, abs=0.3)


def test_counts_of_many_trials_have_their_sum() -> None:
    for trials, results in ((2**53 + 1, 6), (2**60, 6), (2**60 + 1, 3), (2**60 + 1, 6), (2**62 + 7, 5)):
        assert generator().multinomial(trials, [1 / results] * results).numpy().sum() == trials


def test_a_result_without_a_chance_has_none_of_many_trials() -> None:
    assert generator().multinomial(2**60 + 1, [0.5, 0, 0.5, 0]).numpy()[1::2].tolist() == [0, 0]


def test_more_trials_than_an_integer_holds_are_refused() -> None:
    for trials in (10**20, 1e20):
        with pytest.raises(fw.ArgumentError, match="at most 9223372036854775807"):
            generator().binomial(trials, 0.5)
        with pytest.raises(fw.ArgumentError, match="at most"):
            generator().negative_binomial(10**30, 0.5)


def test_each_of_many_results_has_its_probability(session: fw.Session) -> None:
    chances = np.arange(1, 12) / 66
    drawn = generator().multinomial(20, session.array(chances), MANY).numpy()
    assert (drawn.sum(1) == 20).all()
    for result, chance in enumerate(chances):
        assert chi_square(drawn[:, result], _binomial(20, chance)) < STANDARD_ERRORS


def test_results_are_recorded_in_steps_of_their_logarithm(session: fw.Session) -> None:
    def recorded(results: int) -> int:
        before = session.recorder().next_number
        generator().multinomial(9, np.full(results, 1 / results))
        return session.recorder().next_number - before

    of_one_step = recorded(2)
    assert recorded(1000) < 10 * of_one_step  # 1000 results are halved ten times


def test_no_trials_are_counted_and_no_results_are_refused() -> None:
    assert generator().binomial([], 0.5).shape == (0,)
    with pytest.raises(fw.ShapeError, match="a vector of probabilities"):
        generator().multinomial(5, [])


def test_certain_counts_are_certain(session: fw.Session) -> None:
    rng = generator()
    assert rng.poisson(0.0, 3).numpy().tolist() == [0, 0, 0]
    assert rng.binomial([5, 5, 0, 10**6, 10**6], [0.0, 1.0, 0.5, 0.0, 1.0]).numpy().tolist() == [0, 5, 0, 0, 10**6]
    assert rng.negative_binomial(3, 1.0, 2).numpy().tolist() == [0, 0]
    assert rng.multinomial(7, session.array([0.0, 1.0, 0.0])).numpy().tolist() == [0, 7, 0]
    assert rng.multinomial(7, [1.0]).numpy().tolist() == [7]
    assert rng.geometric(1.0, 3).numpy().tolist() == [1, 1, 1]
    assert rng.logseries(0.0, 3).numpy().tolist() == [1, 1, 1]


def test_a_number_does_not_depend_on_its_neighbours_parameters(session: fw.Session) -> None:
    for place in (np.asarray, session.array):
        drawn = generator().poisson(place([3.0, 50.0, 3.0, 1e6])).numpy()
        alone = [generator().poisson(mean, 4).numpy() for mean in (3.0, 50.0, 1e6)]
        np.testing.assert_array_equal(drawn, [alone[0][0], alone[1][1], alone[0][2], alone[2][3]])


def test_a_loop_that_is_recorded_once_counts_anew() -> None:
    key = fw.random.key(7)

    def body(i: Any, x: Any) -> Any:
        rng = generator(fw.random.fold_in(key, i))
        return x + rng.poisson(x, 3).astype(fw.float64)

    expected: Any = fw.full(3, 8.0)
    for i in range(3):
        expected = body(i, expected)
    np.testing.assert_array_equal(fw.fori_loop(3, body, fw.full(3, 8.0)).numpy(), expected.numpy())


CALLS: list[tuple[str, tuple[Any, ...]]] = [
    *(("poisson", given) for given in ((), (2.0,), ([1.0, 2.0],), ([1.0, 2.0], (3, 2)), (1.0, 0))),
    *(
        ("binomial", given)
        for given in ((3, 0.5), (3.0, 0.5), ([3, 4], 0.5), ([[3], [4]], [0.5, 0.2, 0.1]), (3, 0.5, (2, 2)))
    ),
    *(("multinomial", given) for given in ((3.0, [0.5, 0.5]), ([3, 4], [0.5, 0.5]), (3, [0.5, 0.5], (2,)))),
    *(("multinomial", given) for given in ((3, [0.2, 0.3, 0.5], 0), ([[3], [4]], [[0.5, 0.5], [0.1, 0.9]]))),
    *(("negative_binomial", ([1, 2], 0.5)), ("logseries", ([0.1, 0.2],)), ("geometric", (0.5, 2))),
    *(("noncentral_f", (1, 2, [1, 2.0])), ("noncentral_chisquare", (1.0, [[0.0], [1.0]]))),
]


@pytest.mark.parametrize(("name", "given"), CALLS)
def test_shapes_and_dtypes_are_numpys(name: str, given: tuple[Any, ...]) -> None:
    expected = np.asarray(getattr(np.random.default_rng(1), name)(*given))
    drawn = getattr(generator(), name)(*given)
    assert (drawn.shape, drawn.dtype.name) == (expected.shape, expected.dtype.name)


REFUSED: list[tuple[str, tuple[Any, ...]]] = [
    *(("poisson", given) for given in ((-1,), (np.nan,), (1e19,), (9.22337204e18,), ([1, 2], 3))),
    *(("binomial", given) for given in ((-1, 0.5), (3, 1.5), (1, np.nan))),
    *(("negative_binomial", given) for given in ((0, 0.5), (1, 0), (1, 1.5), (1e18, 1e-9))),
    *(("multinomial", given) for given in ((3, [0.6, 0.6, 0.1]), (-3, [0.6, 0.4]), (3, 0.6), (3, [-0.6, 0.4]))),
    *(("geometric", given) for given in ((0,), (1.5,))),
    *(("logseries", given) for given in ((1.0,), (-0.1,))),
    *(("noncentral_f", (0, 1, 1)), ("noncentral_chisquare", (1, -1))),
]


@pytest.mark.parametrize(("name", "given"), REFUSED)
def test_parameters_that_numpy_refuses_are_refused(name: str, given: tuple[Any, ...]) -> None:
    with pytest.raises((ValueError, TypeError)) as expected:
        getattr(np.random.default_rng(1), name)(*given)
    rng = generator()
    with pytest.raises(expected.type):
        getattr(rng, name)(*given)
    assert rng.random().item() == generator().random().item()  # nothing was drawn


def test_a_number_of_trials_is_an_integer(session: fw.Session) -> None:
    for trials in (2.5, session.array([2.0])):
        with pytest.raises(fw.DtypeError, match="a number of trials is an integer"):
            generator().binomial(trials, 0.5)


def test_numbers_of_trials_may_be_floats_without_a_fraction() -> None:
    for trials in (10.0, np.float32(10)):
        assert (
            generator().binomial(trials, 0.5, 9).numpy().tolist() == generator().binomial(10, 0.5, 9).numpy().tolist()
        )
        assert generator().multinomial(trials, [0.5, 0.5]).numpy().sum() == 10


def test_counts_of_too_great_a_mean_on_the_server_end_at_the_greatest_integer(session: fw.Session) -> None:
    assert generator().poisson(session.array([1e19, 3.0])).numpy()[0] == 2**63 - 1


def test_many_are_drawn_in_slabs_each_by_its_own_parameters(
    session: fw.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "_SLAB", 8)
    trials = np.arange(21).reshape(3, 7)
    generator = fw.random.default_rng(1)
    assert generator.binomial(session.array(trials), session.array(np.ones((1, 1)))).numpy().tolist() == trials.tolist()
    means = session.array(np.where(trials % 2, 0.0, 1e6))
    drawn = generator.poisson(means).numpy()
    assert (drawn == 0).tolist() == (trials % 2 == 1).tolist()
    assert len(set(drawn[trials % 2 == 0].tolist())) > 5
