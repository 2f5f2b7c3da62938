"""The ids of sessions: random, and of a server with several devices they end with the device's number."""

from __future__ import annotations

from fusewire_server.config.config import Limits
from fusewire_server.engine.registry import Registry


def ids(device_number: int | None) -> set[bytes]:
    registry = Registry(Limits(), lambda *_: None, device_number)
    return {registry.open("lab", "client", "peer").session_id for _ in range(32)}


def test_an_id_ends_with_the_number_of_the_device() -> None:
    for number in (0, 7, 63):
        found = ids(number)
        assert len(found) == 32
        assert {(len(each), each[-1]) for each in found} == {(16, number)}


def test_without_a_number_all_of_it_is_random() -> None:
    found = ids(None)
    assert {len(each) for each in found} == {16}
    assert len({each[-1] for each in found}) > 8
