"""With --fail-skipped a test that is skipped fails, so that nothing passes by being skipped."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

_OPTION = "--fail-skipped"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(_OPTION, action="store_true", help="a test that would be skipped fails")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and item.config.getoption(_OPTION, default=False):
        report.outcome = "failed"
        report.longrepr = f"skipped: {report.longrepr}"
    return report
