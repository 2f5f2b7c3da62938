"""Chooses what records ops: the compiled extensions where they were built, and modules in Python elsewhere.

The environment variable FUSEWIRE_RECORDER forces one of them: `compiled` or `python`.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from fusewire._errors import ConfigurationError
from fusewire._recording import integer_scans, python_recorder

__all__ = [
    "RECORDER",
    "Recorded",
    "ThreadTape",
    "adopt",
    "adopt_without_handle",
    "binary_operator",
    "count_repeats",
    "inputs_among",
    "light",
    "name_of_call",
    "name_of_key",
    "places_of_signatures",
    "prefix_operator",
    "record",
    "record_call",
    "record_item",
    "record_known",
    "results_among",
    "unary",
]

VARIABLE = "FUSEWIRE_RECORDER"


class Modules(NamedTuple):
    """The modules that record ops."""

    name: str
    recorder: ModuleType
    scans: ModuleType


_PYTHON = Modules("Python", python_recorder, integer_scans)


def chosen(wanted: str) -> Modules:
    """Returns the modules that record ops. `wanted` is "compiled", "python", or "" for compiled if there are any.

    Raises ConfigurationError if `wanted` is something else, or if the compiled modules are wanted and were not built.
    """
    if wanted == "python":
        return _PYTHON
    if wanted not in ("", "compiled"):
        raise ConfigurationError(f"{VARIABLE}={wanted}: known are compiled and python")
    try:
        return Modules("compiled", _compiled("recorder"), _compiled("integer_scans"))
    except ImportError as reason:
        if not wanted:
            return _PYTHON
        raise ConfigurationError(f"{VARIABLE}=compiled: this installation has no compiled recorder: {reason}") from None


def _compiled(name: str) -> ModuleType:
    return import_module(f"fusewire._recording.compiled_{name}")


_modules = chosen(os.environ.get(VARIABLE, ""))
RECORDER = _modules.name

if TYPE_CHECKING:
    from fusewire._recording.integer_scans import (
        count_repeats,
        inputs_among,
        places_of_signatures,
        results_among,
    )
    from fusewire._recording.python_recorder import (
        Recorded,
        ThreadTape,
        adopt,
        adopt_without_handle,
        binary_operator,
        light,
        name_of_call,
        name_of_key,
        prefix_operator,
        record,
        record_call,
        record_item,
        record_known,
        unary,
    )
else:
    count_repeats, results_among = _modules.scans.count_repeats, _modules.scans.results_among
    inputs_among, places_of_signatures = _modules.scans.inputs_among, _modules.scans.places_of_signatures
    Recorded, ThreadTape, light = _modules.recorder.Recorded, _modules.recorder.ThreadTape, _modules.recorder.light
    adopt, adopt_without_handle = _modules.recorder.adopt, _modules.recorder.adopt_without_handle
    binary_operator, prefix_operator = _modules.recorder.binary_operator, _modules.recorder.prefix_operator
    name_of_key, record, unary = _modules.recorder.name_of_key, _modules.recorder.record, _modules.recorder.unary
    record_item, record_known = _modules.recorder.record_item, _modules.recorder.record_known
    name_of_call, record_call = _modules.recorder.name_of_call, _modules.recorder.record_call
