"""Defines random bits, and the numbers of distributions that they stand for, in NumPy: the twins of these ops. Pure.

The bits are those of Philox4x32-10 (Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3, 2011).
Each element is computed from its own counter, so it does not matter which thread computes it, or when.

The prelude `random.h` has the same steps. Integer arithmetic or IEEE 754 defines the result of each, so that all
backends give the same bits. That is why logarithms are computed here, and not by the array library.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from fusewire_protos.ops.shapes import Shape

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF

_LN_2 = 0.6931471805599453
_ROOT_OF_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
_FRACTION = (1 << 52) - 1
_ONE = 0x3FF << 52  # the bits of 1.0
# Of the series of atanh(s) / s in s², from the last coefficient on. Where s is largest, 0.172, the next term would be
# below 2^-55.
_ATANH = tuple(1.0 / odd for odd in range(19, 0, -2))

# The normal quantile at u, divided by u − ½, as a function of w = −log(4 u (1 − u)): numerator and denominator, from
# the last coefficient on. Fitted as the functions of `math.h`, for w from 0 to 51·log(2); the largest relative error is
# 7.4e-11. All coefficients are positive, so that no digits are lost.
_NUMERATOR = (
    *(1.378548601511e-12, 5.27949740774e-9, 6.942838361071e-7, 1.006517493136e-5, 0.0001835290164935),
    *(0.002545337531643, 0.02495823819592, 0.1733358308352, 0.8439462730893, 2.506628274445),
)
_DENOMINATOR = (
    *(5.858296341358e-11, 2.869352394301e-8, 1.254223294465e-6, 1.08745070692e-5, 0.0003431548659911),
    *(0.002056482031718, 0.03651375506522, 0.07488645927882, 1.0),
)


def random_bits(library: Any, start: Any, stream: Any, key: Any, shape: Shape) -> Any:
    """Returns the random bits under `key` at the counters start + i mod 2^64, for element i in row-major order.

    The three scalars are uint64.
    """
    return bits_at((library.arange(prod(shape), dtype="uint64") + start).reshape(shape), stream, key)


def bits_at(position: Any, stream: Any, key: Any) -> Any:
    """Returns words 0 and 1 of Philox4x32-10 under `key` at the counter stream · 2^64 + position, as one uint64."""
    words = [position & _WORD, position >> 32, stream & _WORD, stream >> 32]
    keys = [key & _WORD, key >> 32]
    for _ in range(_ROUNDS):
        first, second = (word * multiplier for word, multiplier in zip(words[::2], _MULTIPLIERS, strict=True))
        words = [(second >> 32) ^ words[1] ^ keys[0], second & _WORD, (first >> 32) ^ words[3] ^ keys[1], first & _WORD]
        keys = [(word + step) & _WORD for word, step in zip(keys, _KEY_STEPS, strict=True)]
    return words[0] | words[1] << 32


def exponential_of_bits(library: Any, bits: Any) -> Any:
    """Returns −log(u) in float64: of random bits, exponentially distributed numbers of mean 1.

    They are from 1.1e-16 to 36.8.
    """
    return _minus_log(library, _uniform(library, bits))


def normal_of_bits(library: Any, bits: Any) -> Any:
    """Returns the normal quantile at u in float64: of random bits, normal numbers of mean 0 and variance 1.

    They are from −8.21 to 8.21, and never 0. Complemented bits give the negative number.
    """
    u = _uniform(library, bits)
    w = _minus_log(library, 4.0 * u * (1.0 - u))
    return (u - 0.5) * _polynomial(_NUMERATOR, w) / _polynomial(_DENOMINATOR, w)


def _uniform(library: Any, bits: Any) -> Any:
    """Returns u = (k + ½) / 2^52 exactly, for the number k that the upper 52 bits are. So u is neither 0 nor 1."""
    return library.asarray(bits >> 12 | _ONE).view("float64") - (1.0 - 2.0**-53)


def _minus_log(library: Any, x: Any) -> Any:
    """Returns −log(x) of normal x > 0, within a few units in the last place.

    x = 2^e (1 + f) with 1 + f from √½ to √2, and log(1 + f) = 2 atanh(s) for s = f / (2 + f).
    """
    bits = library.asarray(x).view("uint64") - _ROOT_OF_HALF
    e = (library.asarray(bits).view("int64") >> 52).astype("float64")
    f = library.asarray((bits & _FRACTION) + _ROOT_OF_HALF).view("float64") - 1.0
    s = f / (2.0 + f)
    return e * -_LN_2 - 2.0 * s * _polynomial(_ATANH, s * s)


def _polynomial(coefficients: Sequence[float], x: Any) -> Any:
    """Returns the value of a polynomial by Horner's rule, from its last coefficient on."""
    value: Any = coefficients[0]
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value
