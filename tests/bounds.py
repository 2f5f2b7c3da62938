"""Lets a test bound a figure, and prints all that tests have bounded in one table at the end of the run.

A test hands the figures over as properties of its report, which pytest-xdist carries to the process that prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import pytest

_PROPERTY = "bounded"
_HEADS = ("fault", "what is bounded", "figure", "limit")
_MIB = 1 << 20


class Bounded(Protocol):
    """Notes a figure. Fails if it is beyond its limit."""

    def __call__(self, what: str, figure: float, limit: float, unit: str = "") -> None: ...


@pytest.fixture
def bounded(request: pytest.FixtureRequest) -> Bounded:
    """`bounded("time until it is noticed", figure_s, limit_s, "s")`; "B" stands for bytes, which are told in MiB."""

    def note(what: str, figure: float, limit: float, unit: str = "") -> None:
        request.node.user_properties.append((_PROPERTY, [what, float(figure), float(limit), unit]))
        assert figure <= limit, f"{what}: {_with_unit(figure, unit)}, and the limit is {_with_unit(limit, unit)}"

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    rows = [*_rows(terminalreporter.stats)]
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(_HEADS, *rows, strict=True)]
    terminalreporter.section("what was bounded")
    for fault, what, figure, limit in (_HEADS, *rows):
        line = f"{fault:<{widths[0]}}  {what:<{widths[1]}}  {figure:>{widths[2]}}  {limit:>{widths[3]}}"
        terminalreporter.write_line(line)


def _rows(stats: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, str, str, str]]:
    for report in (report for outcome in ("passed", "failed") for report in stats.get(outcome, ())):
        if report.when == "call":
            for name, bound in report.user_properties:
                if name == _PROPERTY:
                    what, figure, limit, unit = bound
                    yield _fault(report.nodeid), what, _with_unit(figure, unit), _with_unit(limit, unit)


def _fault(nodeid: str) -> str:
    """Returns the name of a test as words."""
    return nodeid.rpartition("::")[2].removeprefix("test_").replace("_", " ")


def _with_unit(figure: float, unit: str) -> str:
    if unit == "B":
        return f"{figure / _MIB:.1f} MiB"
    number = f"{figure:.0f}" if float(figure).is_integer() else f"{figure:.3g}"
    return f"{number} {unit}".rstrip()
