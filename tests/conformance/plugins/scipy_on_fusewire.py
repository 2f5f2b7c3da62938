"""Lets the tests of SciPy go through Fusewire in the place of array-api-strict, a namespace that they list."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import fusewire


class _InItsPlace(ModuleType):
    """Has the names of Fusewire, and what SciPy asks of array-api-strict itself."""

    __version__ = "2.6.1"

    def __getattr__(self, name: str) -> Any:
        return getattr(fusewire, name)

    def set_array_api_strict_flags(self, **flags: Any) -> None:
        """Leaves all as it is: there are no versions to choose from."""


sys.modules["array_api_strict"] = _InItsPlace("array_api_strict")
