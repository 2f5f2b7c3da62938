"""Orthogonal polynomials by their recurrences (Abramowitz and Stegun, 22.7), as PyTorch computes them.

A degree is an operand, and the greatest one says how long the recurrence is: of a tensor it is read, which waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.kernels.elementwise.pointwise import in_single
from fusewire_torch.promotion import Kind, as_result, promoted
from fusewire_torch.storage import note_transfer
from fusewire_torch.table import Table

TABLE = Table()

_MOST_DEGREES = 1000
_HERMITE_LIMIT = {"float64": 512}  # PyTorch returns NaN beyond it, and beyond 128 of other dtypes

Step = Callable[[int, Any, Any, Any], Any]  # from k, x and the values of degrees k and k - 1 to that of k + 1


def _chebyshev(k: int, x: Any, now: Any, before: Any) -> Any:
    return 2 * x * now - before


def _hermite(k: int, x: Any, now: Any, before: Any) -> Any:
    return 2 * (x * now - k * before)


def _hermite_e(k: int, x: Any, now: Any, before: Any) -> Any:
    return x * now - k * before


def _laguerre(k: int, x: Any, now: Any, before: Any) -> Any:
    return ((2 * k + 1 - x) * now - k * before) / (k + 1)


def _legendre(k: int, x: Any, now: Any, before: Any) -> Any:
    return ((2 * k + 1) * x * now - k * before) / (k + 1)


# The value of degree 1, and the recurrence. That of degree 0 is 1.
_POLYNOMIALS: dict[str, tuple[Callable[[Any], Any], Step]] = {
    "chebyshev_polynomial_t": (lambda x: x, _chebyshev),
    "chebyshev_polynomial_u": (lambda x: 2 * x, _chebyshev),
    "chebyshev_polynomial_v": (lambda x: 2 * x - 1, _chebyshev),
    "chebyshev_polynomial_w": (lambda x: 2 * x + 1, _chebyshev),
    "hermite_polynomial_h": (lambda x: 2 * x, _hermite),
    "hermite_polynomial_he": (lambda x: x, _hermite_e),
    "laguerre_polynomial_l": (lambda x: 1 - x, _laguerre),
    "legendre_polynomial_p": (lambda x: x, _legendre),
}


def _polynomial(name: str, first: Callable[[Any], Any], step: Step) -> Callable[..., Array]:
    """Returns the function of tensors x and n. A polynomial that is shifted has its argument in 0 to 1."""

    def compute(x: Any, n: Any) -> Array:
        (point, degree), result = promoted((x, n), Kind.INT_TO_FLOAT)
        dtype = (point if isinstance(point, Array) else degree).dtype.name
        evaluate = in_single(lambda point, degree: _evaluated(point, degree, first, step, _limit(name, dtype)))
        return as_result(evaluate(2 * point - 1 if name.startswith("shifted") else point, degree), result)

    return compute


def _limit(name: str, dtype: str) -> int | None:
    return _HERMITE_LIMIT.get(dtype, 128) if "hermite" in name else None


def _evaluated(x: Any, degree: Any, first: Callable[[Any], Any], step: Step, limit: int | None) -> Array:
    """Returns the values at x of the polynomials of whole degrees; 0 where a degree is less than 0."""
    wanted = fw.trunc(degree) if isinstance(degree, Array) else int(degree)
    most = _greatest(wanted)
    if most > _MOST_DEGREES:
        raise RuntimeError(f'a polynomial on device "fusewire" has at most degree {_MOST_DEGREES}, not {most}')
    zero = x * 0 if isinstance(x, Array) else degree * 0 + x * 0
    before, now = zero + 1, zero + first(x)
    found = fw.where(wanted == 0, 1, zero).astype(zero.dtype)
    for k in range(1, most + 1):
        found = fw.where(wanted == k, now, found)
        before, now = now, step(k, x, now, before)
    return found if limit is None else fw.where(wanted > limit, fw.nan, found).astype(zero.dtype)


def _greatest(degree: Any) -> int:
    if not isinstance(degree, Array):
        return int(degree)
    if not degree.size:
        return 0
    note_transfer("reads a degree")
    return int(fw.max(degree).item())


for _name, (_first, _step) in _POLYNOMIALS.items():
    TABLE.values[f"special_{_name}"] = _polynomial(_name, _first, _step)
    if hasattr(torch.ops.aten, f"special_shifted_{_name}"):
        TABLE.values[f"special_shifted_{_name}"] = _polynomial(f"shifted_{_name}", _first, _step)
