"""Keeps compiled files loaded in a device, each once, for as long as a plan holds it.

A plan may die in any thread and at any moment, even during a garbage collection. Its end is only recorded there. The
device thread sees it when it next asks for files that no plan holds.
"""

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Callable, Collection
from typing import Generic, TypeVar

T = TypeVar("T")


class LoadedFiles(Generic[T]):
    """Loaded files by path, each as the object that `load` returns. Used by the device thread only."""

    def __init__(self, load: Callable[[str], T]) -> None:
        self._load = load
        self._files: dict[str, T] = {}
        self._holders: Counter[str] = Counter()
        self._ended: deque[frozenset[str]] = deque()  # the files of plans that have ended; any thread appends

    def __getitem__(self, path: str) -> T:
        """Returns a file, and loads it if needed. It is unheld until a plan holds it."""
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
