"""`RandomState`: a generator by the names of NumPy's older interface."""

from __future__ import annotations

from typing import Any

from fusewire._api.array import Array
from fusewire._api.random.draws import Size
from fusewire._api.random.generator import Generator
from fusewire_protos.ops import dtypes


class RandomState(Generator):
    """Draws what a `Generator` of the same seed draws, also by NumPy's older names."""

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
