"""Loads each compiled file into a device once, and keeps the file loaded as long as a plan holds it.

Python may delete a plan in any thread and at any moment, even during a garbage collection. That thread only records
that the plan has ended. The device thread reads the record when it next asks for files that no plan holds.
"""

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Callable, Collection
from typing import Generic, TypeVar

T = TypeVar("T")


class LoadedFiles(Generic[T]):
    """Maps the path of each loaded file to the object that `load` returned for the path.

    Only the device thread may call the methods.
    """

    def __init__(self, load: Callable[[str], T]) -> None:
        self._load = load
        self._files: dict[str, T] = {}
        self._holders: Counter[str] = Counter()
        self._ended: deque[frozenset[str]] = deque()  # for each plan that has ended, its files; any thread appends

    def __getitem__(self, path: str) -> T:
        """Returns a file. Loads the file if needed. A new file counts as unheld until `hold` is called for the file."""
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = self._load(path)
        return file

    def hold(self, holder: object, paths: Collection[str]) -> None:
        """Keeps loaded files for as long as `holder` lives."""
        held = frozenset(paths)
        self._holders.update(held)
        weakref.finalize(holder, self._ended.append, held).atexit = False

    def take_unheld(self) -> list[T]:
        """Removes and returns the files that no plan holds. The caller unloads them."""
        while self._ended:
            self._holders.subtract(self._ended.popleft())
        unheld = [path for path in self._files if self._holders[path] <= 0]
        for path in unheld:
            del self._holders[path]
        return [self._files.pop(path) for path in unheld]
