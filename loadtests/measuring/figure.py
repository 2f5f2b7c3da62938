"""A figure: one number that Fusewire is held to, with what it was compared to and what it must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


class Bound(Enum):
    """Which side of its limit a number must be on."""

    AT_MOST = "≤"
    AT_LEAST = "≥"


class Subject(Enum):
    """What of a figure is limited: its own value, or its ratio to the peer."""

    VALUE = "value"
    RATIO = "ratio"


class Verdict(Enum):
    """How a figure compares to its limit."""

    OK = "ok"
    MISSED = "missed"
    INFORMATION = "–"


@dataclass(frozen=True)
class Limit:
    """What a figure must be."""

    subject: Subject
    bound: Bound
    number: float

    def is_kept_by(self, number: float) -> bool:
        return number <= self.number if self.bound is Bound.AT_MOST else number >= self.number


@dataclass(frozen=True)
class Peer:
    """What Fusewire is compared to, in the unit of the figure."""

    name: str
    value: float
    ratio: float  # the way round in which the limit is stated


@dataclass(frozen=True)
class Spread:
    """Between which numbers 8 of 10 measurements of the value lie."""

    low: float
    high: float


@dataclass(frozen=True)
class Figure:
    """One line of the table. `raw` holds every measurement, by name, in the unit of the figure."""

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
            raise ValueError(f"{self.name} is limited by its ratio to a peer, and has none")

    @property
    def verdict(self) -> Verdict:
        if self.limit is None:
            return Verdict.INFORMATION
        number = self.value if self.limit.subject is Subject.VALUE or self.peer is None else self.peer.ratio
        return Verdict.OK if self.limit.is_kept_by(number) else Verdict.MISSED


class WrongResult(Exception):
    """A library under test computed something else than it should: its speed is of no interest."""


class NotWarm(Exception):
    """No fused plans came in time: what would be timed is something else."""


def at_most(number: float, subject: Subject = Subject.VALUE) -> Limit:
    return Limit(subject, Bound.AT_MOST, number)


def at_least(number: float, subject: Subject = Subject.VALUE) -> Limit:
    return Limit(subject, Bound.AT_LEAST, number)
