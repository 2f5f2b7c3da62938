"""Names programs by their ops, and lines of code by their file. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from fusewire._profile.events import NO_LINE, Line

_MOST_NAMES = 3  # in the label of a program


def label_of(names: Sequence[str]) -> str:
    """Returns the most frequent names that are not empty, each with its number."""
    most = Counter([name for name in names if name]).most_common()
    shown = [name if count == 1 else f"{name} ×{count}" for name, count in most[:_MOST_NAMES]]
    return ", ".join(shown) + (", …" if len(most) > _MOST_NAMES else "")


def lines_label(lines: Iterable[Line]) -> str:
    """Returns the file of most lines with the first and the last of them, such as "train.py:40-45"."""
    known = [each for each in lines if each != NO_LINE]
    if not known:
        return ""
    (file, _), *_ = Counter(each.file for each in known).most_common(1)
    numbers = [each.line for each in known if each.file == file]
    first, last = min(numbers), max(numbers)
    return f"{_short(file)}:{first}" if first == last else f"{_short(file)}:{first}-{last}"


def line_text(line: Line) -> str:
    return "" if line == NO_LINE else f"{_short(line.file)}:{line.line}"


def _short(file: str) -> str:
    return file.rpartition("/")[2].rpartition("\\")[2] or file
