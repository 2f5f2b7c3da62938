"""Imports the modules that are compiled, or says how to compile them."""

from __future__ import annotations

from importlib import import_module

from fusewire._errors import ConfigurationError

MODULES = ("fusewire._recording.integer_scans", "fusewire._recording.recorded_ops")


def import_compiled(*names: str) -> None:
    """Imports modules. Raises ConfigurationError if one of them was not compiled for this interpreter."""
    for name in names:
        try:
            import_module(name)
        except ModuleNotFoundError as reason:
            if reason.name != name:
                raise
            raise ConfigurationError(
                f"{name} was not compiled for this interpreter: install fusewire by pip, or run "
                "`make recorder PYTHON=<this interpreter>` in the folder of the sources"
            ) from None
