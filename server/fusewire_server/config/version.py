"""Reads the version of the installed package."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache  # the version is told to each session, and reading it opens a file
def installed_version() -> str:
    """Returns the installed version, or 0 if the package is not installed."""
    try:
        return version("fusewire")
    except PackageNotFoundError:
        return "0"
