"""The state of the device's random numbers: a seed, and how many numbers were drawn since."""

from __future__ import annotations

from math import prod
from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire._api.random.keys import random_bits
from fusewire_torch.connection import session
from fusewire_torch.storage import note_transfer

_SIGN = 2**63  # a state holds unsigned integers as signed ones, because PyTorch's ops know few unsigned dtypes


class DeviceGenerator(fw.random.Generator):
    """Draws in the device's session, also while a step is recorded, each use of which draws other numbers."""

    def _bits(self, shape: tuple[int, ...], beside: Any = ()) -> Array:
        with self._lock:
            start = self._next_counter
            self._next_counter = (start + prod(shape)) % (2 * _SIGN)
        return random_bits(session(), self._key, shape, start)


class _State:
    """The generator whose key is the seed. Before the first `manual_seed`, the seed is that of the CPU's generator."""

    def __init__(self, seed: int, counter: int = 0) -> None:
        self.seed = seed % (2 * _SIGN)
        self.generator = DeviceGenerator(self.seed)
        self.generator._next_counter = counter


_states: list[_State] = []


def seed(value: int) -> None:
    """Begins anew with a seed."""
    _states[:] = [_State(value)]


def generator(given: torch.Generator | None = None) -> DeviceGenerator:
    """Returns what draws the next numbers; where the caller gives a generator of the CPU, by a seed that this draws."""
    if given is None:
        return _state().generator
    note_transfer("draws by a generator of the CPU")
    return DeviceGenerator(int(torch.randint(_SIGN - 1, (), generator=given, device="cpu")))


def saved() -> torch.Tensor:
    """Returns the state as a tensor of bytes."""
    now = _state()
    return torch.tensor([now.seed - _SIGN, now.generator._next_counter - _SIGN], dtype=torch.int64).view(torch.uint8)


def restore(state: torch.Tensor) -> None:
    """Goes on from a state that `saved` has returned."""
    value, counter = state.view(torch.int64).tolist()
    _states[:] = [_State(value + _SIGN, counter + _SIGN)]


def _state() -> _State:
    if not _states:
        seed(torch.initial_seed())
    return _states[0]
