"""Chooses what records ops: the extension `compiled_recorder` where it was built, and `python_recorder` elsewhere.

The environment variable FUSEWIRE_RECORDER forces one of them: `compiled` or `python`.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from fusewire._errors import ConfigurationError
from fusewire._recording import python_recorder

__all__ = [
    "RECORDER",
    "Recorded",
    "ThreadTape",
    "adopt",
    "adopt_without_handle",
    "binary_operator",
    "light",
    "prefix_operator",
    "record",
    "unary",
]

VARIABLE = "FUSEWIRE_RECORDER"
_COMPILED_MODULE = "fusewire._recording.compiled_recorder"


def chosen(wanted: str) -> ModuleType:
    """Returns the module that records ops. `wanted` is "compiled", "python", or "" for compiled if there is one.

    Raises ConfigurationError if `wanted` is something else, or if the compiled recorder is wanted and was not built.
    """
    if wanted == "python":
        return python_recorder
    if wanted not in ("", "compiled"):
        raise ConfigurationError(f"{VARIABLE}={wanted}: known are compiled and python")
    try:
        return import_module(_COMPILED_MODULE)
    except ImportError as reason:
        if not wanted:
            return python_recorder
        raise ConfigurationError(
            f"{VARIABLE}=compiled: this installation has no compiled recorder ({reason})"
        ) from None


_module = chosen(os.environ.get(VARIABLE, ""))
RECORDER = "Python" if _module is python_recorder else "compiled"

if TYPE_CHECKING:
    from fusewire._recording.python_recorder import (
        Recorded,
        ThreadTape,
        adopt,
        adopt_without_handle,
        binary_operator,
        light,
        prefix_operator,
        record,
        unary,
    )
else:
    Recorded, ThreadTape = _module.Recorded, _module.ThreadTape
    adopt, adopt_without_handle, record = _module.adopt, _module.adopt_without_handle, _module.record
    binary_operator, prefix_operator, unary = _module.binary_operator, _module.prefix_operator, _module.unary
    light = _module.light
