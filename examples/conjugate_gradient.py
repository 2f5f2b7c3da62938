"""Solves Poisson's equation on a square by conjugate gradients, with a matrix that is never written down.

Source: M. R. Hestenes and E. Stiefel, Methods of conjugate gradients for solving linear systems, Journal of Research of
the National Bureau of Standards 49 (1952).
"""

from __future__ import annotations

from typing import Any


def applied(xp: Any, u: Any) -> Any:
    """Returns minus the Laplacian of u (n, n), which is 0 around the square, times the square of the mesh width."""
    padded = xp.pad(u, 1)
    return 4.0 * u - padded[:-2, 1:-1] - padded[2:, 1:-1] - padded[1:-1, :-2] - padded[1:-1, 2:]


def solved(xp: Any, right: Any, steps: int) -> Any:
    """Returns u with `applied(u)` near `right`, after some steps from 0."""
    u, rest, direction = xp.zeros(right.shape), right, right
    square = (rest * rest).sum()
    for _ in range(steps):
        image = applied(xp, direction)
        length = square / (direction * image).sum()
        u, rest = u + length * direction, rest - length * image
        square, before = (rest * rest).sum(), square
        direction = rest + square / before * direction
    return u


if __name__ == "__main__":
    import fusewire as fw

    with fw.connect():
        right = fw.ones((128, 128)) / 129.0**2
        u = solved(fw, right, 250)
        print("greatest:", float(u.max()), "rest:", float(fw.abs(applied(fw, u) - right).max()))
