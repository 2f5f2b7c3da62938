# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Counts how often a tape goes on repeating a loop's body, in C: see `loop_repeats`."""

from libc.stdint cimport int64_t


def count_repeats(const int64_t[::1] body, const int64_t[::1] shifts, const int64_t[::1] following):
    """See `loop_repeats.count_repeats`."""
    cdef Py_ssize_t length = body.shape[0], most = following.shape[0] // length if length else 0
    cdef Py_ssize_t repeat, place
    cdef const int64_t* items = &following[0] if most else NULL
    if shifts.shape[0] != length:
        raise ValueError(f"{shifts.shape[0]} shifts of {length} integers")
    for repeat in range(most):
        for place in range(length):
            if items[place] != body[place] + shifts[place] * (repeat + 1):
                return repeat
        items += length
    return most
