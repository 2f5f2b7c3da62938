"""The operators of arrays, each beside the function that it calls."""

from __future__ import annotations

import fusewire as fw
from tests.api_reference.entries import Links

OPERATORS = {
    "x + y": "add",
    "x - y": "subtract",
    "x * y": "multiply",
    "x / y": "divide",
    "x // y": "floor_divide",
    "x % y": "remainder",
    "divmod(x, y)": "divmod",
    "x ** y": "power",
    "x @ y": "matmul",
    "x == y": "equal",
    "x != y": "not_equal",
    "x < y": "less",
    "x <= y": "less_equal",
    "x > y": "greater",
    "x >= y": "greater_equal",
    "x & y": "bitwise_and",
    "x | y": "bitwise_or",
    "x ^ y": "bitwise_xor",
    "x << y": "bitwise_left_shift",
    "x >> y": "bitwise_right_shift",
    "-x": "negative",
    "+x": "positive",
    "~x": "bitwise_invert",
    "abs(x)": "abs",
}


def operators_table(links: Links) -> str:
    """Returns the table in Markdown."""
    places = {text: links[id(getattr(fw, name))] for text, name in OPERATORS.items()}
    rows = [f"| `{_escaped(text)}` | [`{name}`]({place}) |" for text, (name, place) in places.items()]
    return "\n".join(["## Operators", "", "| operator | function |", "|---|---|", *rows])


def _escaped(text: str) -> str:
    """A bar ends a cell, also within code."""
    return text.replace("|", r"\|")
