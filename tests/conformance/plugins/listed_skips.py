"""Skips what skips.toml lists: tests by their names, and tests of any suite that fail by a listed error."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

SUITE_VARIABLE = "FUSEWIRE_CONFORMANCE_SUITE"
_TABLE = tomllib.loads(Path(__file__).parents[1].joinpath("skips.toml").read_text(encoding="utf-8"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what is skipped. A line of the table that matches no test is an error, so that none outlives its reason."""
    for entry in _TABLE.get(os.environ[SUITE_VARIABLE], []):
        for pattern in entry["tests"]:
            matching = [item for item in items if re.search(pattern, item.nodeid)]
            if not matching:
                raise pytest.UsageError(f"skips.toml: no test matches {pattern!r}")
            for item in matching:
                item.add_marker(pytest.mark.skip(reason=entry["reason"]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Counts a test that failed by a listed error as skipped for the reason of that error."""
    report = yield
    reason = _reason_of(call.excinfo) if report.failed and call.excinfo is not None else None
    if reason is not None:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, reason)
    return report


def _reason_of(failure: pytest.ExceptionInfo[BaseException]) -> str | None:
    text = str(failure.value)
    return next((each["reason"] for each in _TABLE["errors"] if any(re.search(p, text) for p in each["texts"])), None)
