"""The examples of the reference: TOML files of lines to run, by the name that they show, and what the lines give."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

import fusewire as fw

_FOLDER = Path(__file__).parent / "examples"
_DIGITS = 6  # of a float: other libraries for the processor may differ in the last of its 17
_MOST_COLUMNS = 100


def all_examples() -> dict[str, str]:
    """Returns the lines of each example by its name."""
    files = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(_FOLDER.glob("*.toml"))]
    return {name: lines.strip() for file in files for name, lines in file.items()}


def with_result(name: str, lines: str) -> str:
    """Returns the lines, and the value of the last one behind it. Needs a default session.

    The example of an error ends with the line that raises it.
    """
    shown = f"  # → {_result(name, lines)}"
    is_short = len(lines.rpartition("\n")[2]) + len(shown) <= _MOST_COLUMNS
    return lines + shown if is_short else f"{lines}\n{shown.strip()}"


def _result(name: str, lines: str) -> str:
    shows = getattr(fw, name, None)
    if not (isinstance(shows, type) and issubclass(shows, fw.FusewireError)):
        return shown(_run(lines))
    try:
        _run(lines)
    except shows as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError(f"the example of {name} raises nothing")


def _run(lines: str) -> Any:
    """Returns the value of the last line."""
    *statements, last = ast.parse(lines).body
    assert isinstance(last, ast.Expr), "an example ends with an expression"
    names = {"fw": fw, "np": np}
    exec(compile(ast.Module(statements, []), "<example>", "exec"), names)  # noqa: S102  # our own text
    return eval(compile(ast.Expression(last.value), "<example>", "eval"), names)  # noqa: S307


def shown(value: Any) -> str:
    """Returns a value as text: arrays as lists of their elements, floats rounded to a few digits."""
    if isinstance(value, fw.Array | np.ndarray):
        return shown(value.tolist())
    if isinstance(value, float):
        return repr(float(f"{value:.{_DIGITS}g}"))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = zip(value._fields, value, strict=True)
        return f"{type(value).__name__}({', '.join(f'{field}={shown(each)}' for field, each in fields)})"
    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    return repr(value)
