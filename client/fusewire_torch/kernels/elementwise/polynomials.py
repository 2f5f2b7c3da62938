"""Orthogonal polynomials, by their recurrences (Abramowitz and Stegun, 22.7).

A degree that is a number is known here. A tensor of degrees is read, which waits, because the greatest one says how far
to go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import fusewire as fw
from fusewire import Array
from fusewire_torch.promotion import Kind, as_result, promoted
from fusewire_torch.storage import note_transfer
from fusewire_torch.table import Table

TABLE = Table()

_MOST_DEGREE = 1000


class _Family(NamedTuple):
    """Polynomials p of x: p[0] = 1, p[1] = `first(x)`, p[k + 1] = `following(k, x, p[k], p[k − 1])`."""

    first: Callable[[Any], Any]
    following: Callable[[int, Any, Any, Any], Any]


def _chebyshev(first: Callable[[Any], Any]) -> _Family:
    return _Family(first, lambda _, x, now, before: 2 * x * now - before)


def _shifted(family: _Family) -> _Family:
    """Returns the polynomials of 2x − 1, which are orthogonal from 0 to 1."""
    return _Family(
        lambda x: family.first(2 * x - 1), lambda k, x, now, before: family.following(k, 2 * x - 1, now, before)
    )


_CHEBYSHEV = {
    "chebyshev_polynomial_t": _chebyshev(lambda x: x),
    "chebyshev_polynomial_u": _chebyshev(lambda x: 2 * x),
    "chebyshev_polynomial_v": _chebyshev(lambda x: 2 * x - 1),
    "chebyshev_polynomial_w": _chebyshev(lambda x: 2 * x + 1),
}
_FAMILIES = {
    **_CHEBYSHEV,
    **{f"shifted_{name}": _shifted(family) for name, family in _CHEBYSHEV.items()},
    "hermite_polynomial_h": _Family(lambda x: 2 * x, lambda k, x, now, before: 2 * x * now - 2 * k * before),
    "hermite_polynomial_he": _Family(lambda x: x, lambda k, x, now, before: x * now - k * before),
    "laguerre_polynomial_l": _Family(
        lambda x: 1 - x, lambda k, x, now, before: ((2 * k + 1 - x) * now - k * before) / (k + 1)
    ),
    "legendre_polynomial_p": _Family(
        lambda x: x, lambda k, x, now, before: ((2 * k + 1) * x * now - k * before) / (k + 1)
    ),
}


def _polynomial(name: str) -> Callable[[Any, Any], Array]:
    family = _FAMILIES[name]

    def compute(x: Any, n: Any) -> Array:
        (point, degrees), dtype = promoted((x, n), Kind.INT_TO_FLOAT)
        value = _of_degrees(family, point, degrees, name) if isinstance(degrees, Array) else None
        return as_result(_of_degree(family, point, int(degrees), name) if value is None else value, dtype)

    return compute


def _of_degree(family: _Family, x: Array, degree: int, name: str) -> Array:
    _check_degree(degree, name)
    if degree <= 0:
        return fw.ones_like(x) if degree == 0 else fw.zeros_like(x)
    before, now = fw.ones_like(x), family.first(x)
    for k in range(1, degree):
        before, now = now, family.following(k, x, now, before)
    return fw.asarray(now)


def _of_degrees(family: _Family, x: Any, degrees: Array, name: str) -> Array:
    whole = fw.trunc(degrees)
    note_transfer("reads degrees of a polynomial")
    greatest = int(fw.max(whole).item()) if degrees.size else 0
    _check_degree(greatest, name)
    point, whole = fw.broadcast_arrays(x if isinstance(x, Array) else x + 0 * degrees, whole)
    before, now = fw.ones_like(point), family.first(point)
    value = fw.where(whole == 0, 1.0, fw.where(whole == 1, now, 0.0))
    for k in range(1, greatest):
        before, now = now, family.following(k, point, now, before)
        value = fw.where(whole == k + 1, now, value)
    return value.astype(degrees.dtype, copy=False)


def _check_degree(degree: int, name: str) -> None:
    if degree > _MOST_DEGREE:
        raise NotImplementedError(
            f'special_{name} of degree {degree} on device "fusewire", which has degrees up to {_MOST_DEGREE}'
        )


for _name in _FAMILIES:
    TABLE.values[f"special_{_name}"] = _polynomial(_name)
    TABLE.values[f"special_{_name}.n_scalar"] = _polynomial(_name)
    TABLE.values[f"special_{_name}.x_scalar"] = _polynomial(_name)
