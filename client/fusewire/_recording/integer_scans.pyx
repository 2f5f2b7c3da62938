# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Scans the integers of a tape: finds records, counts repeats of a loop's body, finds results and inputs. Pure.

The records of a body, one behind the other, are its integers. From one body to the next each integer grows by its
*shift*: a signature number and a handle from outside the loop by 0, the handle of a result of the loop by the number of
ops of the body, and a reference to a value, which is negative, by minus the number of values of the body.

The integers of a *structure* stand in place of those of a piece. They are signature numbers, which lie below INSIDE,
and operands: INSIDE plus the index of the op of the piece that made it, OUTSIDE plus the index of an input, or VALUE.
"""

from libc.stdint cimport int64_t, uint64_t

from numpy import empty, int64, zeros

from fusewire._recording.tape import FIRST_HANDLE

INSIDE = FIRST_HANDLE
OUTSIDE = 2 * FIRST_HANDLE
VALUE = -1  # every scalar and slice start

cdef uint64_t FIRST = FIRST_HANDLE
cdef int64_t LEAST_INSIDE = INSIDE, LEAST_OUTSIDE = OUTSIDE


def places_of_signatures(const int64_t[::1] flat):
    """Returns the index of the first integer of each record. `flat`, contiguous, holds records one behind the other."""
    cdef Py_ssize_t place, count = 0
    for place in range(flat.shape[0]):
        count += <uint64_t>flat[place] < FIRST
    found = empty(count + 1, int64)
    cdef int64_t[::1] places = found
    count = 0
    for place in range(flat.shape[0]):
        places[count] = place  # the next one overwrites it, unless it is a signature's: cheaper than a branch
        count += <uint64_t>flat[place] < FIRST
    return found[:count]


def count_repeats(const int64_t[::1] body, const int64_t[::1] shifts, const int64_t[::1] following):
    """Returns how many whole bodies at the beginning of `following` repeat `body`.

    `body` and `shifts` are int64[integers], at least one. `following`, int64[any number], are the integers that were
    recorded behind the body. All three are contiguous. Raises ValueError if there is not one shift for each integer.
    """
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


def results_among(const int64_t[::1] handles, int64_t first, int64_t ops):
    """Returns for each of `ops` ops, numbered from `first` on, whether its result is among `handles`; and the others.

    `handles`, int64[any number] and contiguous, may be any integers of a tape. The others keep their order.
    """
    is_among, others = zeros(ops, bool), empty(handles.shape[0], int64)
    cdef unsigned char[::1] flags = is_among.view("u1")
    cdef int64_t[::1] elsewhere = others
    cdef Py_ssize_t place, count = 0
    cdef int64_t handle
    for place in range(handles.shape[0]):
        handle = handles[place]
        if <uint64_t>handle - <uint64_t>first < <uint64_t>ops:  # as unsigned, a negative difference is large
            flags[handle - first] = True
        else:
            elsewhere[count] = handle
            count += 1
    return is_among, others[:count]


def inputs_among(const int64_t[::1] structure, const int64_t[::1] flat, int64_t first, int64_t ops):
    """Returns the handles that a piece binds to the inputs of a structure, or None if it has another structure.

    `structure` and `flat` are int64[integers], and contiguous. `flat` holds the records of the piece, whose `ops` ops
    are numbered from `first` on. An input takes one handle, but several inputs may take the same. The inputs are
    numbered in the order of their first uses.
    """
    cdef Py_ssize_t place, number
    cdef int64_t expected, actual
    cdef list bound = []
    if flat.shape[0] != structure.shape[0]:
        return None
    for place in range(flat.shape[0]):
        expected, actual = structure[place], flat[place]
        if expected < 0:
            if actual >= 0:
                return None
        elif expected < LEAST_INSIDE:
            if actual != expected:
                return None
        elif expected < LEAST_OUTSIDE:
            if actual - first != expected - LEAST_INSIDE:
                return None
        else:
            number = expected - LEAST_OUTSIDE
            if actual < LEAST_INSIDE or first <= actual < first + ops:
                return None
            if number == len(bound):
                bound.append(actual)
            elif bound[number] != actual:
                return None
    return bound


def inputs_of_step(
    const int64_t[::1] structure, const unsigned char[::1] live, const int64_t[::1] flat, int64_t first,
    const int64_t[::1] dead,
):
    """Returns the handles that a piece binds to its inputs, and the dead ones that it did not make, if both are known.

    Returns None if the piece has another structure, or other live results. The results of its ops that are `live`,
    uint8[ops], are not among the `dead` handles, and all others are. The other arguments are those of `inputs_among`.
    """
    cdef Py_ssize_t place, deaths = 0
    cdef int64_t handle, ops = live.shape[0]
    cdef list elsewhere = []
    for place in range(ops):
        deaths += not live[place]
    for place in range(dead.shape[0]):
        handle = dead[place]
        if <uint64_t>handle - <uint64_t>first >= <uint64_t>ops:
            elsewhere.append(handle)
        elif live[handle - first]:
            return None
        else:
            deaths -= 1
    inputs = None if deaths else inputs_among(structure, flat, first, ops)
    return None if inputs is None else (inputs, elsewhere)
