"""Reads the version of the installed package."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """Returns the installed version, or 0 if the package is not installed."""
    try:
        return version("fusewire")
    except PackageNotFoundError:
        return "0"
