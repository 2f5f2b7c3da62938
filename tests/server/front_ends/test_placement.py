"""Which engine gets a new session, by what engines tell and by chance that is drawn here."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from fusewire_server.front_ends.placement import EngineAt, Load, choose, short_digest, with_one_more

MS = 1_000_000
IDLE = Load()


def engine(device: int, load: Load = IDLE) -> EngineAt:
    return EngineAt(device, f"fusewire-{device}", b"", load)


def chosen(*engines: EngineAt, programs: tuple[str, ...] = (), draws: int = 200) -> Counter[int]:
    """How often each device is chosen."""
    random = Random(7)
    return Counter([choose(engines, programs, random).device for _ in range(draws)])


def test_of_one_engine_that_one_is_chosen() -> None:
    assert chosen(engine(3, Load(asked_ns=10**12))) == {3: 200}


@pytest.mark.parametrize(
    ("light", "heavy"),
    [
        (Load(), Load(asked_ns=30 * MS)),
        (Load(asked_ns=500 * MS, live_bytes=9), Load(asked_ns=900 * MS)),
        (Load(sessions=1), Load(sessions=4)),
    ],
)
def test_the_engine_that_was_asked_for_less_is_chosen(light: Load, heavy: Load) -> None:
    assert chosen(engine(0, heavy), engine(1, light)) == {1: 200}


def test_of_engines_that_were_asked_for_as_much_the_one_with_fewer_bytes_is_mostly_chosen() -> None:
    found = chosen(engine(0, Load(live_bytes=1 << 30)), engine(1, Load(live_bytes=1 << 20)))
    assert found[1] == 200


def test_small_differences_do_not_decide() -> None:
    found = chosen(engine(0, Load(asked_ns=5 * MS)), engine(1))
    assert min(found.values()) > 20


def test_of_many_engines_others_than_the_least_loaded_one_are_chosen_too() -> None:
    """So that front ends that know the same figures do not all choose the same engine."""
    found = chosen(*[engine(device, Load(asked_ns=50 * device * MS)) for device in range(8)])
    assert found[0] > found[7] == 0
    assert found[1] > 20


def test_an_engine_that_runs_the_clients_programs_has_a_bonus() -> None:
    programs = (short_digest(bytes(range(32))), short_digest(bytes(32)))
    sharing = engine(0, Load(asked_ns=50 * MS, programs=programs[:1]))
    assert chosen(sharing, engine(1), programs=programs) == {0: 200}
    assert chosen(sharing, engine(1), programs=("other",)) == {1: 200}
    assert chosen(sharing, *[engine(device) for device in range(1, 16)], programs=programs) == {0: 200}


def test_the_bonus_is_bounded() -> None:
    sharing = engine(0, Load(asked_ns=500 * MS, programs=("aa",)))
    assert chosen(sharing, engine(1), programs=("aa",)) == {1: 200}


def test_sessions_spread_before_engines_tell_of_them() -> None:
    engines, random = [engine(device) for device in range(2)], Random(5)
    for _ in range(40):
        one = choose(engines, (), random)
        engines[engines.index(one)] = with_one_more(one)
    assert all(15 <= each.load.sessions <= 25 for each in engines)
