"""Commands that show an answer of inspection as it is, or order something: queue, slowlog, pool, hold, kill and others.

The end of a field's name says its unit, so that a new figure of the server is shown without a change here.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote

from fusewire._transport.inspection import checked_answer, inspect
from fusewire_cli.text import duration, harmless, properties, size, table

_Answer = TypeVar("_Answer")


def run(parsed: argparse.Namespace) -> int:
    """Asks the route `parsed.path` by `parsed.method`, and prints the answer, or that it is done. Raises FusewireError.

    Braces in the path and in `parsed.done` stand for what was typed, such as the session.
    """
    path = parsed.path.format_map({name: quoted("{}", str(text)) for name, text in vars(parsed).items()})
    answer = inspect(path, parsed.http, parsed.tls_ca, method=parsed.method)
    return tell(parsed, answer, lambda answer: parsed.done.format_map(vars(parsed)) or text_of(answer))


def log_level(parsed: argparse.Namespace) -> int:
    """Prints the level of the log, or sets it first. Raises FusewireError."""
    content = None if parsed.level is None else {"level": parsed.level}
    answer = inspect("/v1/log", parsed.http, parsed.tls_ca, method="GET" if content is None else "PUT", content=content)
    return tell(parsed, answer, text_of)


def quoted(path: str, typed: str) -> str:
    """Returns a path with what was typed in the place of its braces."""
    return path.format(quote(typed, safe="", errors="surrogateescape"))


def tell(parsed: argparse.Namespace, answer: _Answer, text_of: Callable[[_Answer], str]) -> int:
    """Prints an answer as JSON or as text. Returns the exit status. Raises ServerFault if it is not of Fusewire."""
    with checked_answer(parsed.http):
        text = text_of(answer)
    print(json.dumps(answer, indent=2) if parsed.json else text)
    return 0


def text_of(answer: dict[str, Any]) -> str:
    """Returns an answer as text: its figures one on each line, and each list of entries as a table."""
    lists = {name: value for name, value in answer.items() if _is_list_of_entries(value)}
    figures = [(_title(name), shown(name, value)) for name, value in answer.items() if name not in lists]
    parts = [properties(figures)] if figures else []
    for name, entries in lists.items():
        columns = list(entries[0])
        rows = [[shown(column, entry[column]) for column in columns] for entry in entries]
        parts.append(f"{_title(name)}:\n{table([_title(column) for column in columns], rows)}")
    return "\n\n".join(parts)


def shown(name: str, value: Any) -> str:
    """Returns the value of a field for people. The end of its name is its unit."""
    match value:
        case bool():
            return "yes" if value else "no"
        case int() | float() if name.endswith("_bytes"):
            return size(value)
        case int() | float() if name.endswith(("_s", "_ns")):
            return duration(value / 1e9 if name.endswith("_ns") else value)
        case int():
            return f"{value:,}"
        case dict():
            return ", ".join(f"{key} {shown(key, each)}" for key, each in value.items()) or "none"
        case list():
            return ", ".join(shown(name, each) for each in value) or "none"
        case None | "":
            return "none"
    return harmless(value)


def _is_list_of_entries(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _title(name: str) -> str:
    for unit in ("_bytes", "_ns", "_s"):
        name = name.removesuffix(unit)
    return name.removeprefix("is_").replace("_", " ")
