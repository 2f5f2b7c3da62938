"""Finds the scenarios: every module below this folder that defines a SCENARIO."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module

from loadtests import scenarios
from loadtests.scenarios.scenario import Scenario


def find_scenarios() -> Mapping[str, Scenario]:
    """Returns all scenarios by name, in alphabetical order."""
    below = pkgutil.walk_packages(scenarios.__path__, f"{scenarios.__name__}.")
    modules = [import_module(found.name) for found in below]
    found = [module.SCENARIO for module in modules if hasattr(module, "SCENARIO")]
    return {scenario.name: scenario for scenario in sorted(found, key=lambda scenario: scenario.name)}
