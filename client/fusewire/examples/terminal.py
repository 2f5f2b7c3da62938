"""Shows tables and progress bars with the package rich in a terminal. Elsewhere prints plain tables and no progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from fusewire.examples.report import Table, plain

try:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Table as RichTable
except ImportError:
    HAS_RICH = False
else:
    HAS_RICH = True

Advance = Callable[[int], None]


def show(table: Table) -> None:
    """Prints a table on standard output."""
    if HAS_RICH and sys.stdout.isatty():
        Console().print(_rich(table))
    else:
        print(plain(table), end="\n\n")


@contextmanager
def progress(labels: Sequence[str], total: int) -> Iterator[Advance]:
    """Shows a progress bar of length `total` for each label, on standard error.

    Yields a function that takes the index of a label and advances the bar of this label by one.
    """
    if not (HAS_RICH and sys.stderr.isatty()):
        yield _ignore
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks = [bars.add_task(label, total=total) for label in labels]
        yield lambda index: bars.advance(tasks[index])


def _rich(table: Table) -> RichTable:
    rich = RichTable(title=table.title, title_justify="left")
    for index, column in enumerate(table.columns):
        rich.add_column(column, justify="left" if index == 0 else "right")
    for row in table.rows:
        rich.add_row(*row)
    return rich


def _ignore(index: int) -> None:
    """Does nothing, because there are no progress bars."""
