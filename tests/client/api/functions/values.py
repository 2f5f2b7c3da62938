"""Operands of all kinds for elementwise functions, and how far apart two floats are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire_protos.ops import dtypes

Host = npt.NDArray[Any]

FLOATS = ("float16", "bfloat16", "float32", "float64")
_SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e-3, 88.0, 89.0, -89.3, 709.9, -710.3]
_BITS: dict[int, Any] = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def numpy_dtype(name: str) -> np.dtype[Any]:
    return dtypes.to_numpy(dtypes.BY_NAME[name])


# How many floats may lie between the result and NumPy's, which is computed in a wider dtype and rounded once. Halves
# are computed in float32 and rounded once too, so that only a tie in the wider dtype moves the result.
OF_ONE = {
    "acos": 2,
    "acosh": 3,
    "asin": 2,
    "asinh": 3,
    "atan": 1,
    "atanh": 3,
    "cbrt": 2,
    "cosh": 3,
    "deg2rad": 2,
    "rad2deg": 2,
    "sinh": 3,
}
OF_TWO = {"hypot": 2, "logaddexp": 3, "copysign": 0, "fmin": 0, "fmax": 0, "fmod": 0, "nextafter": 0}
OF_KERNELS = 1  # more, where kernels compute each op within an error of their own
EXACT = ("copysign", "fmin", "fmax", "fmod", "nextafter")


def floats(name: str, seed: int = 0, count: int = 1500) -> Host:
    """Special values, values around 1, and values of random bits, which lie in the whole range of the dtype."""
    dtype, rng = numpy_dtype(name), np.random.default_rng(seed)
    bits = _BITS[dtype.itemsize]
    with np.errstate(all="ignore"):
        of_any_size = rng.integers(0, np.iinfo(bits).max, count, bits, endpoint=True).view(dtype)
        around_one = np.concatenate([rng.normal(size=count), 1 - rng.exponential(0.01, count), _SPECIAL]).astype(dtype)
        extremes = np.array([1, 2, 3], bits).view(dtype)
        values = np.concatenate([around_one, extremes, -extremes, of_any_size])
        return rng.permutation(np.where(np.isnan(values), np.array(np.nan, dtype), values))


def distance_ulps(actual: Host, expected: Host) -> Host:
    """How many floats of the dtype lie from one to the other: 0 for two NaNs, and very many for one."""
    assert actual.dtype == expected.dtype
    bits = _BITS[actual.dtype.itemsize]
    places = [_places(each.view(bits), bits) for each in (actual, expected)]
    distance = np.abs(places[0] - places[1])
    either, both = np.isnan(actual) | np.isnan(expected), np.isnan(actual) & np.isnan(expected)
    distance = np.where(either, np.inf, distance)
    return np.where(both, 0.0, distance)


def _places(bits: Host, unsigned: Any) -> Host:
    """The places of floats in their order, by their bits. Neighbours of float64 differ by 1 in a long double."""
    sign = np.asarray(1 << (8 * bits.dtype.itemsize - 1), unsigned)
    size = (bits & ~sign).astype(np.longdouble)
    places: Host = np.where(bits & sign != 0, -size, size)
    return places


def wider(host: Any) -> Any:
    return host.astype(np.float64 if host.dtype.itemsize < 8 else np.longdouble)


@np.errstate(all="ignore")
def in_numpy(name: str, *hosts: Any) -> Any:
    """NumPy's function, computed in a wider dtype and rounded once."""
    return np.asarray(getattr(np, name)(*map(wider, hosts))).astype(hosts[0].dtype)


@np.errstate(all="ignore")
def expected_of_two(name: str, a: Host, b: Host) -> Any:
    """NumPy's function of two arrays. Where it rounds nothing, it is computed in the dtype itself, if it knows that."""
    is_own = name == "nextafter" or (name in EXACT and a.dtype.kind == "f")
    return getattr(np, name)(a, b) if is_own else in_numpy(name, a, b)


@np.errstate(all="ignore")
def cancels(expected: Host, a: Host, b: Host) -> Host:
    """Where a sum of logarithms cancels: there NumPy's own loses digits too."""
    places: Host = np.abs(wider(expected)) < 0.25 * np.abs(np.fmax(wider(a), wider(b)))
    return places


def allowed(name: str, limit: int) -> int:
    return min(limit, 1) if name in ("float16", "bfloat16") else limit
