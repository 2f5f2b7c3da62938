"""Choices follow their probabilities, and without replacement take nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect

MANY = 40_000
P = np.array([0.1, 0.0, 0.4, 0.2, 0.3])


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def shares(values: Any, count: int) -> Any:
    return np.bincount(values.numpy(), minlength=count) / values.size


def _assert_near(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual, expected, atol=5 * 0.5 / MANY**0.5)


@pytest.mark.parametrize("convert", [np.array, list, lambda p: fw.asarray(p * 7)])
def test_choices_follow_their_probabilities(convert: Callable[[Any], Any]) -> None:
    drawn = fw.random.Generator(1).choice(5, MANY, p=convert(P))
    assert drawn.dtype == fw.int64
    _assert_near(shares(drawn, 5), P)
    assert (drawn.numpy() != 1).all()


def test_choices_without_probabilities_are_even() -> None:
    _assert_near(shares(fw.random.Generator(1).choice(5, MANY), 5), 0.2)


def test_without_replacement_nothing_is_taken_twice(session: fw.Session) -> None:
    rng = fw.random.Generator(1)
    assert sorted(rng.choice(5, 5, replace=False).tolist()) == [0, 1, 2, 3, 4]
    assert sorted(rng.choice(5, (2, 2), replace=False, p=P).reshape(-1).tolist()) == [0, 2, 3, 4]
    assert len(set(rng.choice(1000, 500, replace=False, p=session.array(np.ones(1000))).tolist())) == 500


def test_without_replacement_each_place_is_drawn_by_what_is_left() -> None:
    rng, rounds = fw.random.Generator(1), 4000
    drawn = fw.stack([rng.choice(5, 2, replace=False, p=P) for _ in range(rounds)]).numpy()
    pairs = np.zeros((5, 5))
    np.add.at(pairs, (drawn[:, 0], drawn[:, 1]), 1 / rounds)
    expected = np.array([[0 if a == b else P[a] * P[b] / (1 - P[a]) for b in range(5)] for a in range(5)])
    np.testing.assert_allclose(pairs, expected, atol=5 * 0.5 / rounds**0.5)


def test_slices_are_chosen_along_an_axis(session: fw.Session) -> None:
    table = np.arange(12.0).reshape(3, 4)
    for given in (table, session.array(table), table.tolist()):
        places = fw.random.Generator(1).choice(4, (2, 5)).numpy()
        np.testing.assert_array_equal(
            fw.random.Generator(1).choice(given, (2, 5), axis=1).numpy(), table.take(places, axis=1)
        )
    assert fw.random.Generator(1).choice(table).shape == (4,)
    assert fw.random.Generator(1).choice([5, 6]).shape == ()
    assert fw.random.Generator(1).choice(0, 0).shape == fw.random.Generator(1).choice([], 0).shape == (0,)


def test_choices_that_numpy_refuses_are_refused(session: fw.Session) -> None:
    numpys, rng = np.random.default_rng(1), fw.random.Generator(1)
    refused: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((0,), {}),
        ((-1,), {}),
        (([],), {}),
        ((3, 4), {"replace": False}),
        ((3, 2), {"p": [0.5, 0.5]}),
        ((2, 2), {"p": [[0.5, 0.5]]}),
        ((2, 2), {"p": [0.5, 0.6]}),
        ((2, 2), {"p": [1.5, -0.5]}),
        ((2, 2), {"p": [np.nan, 0.5]}),
        ((3, 3), {"replace": False, "p": [0.5, 0.5, 0.0]}),
        ((2, -1), {}),
        (([1, 2],), {"axis": 1}),
    ]
    for choices, named in refused:
        with pytest.raises((ValueError, IndexError)) as expected:
            numpys.choice(*choices, **named)
        with pytest.raises(expected.type):
            rng.choice(*choices, **named)
    with pytest.raises(fw.ShapeError, match=r"probabilities of shape \(2,\) for 3 places"):
        rng.choice(3, p=session.array([0.5, 0.5]))


@pytest.mark.parametrize("texts", [["head", "tail"], np.array(["head", "tail"])], ids=["list", "array"])
def test_texts_are_drawn_and_stay_on_this_machine(texts: Any) -> None:
    drawn: Any = fw.random.Generator(1).choice(texts, 100, p=[0.9, 0.1])
    places = fw.random.Generator(1).choice(2, 100, p=[0.9, 0.1]).numpy()
    assert drawn.tolist() == np.array(["head", "tail"])[places].tolist()
    assert str(fw.random.choice(texts)) in {"head", "tail"}
