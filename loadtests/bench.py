"""Measures every figure, prints one table and writes the raw numbers: `python -m loadtests bench`.

Each figure is told, and written to the file, as soon as it is measured: a bench that is cut off leaves what it has.
Without `--json` the file is that of the full results in `results`, which a bench of some figures leaves as it is.

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
from loadtests.reports.output_file import output_file

_RESULTS = Path(__file__).parent / "results"
_PRINTED = object()  # the value of --json without a path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("--backend", choices=sorted(MICROBENCHMARKS), default="cpu", help="backend of the servers")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="figures to measure; all by default")
    parser.add_argument(
        "--json",
        type=output_file,
        nargs="?",
        const=_PRINTED,
        metavar="PATH",
        help="file for the raw numbers; without PATH they are printed in place of the table",
    )
    parser.add_argument("--strict", action="store_true", help="fail if a figure misses its limit")
    parser.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    try:
        microbenchmarks = choose(parsed.backend, frozenset(parsed.only))
    except ValueError as reason:
        print(reason, file=sys.stderr)
        return 2
    is_printed = parsed.json is _PRINTED
    path = None if is_printed else parsed.json
    if parsed.json is None and not parsed.only:
        path = _RESULTS / f"bench-{parsed.backend}.json"
    results = _Results(parsed.backend, path)
    for microbenchmark in microbenchmarks:
        _measure(parsed.backend, microbenchmark, results)
    print(results.text() if is_printed else figure_table.table(results.figures))
    for name, words in results.failures.items():
        print(f"{name} failed: {words}", file=sys.stderr)
    has_missed = any(figure.verdict is Verdict.MISSED for figure in results.figures)
    return 1 if results.failures or (parsed.strict and has_missed) else 0


class _Results:
    """The figures measured so far, and the errors of those that failed: names -> error. Both are kept in a file.

    There is no file if `path` is None.
    """

    def __init__(self, backend: str, path: Path | None) -> None:
        self.figures: list[Figure] = []
        self.failures: dict[str, str] = {}
        self._backend = backend
        self._machine = machine.describe()
        self._path = path
        self._write()

    def add(self, figure: Figure) -> None:
        self.figures.append(figure)
        print(figure_table.line(figure), file=sys.stderr)
        self._write()

    def fail(self, names: Sequence[str], reason: Exception) -> None:
        """Notes the error of those of the named figures that were not measured."""
        measured = {figure.name for figure in self.figures}
        missing = ", ".join(name for name in names if name not in measured)
        self.failures[missing] = f"{type(reason).__name__}: {reason}"
        self._write()

    def text(self) -> str:
        """Returns the raw numbers as JSON."""
        document = figure_table.document(self._backend, self._machine, self.figures, self.failures)
        return json.dumps(document, indent=1, ensure_ascii=False)

    def _write(self) -> None:
        if self._path is not None:
            self._path.write_text(self.text() + "\n", encoding="utf-8")


def _measure(backend: str, microbenchmark: Microbenchmark, results: _Results) -> None:
    began_s = monotonic()
    try:
        for figure in measure_in_process(backend, microbenchmark.names):
            results.add(held_to_limit(figure, backend))
    except Exception as reason:  # noqa: BLE001 - the other figures are measured all the same
        results.fail(microbenchmark.names, reason)
    print(f"{', '.join(microbenchmark.names)}: {monotonic() - began_s:.0f} s", file=sys.stderr)
