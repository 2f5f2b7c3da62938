"""No public name that NumPy has too is left without drawn calls or a reason."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np

import fusewire as fw
from tests.differential.kinds import KINDS

_REASONS = tomllib.loads(Path(__file__).with_name("uncovered.toml").read_text(encoding="utf-8"))["names"]
_UNCOVERED = {name for entry in _REASONS for name in entry["names"]}


def _common() -> set[str]:
    """The functions of the public namespace that NumPy has under the same name."""
    functions = {name for name in fw.__all__ if callable(getattr(fw, name)) and not name.startswith("_")}
    no_functions = {name for name in functions if isinstance(getattr(fw, name), fw.DType)}
    return {name for name in functions - no_functions if callable(getattr(np, name, None))}


def test_every_common_name_is_drawn_or_has_a_reason() -> None:
    assert _common() - {*KINDS} == _UNCOVERED


def test_no_name_is_drawn_that_is_not_common() -> None:
    assert {*KINDS} - _common() == set()
