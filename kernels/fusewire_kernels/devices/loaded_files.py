"""Compiled files loaded into a device, each once, for as long as a plan holds it.

A plan may die in any thread and at any moment, also inside a garbage collection: its end is only noted there. The
device thread learns of it when it next asks for what nobody holds.
"""

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Callable, Collection
from typing import Generic, TypeVar

T = TypeVar("T")


class LoadedFiles(Generic[T]):
    """Files by path, each as whatever `load` makes of it. Used by the device thread alone."""

    def __init__(self, load: Callable[[str], T]) -> None:
        self._load = load
        self._files: dict[str, T] = {}
        self._holders: Counter[str] = Counter()
        self._ended: deque[frozenset[str]] = deque()  # what plans that have ended held; any thread appends

    def __getitem__(self, path: str) -> T:
        """A file, loaded if it is not yet. Until someone holds it, it is among the unheld."""
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
        """The files that nobody holds any more, which the caller unloads."""
        while self._ended:
            self._holders.subtract(self._ended.popleft())
        unheld = [path for path in self._files if self._holders[path] <= 0]
        for path in unheld:
            del self._holders[path]
        return [self._files.pop(path) for path in unheld]
