"""The factors by which transforms are scaled, by the names of NumPy."""

from __future__ import annotations

from math import sqrt
from typing import Literal

from fusewire._errors import ArgumentError

Norm = Literal["backward", "ortho", "forward"] | None

_TURNED: dict[str | None, Norm] = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def factor_of(norm: Norm, points: int, *, inverse: bool) -> float:
    """Returns the factor of a transform of so many points, which may lie along several axes.

    "backward", the default, scales the inverse transform by 1/points, "forward" the other one, and "ortho" both by the
    square root of that. Raises ArgumentError for another name.
    """
    if turned(norm) == "ortho":
        return 1 / sqrt(points)
    return 1 / points if inverse == (norm != "forward") else 1.0


def turned(norm: Norm) -> Norm:
    """Returns what scales a transform as `norm` scales the inverse one. Raises ArgumentError for another name."""
    if norm not in _TURNED:
        raise ArgumentError(f"norm is 'backward', 'ortho' or 'forward', not {norm!r}")
    return _TURNED[norm]
