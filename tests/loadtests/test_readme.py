"""The page about load tests names everything that they tell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loadtests.microbenchmarks.catalogue import MICROBENCHMARKS
from loadtests.scenarios.catalogue import find_scenarios
from tests.loadtests.reports.documents import document

_PAGE = (Path(__file__).parents[2] / "loadtests" / "README.md").read_text(encoding="utf-8")
_NAMED = set(re.findall(r"`([^`\s]+)`", _PAGE))


def test_every_field_of_the_result_is_explained() -> None:
    assert document().keys() - _NAMED == set()


@pytest.mark.parametrize("backend", sorted(MICROBENCHMARKS))
def test_every_figure_is_explained(backend: str) -> None:
    figures = {name for microbenchmark in MICROBENCHMARKS[backend] for name in microbenchmark.names}
    beginnings = {name.removesuffix("…") for name in _NAMED if name.endswith("…")}
    missing = {name for name in figures - _NAMED if not any(name.startswith(begin) for begin in beginnings)}
    assert missing == set()


def test_every_scenario_with_a_disturber_is_named() -> None:
    assert {name for name, scenario in find_scenarios().items() if scenario.disturber} <= _NAMED
