"""Shows the progress of a load test: a bar in a terminal, and nothing elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from loadtests.load.run import Tell


@contextmanager
def progress() -> Iterator[Tell]:
    """Yields a function that takes what is being done, how many parts of it are done, and the number of all parts."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task("", total=None)

        def tell(what: str, done: int, total: int) -> None:
            shown.update(task, description=what, completed=done, total=total or None)

        yield tell
