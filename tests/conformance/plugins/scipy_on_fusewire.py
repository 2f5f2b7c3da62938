"""Lets the tests of SciPy go through Fusewire in the place of array-api-strict, a namespace that they list.

Tests that are skipped for what array-api-strict lacks, such as an index of several arrays, are not skipped.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

import fusewire

_STOOD_FOR = "array_api_strict"
_MARKS = ("skip_xp_backends", "xfail_xp_backends")


class _InItsPlace(ModuleType):
    """Has the names of Fusewire, and what SciPy asks of array-api-strict itself."""

    __version__ = "2.6.1"

    def __getattr__(self, name: str) -> Any:
        return getattr(fusewire, name)

    def set_array_api_strict_flags(self, **flags: Any) -> None:
        """Leaves all as it is: there are no versions to choose from."""


sys.modules[_STOOD_FOR] = _InItsPlace(_STOOD_FOR)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Takes away the marks that are about array-api-strict alone."""
    for node in {node for item in items for node in item.listchain()}:
        node.own_markers = [
            each for each in node.own_markers if each.name not in _MARKS or each.args[:1] != (_STOOD_FOR,)
        ]
