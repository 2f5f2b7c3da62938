"""Holds the steps that sessions have done, as arrays, and summarises the steps in windows of time. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


class Step(NamedTuple):
    """One step of a session. `Samples` describes the times."""

    session: int
    intended_ns: int
    due_ns: int
    began_ns: int
    recorded_ns: int
    ended_ns: int


class Samples(NamedTuple):
    """Steps in any order. Each array has one element for each step. Times are those of the monotonic clock."""

    session: Integers
    intended_ns: Integers  # the time when the step began; in an open loop, when it should have begun
    due_ns: Integers  # the time when it could have begun, had the load test's own code never been late
    began_ns: Integers
    recorded_ns: Integers  # the time when all ops of the step were recorded
    ended_ns: Integers  # the time when the value was read

    @property
    def latency_ns(self) -> Integers:
        return self.ended_ns - self.intended_ns

    @property
    def lag_ns(self) -> Integers:
        """How late each step began by the load test's own fault; the steps that it delayed by that lag as well."""
        return self.began_ns - self.due_ns

    def __len__(self) -> int:
        return len(self.session)

    def where(self, chosen: npt.NDArray[np.bool_]) -> Samples:
        return Samples(*(column[chosen] for column in self.columns()))

    def ended_within(self, began_ns: int, ended_ns: int) -> Samples:
        return self.where((self.ended_ns >= began_ns) & (self.ended_ns < ended_ns))

    def under_way_within(self, began_ns: int, ended_ns: int) -> Samples:
        return self.where((self.ended_ns >= began_ns) & (self.intended_ns < ended_ns))

    def columns(self) -> tuple[Integers, ...]:
        return (self.session, self.intended_ns, self.due_ns, self.began_ns, self.recorded_ns, self.ended_ns)


def of_steps(steps: Sequence[Step]) -> Samples:
    """Makes samples of steps."""
    table = np.array(steps, np.int64).reshape(len(steps), len(Step._fields))
    return Samples(*(np.ascontiguousarray(column) for column in table.T))


def joined(parts: Sequence[Samples]) -> Samples:
    """Returns the steps of all parts as one `Samples`."""
    if not parts:
        return of_steps([])
    return Samples(*(np.concatenate(columns) for columns in zip(*(part.columns() for part in parts), strict=True)))


class Window(NamedTuple):
    """A span of time, and a summary of the steps that ended in this span. Latencies are None if no step ended."""

    began_s: float  # counted from the begin of the load
    length_s: float
    steps: int
    p50_s: float | None
    p99_s: float | None
    max_s: float | None

    @property
    def steps_per_s(self) -> float:
        return self.steps / self.length_s


def window(samples: Samples, load_began_ns: int, began_ns: int, ended_ns: int) -> Window:
    """Summarises the steps that ended within a span of time."""
    began_s, length_s = (began_ns - load_began_ns) / 1e9, (ended_ns - began_ns) / 1e9
    inside = samples.ended_within(began_ns, ended_ns)
    if not len(inside):
        return Window(began_s, length_s, 0, None, None, None)
    p50, p99, longest = np.percentile(inside.latency_ns, [50, 99, 100], method="inverted_cdf") / 1e9
    return Window(began_s, length_s, len(inside), float(p50), float(p99), float(longest))


def windows(samples: Samples, load_began_ns: int, began_ns: int, ended_ns: int, count: int) -> tuple[Window, ...]:
    """Divides the time between two times into `count` windows of equal length, and summarises the steps of each."""
    edges = [began_ns + (ended_ns - began_ns) * part // count for part in range(count + 1)]
    return tuple(window(samples, load_began_ns, *span) for span in pairwise(edges))
