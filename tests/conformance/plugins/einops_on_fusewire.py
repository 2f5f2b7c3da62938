"""Lets the tests of einops know Fusewire as a backend. They take a fixed list, so it stands in the place of CuPy's."""

from __future__ import annotations

from typing import Any

from einops import _backends

import fusewire


class FusewireBackend(_backends.NumpyBackend):  # type: ignore[misc]  # a class without types
    """Does with fusewire what the backend of NumPy does with NumPy."""

    framework_name = "fusewire"

    def __init__(self) -> None:
        super().__init__()
        self.np = fusewire

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, fusewire.Array)

    def from_numpy(self, x: Any) -> Any:
        return fusewire.asarray(x)

    def to_numpy(self, x: Any) -> Any:
        return x.numpy()


_backends.CupyBackend = FusewireBackend
