"""Keys: what determines one, and that keys which differ in anything are different."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


@pytest.mark.parametrize("seed", [0, 7, 2**100, [1, 2, 3]])
def test_a_seed_gives_one_key_in_every_session(session: fw.Session, seed: Any) -> None:
    key = fw.random.key(seed)
    assert (key.dtype, key.shape) == (fw.uint64, ())
    expected = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    assert key.item() == expected.item()


def test_without_a_seed_keys_differ() -> None:
    assert fw.random.key().item() != fw.random.key().item()


def test_keys_of_integers_and_of_keys_are_all_different() -> None:
    roots = [fw.random.key(seed) for seed in range(8)]
    folded = [fw.random.fold_in(key, data) for key in roots for data in (-1, 0, 1, 2, 2**63)]
    nested = [fw.random.fold_in(key, 0) for key in folded]
    numbers = fw.stack([*roots, *folded, *nested]).numpy()
    assert len(set(numbers.tolist())) == len(numbers)


def test_an_integer_may_be_of_this_machine_or_of_the_server(session: fw.Session) -> None:
    key = fw.random.key(3)
    expected = fw.random.fold_in(key, 5).item()
    for data in (np.int8(5), np.array(5), session.array(5), session.array(np.uint8(5)), session.array(np.uint64(5))):
        assert fw.random.fold_in(key, data).item() == expected
    assert fw.random.fold_in(key, session.array(-1)).item() == fw.random.fold_in(key, -1).item()


def test_a_split_key_gives_the_keys_of_integers_from_0_on() -> None:
    key = fw.random.key(3)
    assert fw.random.split(key).numpy().tolist() == [fw.random.fold_in(key, i).item() for i in range(2)]
    keys = fw.random.split(key, 5)
    assert keys[4].item() == fw.random.fold_in(key, 4).item()
    assert (
        fw.random.Generator(keys[4]).random().item() == fw.random.Generator(fw.random.fold_in(key, 4)).random().item()
    )


def test_no_key_is_a_number_that_its_key_draws() -> None:
    key = fw.random.key(3)
    drawn = fw.random.Generator(key).bits(100).numpy()
    assert not set(drawn.tolist()) & set(fw.random.split(key, 100).numpy().tolist())


def test_seeds_that_are_no_seeds_raise_numpys_errors() -> None:
    with pytest.raises(ValueError, match="non-negative"):
        fw.random.key(-1)
    with pytest.raises(TypeError):
        fw.random.key(1.5)
    with pytest.raises(TypeError):
        fw.random.Generator("seed")


def test_what_is_no_key_is_refused(session: fw.Session) -> None:
    key = fw.random.key(0)
    no_keys: list[Any] = [0, np.uint64(0), session.array(0), session.array(0.0)]
    for wrong in no_keys:
        with pytest.raises(fw.DtypeError, match=r"write fw\.random\.key"):
            fw.random.fold_in(wrong, 0)
    with pytest.raises(fw.ShapeError, match=r"keys\[i\]"):
        fw.random.Generator(fw.random.split(key))
    for data in (1.0, [1], True, session.array(1.0), session.array([1])):
        with pytest.raises(fw.DtypeError, match="an integer of rank 0"):
            fw.random.fold_in(key, data)
    with pytest.raises(fw.ShapeError):
        fw.random.split(key, -1)
