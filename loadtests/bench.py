"""Measures every figure, prints one table and writes the raw numbers: `python -m loadtests bench`.

The exit status is 0 if all figures could be measured, even if some miss their limits. It is 1 if a figure could not be
measured or a result was wrong. With `--strict` it is also 1 if a figure misses its limit. It is 2 for a wrong argument.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from loadtests import machine
from loadtests.measuring.figure import Figure, Verdict
from loadtests.microbenchmarks.catalogue import MICROBENCHMARKS, choose
from loadtests.microbenchmarks.limits import held_to_limit
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.microbenchmarks.process import measure_in_process
from loadtests.reports import figure_table

_RESULTS = Path(__file__).parent / "results"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("--backend", choices=sorted(MICROBENCHMARKS), default="cpu", help="backend of the servers")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="figures to measure; all by default")
    parser.add_argument("--json", type=Path, metavar="PATH", help="file for the raw numbers")
    parser.add_argument("--strict", action="store_true", help="fail if a figure misses its limit")
    parser.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    try:
        microbenchmarks = choose(parsed.backend, frozenset(parsed.only))
    except ValueError as reason:
        print(reason, file=sys.stderr)
        return 2
    described = machine.describe()
    figures, failures = _measure(parsed.backend, microbenchmarks)
    print(figure_table.table(figures))
    path = parsed.json or _RESULTS / f"bench-{parsed.backend}.json"
    path.parent.mkdir(exist_ok=True)
    told = figure_table.document(parsed.backend, described, figures, failures)
    path.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for name, words in failures.items():
        print(f"{name} failed: {words}", file=sys.stderr)
    has_missed = any(figure.verdict is Verdict.MISSED for figure in figures)
    return 1 if failures or (parsed.strict and has_missed) else 0


def _measure(backend: str, microbenchmarks: Sequence[Microbenchmark]) -> tuple[list[Figure], dict[str, str]]:
    """Returns the figures, and the errors of the microbenchmarks that failed: names of the figures -> error."""
    figures: list[Figure] = []
    failures: dict[str, str] = {}
    for microbenchmark in microbenchmarks:
        names = ", ".join(microbenchmark.names)
        began_s = monotonic()
        try:
            figures += (held_to_limit(figure, backend) for figure in measure_in_process(backend, microbenchmark.names))
        except Exception as reason:  # noqa: BLE001 - the other figures are measured all the same
            failures[names] = f"{type(reason).__name__}: {reason}"
        print(f"{names}: {monotonic() - began_s:.0f} s", file=sys.stderr)
    return figures, failures
