"""`x.flat`: the elements of an array in row-major order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Flat:
    """Reads and assigns elements of an array by their index in the flat array."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __len__(self) -> int:
        size: int = self._array.size
        return size

    def __getitem__(self, key: Any) -> Any:
        return self._array.flatten()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        flat = self._array.flatten()
        flat[key] = value
        self._array[...] = flat.reshape(self._array.shape)

    def __iter__(self) -> Iterator[Any]:
        """Waits for the elements once, and returns NumPy's scalars."""
        return iter(self._array.flatten().numpy())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:  # noqa: FBT001  # as NumPy calls it
        return self._array.flatten().__array__(dtype, copy)
