"""What the doctor says about one thing that it has looked at."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class State(Enum):
    """Whether the thing is in order. What could not be found out is no fault."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Finding(NamedTuple):
    """The thing, its state, what was found, and what the user can do about it."""

    name: str
    state: State
    text: str
    remedy: str = ""
