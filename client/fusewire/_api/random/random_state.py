"""`RandomState`: a generator by the names of NumPy's older interface."""

from __future__ import annotations

from typing import Any

from fusewire._api.array import Array
from fusewire._api.random.draws import Size
from fusewire._api.random.generator import Generator
from fusewire._errors import ArgumentError
from fusewire_protos.ops import dtypes

_ALGORITHM = "Philox4x32-10"
_WORDS = range(2**64)  # what keys and counters are


class RandomState(Generator):
    """Draws what a `Generator` of the same seed draws, also by NumPy's older names."""

    def seed(self, seed: Any = None) -> None:
        """Begins anew with a seed, as `RandomState(seed)` does. The numbers are not NumPy's."""
        self._go_on(RandomState(seed).__getstate__())

    def get_state(self, legacy: Any = True) -> tuple[Any, ...]:  # noqa: FBT002  # NumPy's parameter
        """Returns what `set_state` takes to draw the same numbers again: a name, the key and the next counter."""
        return (_ALGORITHM, *self.__getstate__())

    def set_state(self, state: Any) -> None:
        """Goes on from a state that `get_state` has returned. Raises ArgumentError for a state of NumPy's."""
        match state:
            case [str(name), int(key), int(counter)] if name == _ALGORITHM and key in _WORDS and counter in _WORDS:
                self._go_on((key, counter))
            case _:
                raise ArgumentError(
                    "set_state takes what get_state of fusewire has returned: a state of NumPy's determines other "
                    "numbers; seed both by an integer"
                )

    def _go_on(self, state: tuple[Any, ...]) -> None:
        with self._lock:
            self._key, self._next_counter = state

    def rand(self, *shape: int) -> Array:
        """Returns floats of [0, 1) in float64, of the dims that are given one by one."""
        return self.random(shape)

    def randn(self, *shape: int) -> Array:
        """Returns normal numbers of mean 0 and variance 1 in float64, of the dims that are given one by one."""
        return self.standard_normal(shape)

    def randint(self, low: Any, high: Any = None, size: Size = None, dtype: Any = dtypes.int64) -> Array:
        """Returns integers of [low, high), or of [0, low) without `high`. See `Generator.integers`."""
        return self.integers(low, high, size, dtype)

    def random_sample(self, size: Size = None) -> Array:
        """Returns floats of [0, 1) in float64."""
        return self.random(size)
