"""Collects indented lines of generated text. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Lines:
    """Generated text under construction."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def add(self, *lines: str) -> None:
        self._lines.extend("    " * self._depth + line for line in lines)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Adds `head {` … `}` around the lines that the body adds."""
        self.add(head + " {" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        self.add("}")

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"
