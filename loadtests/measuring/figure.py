"""A figure: one measured number, its limit, and a peer's number. A peer is other software that does the same work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


class Bound(Enum):
    """The side of its limit on which a number must lie."""

    AT_MOST = "≤"
    AT_LEAST = "≥"


class Subject(Enum):
    """Which number of a figure the limit applies to: the figure's value, or its ratio to the peer's value."""

    VALUE = "value"
    RATIO = "ratio"


class Verdict(Enum):
    """Whether a figure keeps its limit."""

    OK = "ok"
    MISSED = "missed"
    INFORMATION = "–"


@dataclass(frozen=True)
class Limit:
    """The limit of a figure, on its value or on its ratio to the peer."""

    subject: Subject
    bound: Bound
    number: float

    def is_kept_by(self, number: float) -> bool:
        return number <= self.number if self.bound is Bound.AT_MOST else number >= self.number


@dataclass(frozen=True)
class Peer:
    """The peer's result, in the unit of the figure."""

    name: str
    value: float
    ratio: float  # Fusewire's number ÷ the peer's, or the inverse: the ratio that the figure's limit is stated for


@dataclass(frozen=True)
class Spread:
    """The 10th and the 90th percentile of the measurements."""

    low: float
    high: float


@dataclass(frozen=True)
class Figure:
    """One line of the table. `raw` holds all measurements by name."""

    name: str
    what: str
    value: float
    unit: str
    limit: Limit | None = None
    peer: Peer | None = None
    spread: Spread | None = None
    notes: tuple[str, ...] = ()
    raw: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit.subject is Subject.RATIO and self.peer is None:
            raise ValueError(f"the limit of {self.name} is a ratio to a peer, and the figure has no peer")

    @property
    def verdict(self) -> Verdict:
        if self.limit is None:
            return Verdict.INFORMATION
        number = self.value if self.limit.subject is Subject.VALUE or self.peer is None else self.peer.ratio
        return Verdict.OK if self.limit.is_kept_by(number) else Verdict.MISSED


def at_most(number: float, subject: Subject = Subject.VALUE) -> Limit:
    return Limit(subject, Bound.AT_MOST, number)


def at_least(number: float, subject: Subject = Subject.VALUE) -> Limit:
    return Limit(subject, Bound.AT_LEAST, number)
