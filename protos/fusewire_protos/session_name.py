"""Says which names and labels a session may have, which are safe wherever they are shown, and how its id is shown."""

from __future__ import annotations

import re
from collections.abc import Mapping

MOST_LABELS = 8
_SHOWN_ID_DIGITS = 12
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./:@+-]{0,63}", re.ASCII)
_EXPECTED = "at most 64 letters, digits and _./:@+-, the first one a letter or a digit"


def shown_id(session_id: bytes) -> str:
    """Returns the part of a session's id that people see: enough to tell sessions apart, too little to resume one."""
    return session_id.hex()[:_SHOWN_ID_DIGITS]


def check_name(name: object) -> None:
    """Raises ValueError unless this is a name, or empty."""
    if name != "":
        _check("name", name)


def check_labels(labels: Mapping[str, str]) -> None:
    """Raises ValueError if there are too many labels, or if one of them has a wrong name or value."""
    if len(labels) > MOST_LABELS:
        raise ValueError(f"{len(labels)} labels: expected at most {MOST_LABELS}")
    for name, value in labels.items():
        _check("the name of a label", name)
        _check(f"label {name}", value)


def _check(what: str, text: object) -> None:
    if not (isinstance(text, str) and _WORD.fullmatch(text)):
        raise ValueError(f"{what} = {str(text)[:80]!r}: expected {_EXPECTED}")
