"""Formats the figures of the microbenchmarks as a table, and as plain data for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from loadtests.measuring.figure import Figure, Subject

_HEADINGS = ("figure", "value", "8 of 10 within", "peer", "ratio", "limit", "")
_TEXT_COLUMNS = {0, 3, 6}


def table(figures: Sequence[Figure]) -> str:
    """Returns a table as text, with one line for each figure and the figure's notes below this line."""
    rows = [_cells(figure) for figure in figures]
    widths = [max(len(row[column]) for row in (_HEADINGS, *rows)) for column in range(len(_HEADINGS))]
    lines = [_line(_HEADINGS, widths), "  ".join("─" * width for width in widths)]
    for figure, row in zip(figures, rows, strict=True):
        lines.append(_line(row, widths))
        lines += [f"    {note}" for note in figure.notes]
    return "\n".join(lines)


def line(figure: Figure) -> str:
    """Returns the figure's line alone, without notes."""
    return "  ".join(cell for cell in _cells(figure) if cell)


def document(
    backend: str, machine: Mapping[str, object], figures: Sequence[Figure], failures: Mapping[str, str]
) -> dict[str, Any]:
    """Returns all measurements as plain data for JSON. `failures` maps each figure that failed to its error."""
    return {
        "backend": backend,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": dict(machine),
        "figures": [_plain(figure) for figure in figures],
        "failures": dict(failures),
    }


def _plain(figure: Figure) -> dict[str, Any]:
    fields = asdict(figure)
    if figure.limit is not None:
        fields["limit"] = {
            "subject": figure.limit.subject.value,
            "bound": figure.limit.bound.value,
            "number": figure.limit.number,
        }
    fields["verdict"] = figure.verdict.value
    fields["raw"] = {name: [round(number, 6) for number in numbers] for name, numbers in figure.raw.items()}
    return fields


def _cells(figure: Figure) -> tuple[str, ...]:
    spread, peer = figure.spread, figure.peer
    return (
        f"{figure.what} [{figure.name}]",
        f"{_number(figure.value)} {figure.unit}",
        f"{_number(spread.low)} … {_number(spread.high)}" if spread else "",
        f"{peer.name}: {_number(peer.value)} {figure.unit}" if peer else "",
        f"{peer.ratio:.2f}" if peer else "",
        _limit(figure),
        figure.verdict.value,
    )


def _limit(figure: Figure) -> str:
    if figure.limit is None:
        return ""
    unit = figure.unit if figure.limit.subject is Subject.VALUE else "×"
    return f"{figure.limit.bound.value} {figure.limit.number:g} {unit}"


def _number(number: float) -> str:
    """Formats a number without an exponent: with two decimals below 10, one below 100, otherwise none."""
    if abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if abs(number) >= 10 else f"{number:.2f}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    aligned = [
        cell.ljust(width) if column in _TEXT_COLUMNS else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(aligned).rstrip()
