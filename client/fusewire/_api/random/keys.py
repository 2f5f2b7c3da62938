"""Keys of random numbers, and the random bits that a key and a counter determine."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.ops.filled import filled
from fusewire._api.ops.operations import astype, shape_of
from fusewire._errors import DtypeError, ShapeError
from fusewire._recording.default_session import default_session
from fusewire._recording.record_op import apply, create
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Shape

Key = Array | int  # an int is known on this machine alone, and is sent with each op

# The upper half of the counters, so that no key is a number that another draws.
_NUMBERS, _KEYS = 0, 1


def key(seed: Any = None) -> Array:
    """Returns the key of a seed: a uint64 array of rank 0. It is an array as any other, and no upload.

    The seed is what NumPy's `default_rng` takes: an integer of 0 or more, a sequence of them, or None, which takes a
    seed from the operating system. Raises what NumPy raises: ValueError for a negative seed, TypeError for others.
    """
    return filled(default_session(), (), key_number(seed), dtypes.uint64)


def key_number(seed: Any) -> int:
    """Returns the key of a seed as an integer."""
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])


def fold_in(key: Array, data: Any) -> Array:
    """Returns a new key, which `key` and an integer of rank 0 determine: the counter of a loop, for instance.

    Keys of different integers are different. Raises DtypeError or ShapeError if `key` is no key, or `data` no integer.
    """
    check_key(key)
    if not isinstance(data, Array):
        data = np.asarray(data)
    if data.shape or not np.isdtype(np.dtype(data.dtype.name), "integral"):
        raise DtypeError(f"fold_in takes an integer of rank 0, not {data.dtype.name}{list(data.shape)}")
    counter = astype(data, dtypes.uint64, copy=False) if isinstance(data, Array) else int(data) % 2**64
    return _bits_under(key, (), counter, _KEYS)


def split(key: Array, num: int = 2) -> Array:
    """Returns `num` new keys, a vector whose element i is `fold_in(key, i)`. Raises DtypeError or ShapeError."""
    check_key(key)
    (count,) = shape_of(num)
    return _bits_under(key, (count,), 0, _KEYS)


def check_key(key: Any) -> None:
    """Raises DtypeError or ShapeError unless `key` is a uint64 array of rank 0."""
    if not isinstance(key, Array) or key.dtype is not dtypes.uint64:
        given = key.dtype.name if isinstance(key, Array) else type(key).__name__
        raise DtypeError(f"a key is a uint64 array, not {given}; write fw.random.key(seed)")
    if key.shape:
        raise ShapeError(f"a key has rank 0, not the shape {key.shape}; write keys[i]")


def random_bits(session: Any, key: Key, shape: Shape, start: int) -> Array:
    """Returns random bits in uint64: those at the counters from `start` on, in row-major order.

    The bits are the first two words of Philox4x32-10 (Salmon et al., 2011).
    """
    if isinstance(key, Array):
        return _bits_under(key, shape, start, _NUMBERS)
    scalars = [(dtypes.uint64, value) for value in (start, _NUMBERS, key)]
    return create(Array, session.recorder(), BY_NAME["random_bits"], scalars, (shape,))


def _bits_under(key: Array, shape: Shape, start: Any, stream: int) -> Array:
    bits: Array = apply(BY_NAME["random_bits"], (start, stream, key), (shape,))
    return bits
