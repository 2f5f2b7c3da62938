"""Histograms of figures: whole numbers, counted in buckets. Plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fusewire_server.figures import Described, counter, fact, together


def _buckets(lists: Sequence[Sequence[Bucket]]) -> tuple[Bucket, ...]:
    counts: dict[int, int] = {}
    for bucket in together(lists):
        counts[bucket.at_most] = counts.get(bucket.at_most, 0) + bucket.count
    return tuple([Bucket(end, counts[end]) for end in sorted(counts)])


@dataclass(frozen=True)
class Bucket(Described):
    """The number of values that are at most `at_most` and greater than the previous bucket's `at_most`."""

    at_most: int = fact(default=0)
    """Greatest value of the bucket."""
    count: int = counter()
    """Number of values in the bucket."""


@dataclass(frozen=True)
class Histogram(Described):
    """Positive whole numbers, counted in buckets."""

    buckets: tuple[Bucket, ...] = counter(join=_buckets, default=())
    """The buckets, ascending. Each ends at a power of two."""
    total: int = counter()
    """Sum of all values."""


def histogram(counts: Mapping[int, int], sum_of_values: int) -> Histogram:
    """Returns a histogram of counts by the ends of their buckets."""
    return Histogram(tuple([Bucket(at_most, counts[at_most]) for at_most in sorted(counts)]), sum_of_values)
