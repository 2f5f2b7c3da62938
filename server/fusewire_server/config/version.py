"""Reads the version of the installed package."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """The version that was installed; 0 where it runs from the tree."""
    try:
        return version("fusewire")
    except PackageNotFoundError:
        return "0"
