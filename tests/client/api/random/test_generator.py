"""A generator draws numbers of the distributions that it names, reproducibly, and never the same ones again."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from math import factorial
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fusewire as fw
from fusewire._recording import default_session
from tests.client.peer import connect
from tests.patience import HANGS_S

Values = npt.NDArray[Any]

MANY = 40_000
FLOATS = ["float16", "bfloat16", "float32", "float64"]
# The greatest distance between the share of numbers below a bound and its probability. By chance, one seed in 60,000
# would exceed it (Kolmogorov).
MOST_DISTANT = 2.4 / MANY**0.5


@pytest.fixture(autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def generator(seed: Any = 1) -> fw.random.Generator:
    return fw.random.Generator(seed)


# ---- what is drawn ----

_normal = np.vectorize(NormalDist().cdf)


def _laplace(x: Values) -> Values:
    return np.asarray(np.where(x < 0, np.exp(x) / 2, 1 - np.exp(-np.abs(x)) / 2))


def _wald(x: Values) -> Values:
    """Of mean 1 and scale 2."""
    root = np.sqrt(2 / x)
    return np.asarray(_normal(root * (x - 1)) + np.exp(4) * _normal(-root * (x + 1)))


def _triangular(x: Values) -> Values:
    """From 0 over 1 to 4."""
    return np.asarray(np.where(x < 1, x**2 / 4, 1 - (4 - x) ** 2 / 12))


# Each: how it is drawn, and the probability of less.
DISTRIBUTIONS: dict[str, tuple[Callable[..., fw.Array], Callable[[Values], Values]]] = {
    "random": (lambda rng, **more: rng.random(MANY, **more), lambda x: x),
    "uniform": (lambda rng, **more: rng.uniform(-3, 5, MANY, **more), lambda x: (x + 3) / 8),
    "standard_normal": (lambda rng, **more: rng.standard_normal(MANY, **more), _normal),
    "normal": (lambda rng, **more: rng.normal(2, 3, MANY, **more), lambda x: _normal((x - 2) / 3)),
    "standard_exponential": (
        lambda rng, **more: rng.standard_exponential(MANY, **more),
        lambda x: 1 - np.exp(-x),
    ),
    "exponential": (lambda rng, **more: rng.exponential(2, MANY, **more), lambda x: 1 - np.exp(-x / 2)),
    "lognormal": (lambda rng, **more: rng.lognormal(1, 2, MANY, **more), lambda x: _normal((np.log(x) - 1) / 2)),
    "rayleigh": (lambda rng, **more: rng.rayleigh(2, MANY, **more), lambda x: 1 - np.exp(-((x / 2) ** 2) / 2)),
    "laplace": (lambda rng, **more: rng.laplace(1, 2, MANY, **more), lambda x: _laplace((x - 1) / 2)),
    "gumbel": (lambda rng, **more: rng.gumbel(1, 2, MANY, **more), lambda x: np.exp(-np.exp(-(x - 1) / 2))),
    "logistic": (lambda rng, **more: rng.logistic(1, 2, MANY, **more), lambda x: 1 / (1 + np.exp(-(x - 1) / 2))),
    "weibull": (lambda rng, **more: rng.weibull(2, MANY, **more), lambda x: 1 - np.exp(-(x**2))),
    "pareto": (lambda rng, **more: rng.pareto(3, MANY, **more), lambda x: 1 - (1 + x) ** -3.0),
    "power": (lambda rng, **more: rng.power(3, MANY, **more), lambda x: x**3),
    "standard_cauchy": (lambda rng, **more: rng.standard_cauchy(MANY, **more), lambda x: 0.5 + np.arctan(x) / np.pi),
    "triangular": (lambda rng, **more: rng.triangular(0, 1, 4, MANY, **more), _triangular),
    "wald": (lambda rng, **more: rng.wald(1, 2, MANY, **more), _wald),
    "gamma": (lambda rng, **more: rng.gamma(2, 3, MANY, **more), lambda x: 1 - np.exp(-x / 3) * (1 + x / 3)),
    "standard_gamma": (
        lambda rng, **more: rng.standard_gamma(0.5, MANY, **more),
        lambda x: 2 * _normal(np.sqrt(2 * x)) - 1,
    ),
    "chisquare": (lambda rng, **more: rng.chisquare(2, MANY, **more), lambda x: 1 - np.exp(-x / 2)),
    "beta": (lambda rng, **more: rng.beta(2, 2, MANY, **more), lambda x: x**2 * (3 - 2 * x)),
    "f": (lambda rng, **more: rng.f(2, 2, MANY, **more), lambda x: 1 - 1 / (1 + x)),
    "standard_t": (lambda rng, **more: rng.standard_t(2, MANY, **more), lambda x: 0.5 + x / np.sqrt(2 + x**2) / 2),
    "dirichlet": (lambda rng, **more: rng.dirichlet([2, 1], MANY, **more)[:, 0], lambda x: x**2),
}


def distance(values: Values, probability: Callable[[Values], Values]) -> float:
    """The distance of Kolmogorov and Smirnov between the values and their distribution."""
    expected = probability(np.sort(values))
    steps = np.arange(len(values) + 1) / len(values)
    return float(max((steps[1:] - expected).max(), (expected - steps[:-1]).max()))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_have_the_distribution(name: str, dtype: str) -> None:
    draw, probability = DISTRIBUTIONS[name]
    values = draw(generator(), dtype=dtype).numpy()
    assert values.dtype == dtype
    assert distance(values.astype(np.float64), probability) < MOST_DISTANT


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_halves_are_near_the_numbers_in_float64(name: str) -> None:
    draw, probability = DISTRIBUTIONS[name]
    for dtype, precision in (("float16", 2.0**-10), ("bfloat16", 2.0**-7)):
        values = draw(generator(), dtype=dtype).numpy()
        assert values.dtype == np.dtype(dtype) if dtype == "float16" else values.dtype.name == dtype
        assert distance(values.astype(np.float64), probability) < MOST_DISTANT + precision


def test_parameters_of_gamma_numbers_may_be_on_the_server(session: fw.Session) -> None:
    values = generator().gamma(session.array([0.5, 2.0, 9.0]), size=(10_000, 3)).numpy()
    np.testing.assert_allclose(values.mean(0), [0.5, 2, 9], rtol=0.05)
    np.testing.assert_allclose(values.var(0), [0.5, 2, 9], rtol=0.1)


@pytest.mark.parametrize("place", [list, fw.asarray], ids=["on this machine", "on the server"])
def test_vectors_of_normal_numbers_have_the_means_and_covariances(place: Callable[[Any], Any]) -> None:
    for cov in ([[2.0, 1.0], [1.0, 3.0]], [[4.0, 2.0], [2.0, 1.0]]):  # the second is singular
        values = generator().multivariate_normal(place([1.0, -2.0]), place(cov), (MANY // 2, 2)).numpy()
        assert values.shape == (MANY // 2, 2, 2)
        np.testing.assert_allclose(values.mean((0, 1)), [1, -2], atol=10 / MANY**0.5)
        np.testing.assert_allclose(np.cov(values.reshape(-1, 2).T), cov, atol=20 / MANY**0.5)
    with pytest.raises(fw.ShapeError, match="a mean of shape"):
        generator().multivariate_normal([0.0, 0.0], [[1.0]])


def test_a_distribution_that_only_numpy_draws_is_named() -> None:
    for owner in (generator(), fw.random):
        with pytest.raises(AttributeError, match=r"NumPy draws it, fw.asarray\(np.random.default_rng\(seed\).zipf"):
            getattr(owner, "zipf")  # noqa: B009  # a type checker knows that it is not there


def test_names_of_numpys_that_draw_nothing_have_another_way() -> None:
    for name, way in (("bit_generator", "copied or pickled"), ("spawn", r"fw\.random\.split")):
        with pytest.raises(AttributeError, match=way):
            getattr(generator(), name)


def test_neighbours_and_draws_one_after_another_are_independent() -> None:
    rng = generator()
    one, other = (rng.standard_normal(MANY).numpy() for _ in range(2))
    for a, b in ((one, other), (one[1:], one[:-1]), (one[4:], one[:-4]), (one, np.roll(other, 1))):
        assert abs(np.corrcoef(a, b)[0, 1]) < 5 / MANY**0.5


def test_numbers_of_neighbouring_seeds_are_independent() -> None:
    one, other = (generator(seed).random(MANY).numpy() for seed in (1, 2))
    assert abs(np.corrcoef(one, other)[0, 1]) < 5 / MANY**0.5


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_numbers_use_all_bits_of_the_significand(dtype: str) -> None:
    values = generator().random(MANY, dtype).astype("float64").numpy()
    bits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype]
    whole = values * 2.0**bits
    np.testing.assert_array_equal(whole, np.floor(whole))
    assert ((values >= 0) & (values < 1)).all()
    assert (whole % 2 == 1).mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int32", "uint64", "int64"])
def test_each_bit_is_set_half_of_the_time(dtype: str) -> None:
    values = generator().bits(MANY, dtype).numpy()
    assert values.dtype == dtype
    width = 8 * values.itemsize
    unsigned = values.view(f"u{values.itemsize}")
    shares = [(unsigned >> bit & 1).mean() for bit in range(width)]
    np.testing.assert_allclose(shares, 0.5, atol=5 * 0.5 / MANY**0.5)


@pytest.mark.parametrize("p", [0, 0.25, 1, np.float32(0.75)])
def test_booleans_are_true_with_their_probability(session: fw.Session, p: float) -> None:
    for given in (p, session.array(p)):
        values = generator().bernoulli(given, MANY).numpy()
        assert values.dtype == np.bool_
        assert values.mean() == pytest.approx(p, abs=5 * (float(p) * (1 - float(p)) / MANY) ** 0.5)


def test_probabilities_may_differ_between_elements() -> None:
    values = generator().bernoulli([[0.0], [0.5], [1.0]], (3, 1000)).numpy()
    assert (values.sum(1)[[0, 2]] == [0, 1000]).all()
    assert 400 < values.sum(1)[1] < 600


# ---- reproducibly ----


def test_equal_seeds_draw_equal_numbers_and_different_ones_others() -> None:
    for draw, _ in DISTRIBUTIONS.values():
        assert draw(generator(3)).numpy().tobytes() == draw(generator(3)).numpy().tobytes()
        assert draw(generator(3)).numpy().tobytes() != draw(generator(4)).numpy().tobytes()


def test_a_seed_draws_what_its_key_draws_in_any_session() -> None:
    expected = generator(3).random(5).numpy()
    np.testing.assert_array_equal(generator(fw.random.key(3)).random(5).numpy(), expected)
    with connect().session:
        np.testing.assert_array_equal(generator(3).random(5).numpy(), expected)


def test_a_draw_goes_on_where_the_last_one_ended() -> None:
    whole = generator().bits(24).numpy()
    rng = generator()
    parts = [rng.bits((2, 3)), rng.bits(()), rng.bits(0), rng.bits(), rng.bits(16)]
    np.testing.assert_array_equal(np.concatenate([each.numpy().reshape(-1) for each in parts]), whole)


def test_threads_that_share_a_generator_draw_different_numbers(session: fw.Session) -> None:
    rng = generator(fw.random.key(3))
    with ThreadPoolExecutor(8) as threads:
        drawn = [*threads.map(lambda _: rng.bits(10).numpy().tolist(), range(80))]
    assert len({number for numbers in drawn for number in numbers}) == 800
    expected = generator(3).bits(800).numpy()
    assert {number for numbers in drawn for number in numbers} == set(expected.tolist())


def test_a_thread_whose_session_is_being_connected_keeps_no_other_thread_from_drawing(
    session: fw.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    connects, is_connected = threading.Event(), threading.Event()

    def slow_connection() -> fw.Session:
        connects.set()
        assert is_connected.wait(HANGS_S)
        return session

    monkeypatch.setattr(default_session, "_providers", [slow_connection])
    rng, mean = generator(), session.array([1.0])
    with ThreadPoolExecutor(2) as threads:
        try:
            waiting = threads.submit(rng.random)
            assert connects.wait(HANGS_S)
            first = threads.submit(rng.exponential, mean).result(HANGS_S)
        finally:
            is_connected.set()
        waiting.result(HANGS_S)
    assert first.item() == generator().exponential(mean).item()


def test_a_copy_and_a_pickle_draw_on_from_where_the_generator_was() -> None:
    for seed in (3, fw.random.key(3)):
        rng = generator(seed)
        rng.random(4)
        others = [copy.copy(rng), copy.deepcopy(rng)]
        others += [pickle.loads(pickle.dumps(rng))] if isinstance(seed, int) else []  # noqa: S301  # our own
        drawn = rng.random(4).numpy()
        for other in others:
            np.testing.assert_array_equal(other.random(4).numpy(), drawn)


def test_default_rng_takes_a_seed_or_a_generator() -> None:
    rng = fw.random.default_rng(3)
    assert fw.random.default_rng(rng) is rng
    assert rng.random().item() == generator(3).random().item()
    assert fw.random.default_rng().random().item() != fw.random.default_rng().random().item()


# ---- in bodies that are recorded once ----


def test_a_loop_that_is_recorded_once_draws_anew_by_its_counter() -> None:
    key = fw.random.key(7)

    def body(i: Any, x: Any) -> Any:
        rng = generator(fw.random.fold_in(key, i))
        return x + rng.normal(size=4) * rng.random(4)

    expected: Any = fw.zeros(4)
    for i in range(3):
        expected = body(i, expected)
    np.testing.assert_array_equal(fw.fori_loop(3, body, fw.zeros(4)).numpy(), expected.numpy())


def test_a_loop_may_carry_its_key() -> None:
    def body(i: Any, carry: Any) -> Any:
        key, x = carry
        return fw.random.fold_in(key, 1), x + generator(key).random(3)

    key, expected = fw.random.key(7), fw.zeros(3)
    for _ in range(3):
        key, expected = body(None, (key, expected))
    _, x = fw.fori_loop(3, body, (fw.random.key(7), fw.zeros(3)))
    np.testing.assert_array_equal(x.numpy(), expected.numpy())


def test_a_recorded_function_draws_by_a_key_that_it_is_given() -> None:
    @fw.function
    def noisy(x: Any, key: Any) -> Any:
        return x + generator(key).normal(size=3)

    keys = fw.random.split(fw.random.key(7), 3)
    for i in range(3):
        expected = generator(keys[i]).normal(size=3).numpy()
        np.testing.assert_array_equal(noisy(fw.zeros(3), keys[i]).numpy(), expected)


@pytest.mark.parametrize("seed", [3, None])
def test_a_generator_from_outside_does_not_draw_in_a_body(seed: int | None) -> None:
    rng = generator(fw.random.key(3) if seed is None else seed)
    with pytest.raises(fw.RequestError, match=r"the same numbers each time: make one in the body"):
        fw.fori_loop(3, lambda i, x: x + rng.random(4), fw.zeros(4))
    with pytest.raises(fw.RequestError, match="the same numbers each time"):
        fw.function(lambda x: x + rng.random(4))(fw.zeros(4))
    assert rng.random().item() == generator(3).random().item()  # nothing was drawn


# ---- shapes, dtypes and sessions ----


def test_sizes_and_dtypes_are_numpys() -> None:
    ours, numpys = generator(), np.random.default_rng(1)
    for name in ("random", "standard_normal", "standard_exponential", "uniform", "normal", "exponential", "gumbel"):
        for size in (None, (), 0, 3, [2], (2, 3), (2, 0), np.int64(4)):
            drawn, expected = getattr(ours, name)(size=size), getattr(numpys, name)(size=size)
            assert (drawn.shape, drawn.dtype) == (np.shape(expected), fw.float64)
    assert ours.integers(5, size=(2, 3)).dtype == numpys.integers(5, size=(2, 3)).dtype
    assert ours.uniform([1, 2], [[3], [4]]).shape == numpys.uniform([1, 2], [[3], [4]]).shape == (2, 2)
    assert ours.normal([1, 2], size=(3, 2)).shape == (3, 2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_parameters_of_any_dtype_leave_the_dtype_that_is_asked_for(session: fw.Session, dtype: str) -> None:
    wide = session.array(np.linspace(1, 2, 3))
    for drawn in (generator().normal(wide, 2.0, dtype=dtype), generator().uniform(np.float64(0), wide, 3, dtype)):
        assert drawn.dtype.name == dtype
        assert drawn.shape == (3,)


def test_parameters_scale_and_move_what_is_drawn(session: fw.Session) -> None:
    plain = generator().standard_normal(4).numpy()
    for convert in (float, np.float64, session.array):
        np.testing.assert_array_equal(generator().normal(convert(3), convert(2), 4).numpy(), plain * 2 + 3)
    np.testing.assert_array_equal(generator().normal([1, 2, 3, 4]).numpy(), plain + [1, 2, 3, 4])


def test_a_generator_of_a_key_draws_where_the_key_is() -> None:
    with connect().session as other:
        key = other.array(np.uint64(3))
        with connect().session:
            rng = generator(key)
            for drawn in (rng.random(3), rng.permutation([1, 2]), rng.choice([1.0, 2.0], 3), rng.normal([1.0, 2.0])):
                assert drawn.session is other


def test_a_generator_of_a_seed_draws_where_its_first_array_is() -> None:
    with connect().session as other:
        x = other.array([1.0, 2.0])
        with connect().session as default:
            rng = generator()
            assert rng.random(3).session is default
            for drawn in (rng.permutation(x), rng.choice(x, 3), rng.normal(x), rng.choice(2, p=x), rng.permuted(x)):
                assert drawn.session is other


def test_parameters_that_numpy_refuses_are_refused(session: fw.Session) -> None:
    rng, numpys = generator(), np.random.default_rng(1)
    refused: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("normal", (0, -1), {}),
        ("normal", (0, [1, -1]), {}),
        ("exponential", (-1,), {}),
        ("lognormal", (0, -1), {}),
        ("rayleigh", (-1,), {}),
        ("laplace", (0, -1), {}),
        ("gumbel", (0, -1), {}),
        ("logistic", (0, -1), {}),
        ("weibull", (-1,), {}),
        ("pareto", (0,), {}),
        ("power", (0,), {}),
        ("triangular", (2, 1, 3), {}),
        ("triangular", (1, 4, 3), {}),
        ("triangular", (1, 1, 1), {}),
        ("wald", (0, 1), {}),
        ("gamma", (-1,), {}),
        ("gamma", (1, -1), {}),
        ("chisquare", (0,), {}),
        ("standard_t", (0,), {}),
        ("f", (1, 0), {}),
        ("beta", (0, 1), {}),
        ("dirichlet", ([1, -1],), {}),
        ("normal", ([1, 2],), {"size": 3}),
        ("uniform", ([1, 2], [1, 2, 3]), {}),
        ("uniform", (0, np.inf), {}),
        ("random", (-1,), {}),
        ("random", (3, "int64"), {}),
        ("standard_normal", (3, "int64"), {}),
        ("random", (1.5,), {}),
    ]
    for name, given, named in refused:
        with pytest.raises((ValueError, TypeError, OverflowError)) as expected:
            getattr(numpys, name)(*given, **named)
        with pytest.raises(expected.type):
            getattr(rng, name)(*given, **named)
    for p in (-0.1, 1.1, [0.5, np.nan]):
        with pytest.raises(fw.ArgumentError, match="from 0 to 1"):
            rng.bernoulli(p)
    with pytest.raises(fw.DtypeError, match="integer dtype, not float32"):
        rng.bits(3, "float32")
    assert rng.random().item() == generator().random().item()  # nothing was drawn


def test_parameters_come_in_numpys_order() -> None:
    ours = {
        name: method
        for name, method in inspect.getmembers(fw.random.Generator, inspect.isfunction)
        if not name.startswith("_") and name not in ("bits", "bernoulli")
    }
    for name, method in ours.items():
        drawn = inspect.signature(method)
        documented = (getattr(np.random.Generator, name).__doc__ or "").strip().splitlines()[0]
        numpys = [each.split("=")[0].strip() for each in documented[len(name) + 1 : -1].split(",")]
        mine = [parameter for parameter in drawn.parameters if parameter not in ("self", "dtype")]
        assert mine == [each for each in numpys if each in mine], name


# ---- orders ----


def test_orders_are_equally_likely() -> None:
    rows = np.tile(np.arange(4), (MANY, 1))
    orders = generator().permuted(rows, axis=1).numpy()
    counts = [(orders == order).all(1).sum() for order in permutations(range(4))]
    assert sum(counts) == MANY
    mean = MANY / factorial(4)
    np.testing.assert_allclose(counts, mean, atol=5 * mean**0.5)


def test_a_permutation_has_each_slice_once(session: fw.Session) -> None:
    table = np.arange(60).reshape(3, 20)
    for axis in (0, 1, -1):
        mixed = generator().permutation(session.array(table), axis).numpy()
        order = np.argsort(mixed.take(0, 1 - axis % 2))
        np.testing.assert_array_equal(mixed.take(order, axis), table)
    mixed = generator().permutation(table, 1).numpy()
    assert (mixed != table).any()
    assert sorted(generator().permutation(50).numpy().tolist()) == [*range(50)]
    assert generator().permutation(0).shape == (0,)
    all_mixed = generator().permuted(table).numpy()
    assert all_mixed.shape == table.shape
    np.testing.assert_array_equal(np.sort(all_mixed, None), table.reshape(-1))


def test_a_shuffled_array_object_has_the_value_of_a_permutation(session: fw.Session) -> None:
    x = session.array(np.arange(20))
    expected = generator().permutation(x).numpy()
    generator().shuffle(x)
    np.testing.assert_array_equal(x.numpy(), expected)
    with pytest.raises(TypeError, match="an array on the server, not a list"):
        generator().shuffle([1, 2])  # type: ignore[arg-type]


def test_orders_of_what_has_none_are_refused() -> None:
    for wrong in (-1, 1.5):
        with pytest.raises((ValueError, fw.AxisError)):
            generator().permutation(wrong)
    with pytest.raises(fw.AxisError):
        generator().permutation([1, 2], axis=1)
