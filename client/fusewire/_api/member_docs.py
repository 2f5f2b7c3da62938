"""Gives a member of arrays that does what the function of its name does the docstring of this function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fusewire._api.array import Array


def document_members(functions: Mapping[str, Any]) -> None:
    """Gives each member without a docstring that of the function of its name, for `help` and notebooks."""
    for name, member in vars(Array).items():
        if name in functions and member.__doc__ is None:
            member.__doc__ = functions[name].__doc__
