"""Formats numbers and tables for people. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def size(size_bytes: float) -> str:
    """Returns a number of bytes in the largest unit in which it is at least 1."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes >= scale:
            return f"{size_bytes / scale:.1f} {unit}"
    return f"{size_bytes:.0f} bytes"


def duration(seconds: float) -> str:
    """Returns a time in the largest unit, from days to microseconds, in which it is at least 1."""
    for unit, scale in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        if seconds >= scale:
            return f"{seconds / scale:.1f} {unit}"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"


def rate(per_second: float) -> str:
    """Returns a rate with a suffix for thousands, millions or billions."""
    for suffix, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if per_second >= scale:
            return f"{per_second / scale:.1f} {suffix}/s"
    return f"{per_second:.0f}/s"


def harmless(text: object) -> str:
    """Returns text that came from a client, with control characters escaped, because a terminal would obey them."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in str(text))


def table(heading: Sequence[str], rows: Iterable[Sequence[object]], left: int = 1) -> str:
    """Returns aligned columns, each as wide as its widest cell. The first `left` columns are aligned to the left."""
    lines = [tuple(heading), *(tuple(harmless(cell) for cell in row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heading))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def properties(values: Iterable[tuple[str, object]]) -> str:
    """Returns a line for each name and value, with the values aligned."""
    listed = [(name, harmless(value)) for name, value in values]
    width = max(len(name) for name, _ in listed)
    return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in listed)
