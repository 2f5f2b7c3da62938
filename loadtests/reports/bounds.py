"""Checks bounds that the numbers of a load test must keep, such as `p99_s=0.01`. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

# A field in AT_MOST must not exceed its bound. A field in AT_LEAST must reach its bound.
AT_MOST = (
    *("p50_s", "p90_s", "p99_s", "p999_s", "max_s", "mean_s", "errors", "harness_share", "p99_to_undisturbed"),
    *("server_growth_bytes_per_s", "clients_growth_bytes_per_s", "p99_to_p50", "lag_p99_s"),
)
AT_LEAST = ("steps_per_s", "ops_per_s", "rows_per_launch", "rows_per_ready", "fairness", "steps_to_peer")


class Bound(NamedTuple):
    """A bound on a field of the JSON document of a load test."""

    field: str
    number: float

    def failure_in(self, document: Mapping[str, Any]) -> str | None:
        """Returns a sentence that says how the document breaks the bound, or None if it keeps the bound."""
        number = document[self.field]
        if number is None:
            return f"{self.field} was not measured, and its bound is {self.number:g}"
        if self.field in AT_MOST and number > self.number:
            return f"{self.field} is {number:.6g}, more than its bound {self.number:g}"
        if self.field in AT_LEAST and number < self.number:
            return f"{self.field} is {number:.6g}, less than its bound {self.number:g}"
        return None


def read_bound(text: str) -> Bound:
    """Reads a bound written as NAME=NUMBER.

    Raises ValueError for another form, for a name without bounds, or for a number that is not finite.
    """
    field, _, written = text.partition("=")
    if field not in AT_MOST + AT_LEAST:
        raise ValueError(f"{field!r} cannot be bounded; known are {', '.join(sorted(AT_MOST + AT_LEAST))}")
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(f"the bound of {field} is {written}; expected a finite number")
    return Bound(field, number)


def failures(bounds: Sequence[Bound], document: Mapping[str, Any]) -> list[str]:
    """Returns a sentence for each bound that the document breaks."""
    found = (bound.failure_in(document) for bound in bounds)
    return [failure for failure in found if failure is not None]
