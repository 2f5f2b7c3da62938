"""Finds which lines of a kernel's text compute which of the values that the text numbers. Pure.

The map lies beside the text, because kernels of equal text are compiled once, whatever ops they compute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# A value is declared by its name (see `statements`). The partial results of a reduction are its lanes.
_OF_VALUE = re.compile(r"\bv(\d+) = |\bfw_take_\w+\(l(\d+)\b")


def line_map(text: str) -> Iterator[tuple[int, int]]:
    """Yields the number of each line, from 1 on, that computes a value, and the number of the value."""
    for number, line in enumerate(text.splitlines(), 1):
        for found in _OF_VALUE.finditer(line):
            yield number, int(found[1] or found[2])
