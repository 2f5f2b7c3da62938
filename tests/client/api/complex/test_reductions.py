"""Reductions of complex numbers that do not apply to each part by itself."""

from __future__ import annotations

import numpy as np
import pytest

import fusewire as fw
from tests.client.api.complex.agreement import Call, check

CALLS: dict[str, Call] = {
    "prod": lambda xp, z, w, x, i: z.prod(),
    "prod along an axis": lambda xp, z, w, x, i: z.prod(axis=0, keepdims=True),
    "prod of some": lambda xp, z, w, x, i: z.prod(axis=1, initial=2j, where=x > 0),
    "prod of nothing": lambda xp, z, w, x, i: xp.prod(z[:, :0], axis=1),
    "cumulative_prod": lambda xp, z, w, x, i: xp.cumulative_prod(z, axis=1),
    "cumulative_prod with 1": lambda xp, z, w, x, i: xp.cumulative_prod(z[0], include_initial=True),
    "cumprod": lambda xp, z, w, x, i: xp.cumprod(z),
    "var": lambda xp, z, w, x, i: z.var(),
    "var along an axis": lambda xp, z, w, x, i: xp.var(z, axis=0, ddof=1),
    "var of some": lambda xp, z, w, x, i: xp.var(z, where=x > 0),
    "std": lambda xp, z, w, x, i: xp.std(z, axis=0),
    "std of some": lambda xp, z, w, x, i: xp.std(z, where=x > 0),
    "any": lambda xp, z, w, x, i: xp.any(z, axis=0),
    "all": lambda xp, z, w, x, i: z.all(axis=1),
    "count_nonzero": lambda xp, z, w, x, i: xp.count_nonzero(z, axis=0),
    "nansum": lambda xp, z, w, x, i: xp.nansum(z / z),
    "nanmean": lambda xp, z, w, x, i: xp.nanmean(z / z),
    "nan_to_num": lambda xp, z, w, x, i: xp.nan_to_num(z / z, nan=2.0),
    "cov": lambda xp, z, w, x, i: xp.cov(z),
    "corrcoef": lambda xp, z, w, x, i: xp.corrcoef(w),
    "reduction by a ufunc": lambda xp, z, w, x, i: np.multiply.reduce(z),
    "accumulation by a ufunc": lambda xp, z, w, x, i: np.multiply.accumulate(z),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_reduction_gives_what_numpys_gives(session: fw.Session, name: str) -> None:
    check(session, CALLS[name])


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 33])
def test_products_of_any_number_are_numpys(session: fw.Session, length: int) -> None:
    host = np.exp(1j * np.arange(length)) * 1.1
    z = session.array(host)
    np.testing.assert_allclose(z.prod().numpy(), host.prod())
    np.testing.assert_allclose(fw.cumulative_prod(z).numpy(), np.cumprod(host))
