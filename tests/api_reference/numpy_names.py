"""The table of NumPy's names and of the array API standard's: where each is here, or what to write instead."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fusewire._api.missing_names import instead_of

_NAMES: dict[str, Any] = tomllib.loads((Path(__file__).parent / "names.toml").read_text(encoding="utf-8"))
NUMPY: frozenset[str] = frozenset(_NAMES["numpy"]["names"])
NUMPY_VERSION: str = _NAMES["numpy"]["version"]
STANDARD: frozenset[str] = frozenset(_NAMES["array_api"]["names"])
STANDARD_VERSION: str = _NAMES["array_api"]["version"]
# What the namespaces of NumPy's are here.
_HERE = {
    "linalg": "has it and the standard's extension `linalg`; `eig` and `eigvals` are of real matrices",
    "fft": "has it and the standard's extension `fft`",
    "random": "has a generator with some of NumPy's distributions",
}
_HEAD = f"""\
# NumPy's names

The functions, ufuncs, dtypes and constants of NumPy {NUMPY_VERSION}, and what the array API standard {STANDARD_VERSION}
has. A name that is here is a link. For another name the last column says what to write; `x` and `y` are arrays, and
`fw` is `fusewire`. `fusewire.<name>` says the same in the text of its error.

"""


def text(places: Mapping[str, str]) -> str:
    """Returns the page. `places` tells where each name of `fusewire` has its entry."""
    here = len((NUMPY | STANDARD) & {*places})
    counted = f"Of these {len(NUMPY | STANDARD)} names, {here} are here.\n\n"
    head = "| name | in NumPy | in the standard | here, or what to write |\n|---|---|---|---|\n"
    rows = [_row(name, places) for name in sorted(NUMPY | STANDARD, key=lambda name: (name.lower(), name))]
    groups = ["", "## Their namespaces", "", *map(_group, _HERE)]
    return _HEAD + counted + head + "\n".join([*rows, *groups]) + "\n"


def _row(name: str, places: Mapping[str, str]) -> str:
    marks = " | ".join("yes" if name in names else "" for names in (NUMPY, STANDARD))
    return f"| `{name}` | {marks} | {_here_or_instead(name, places)} |"


def _here_or_instead(name: str, places: Mapping[str, str]) -> str:
    if name in places:
        return f"[`{name}`]({places[name]})"
    return _short(instead_of(name))


def _short(hint: str) -> str:
    """A hint without the list of dtypes. Its code, which stands behind certain words or a comma, is marked."""
    phrase = hint.partition("; ")[0]
    words = next((each for each in ("write ", "another name of ") if phrase.startswith(each)), ", ")
    before, between, code = phrase.partition(words)
    return f"{before}{between}`{code}`" if code else phrase


def _group(name: str) -> str:
    return f"- `numpy.{name}`: [`fusewire.{name}`]({name}.md) {_HERE[name]}."
