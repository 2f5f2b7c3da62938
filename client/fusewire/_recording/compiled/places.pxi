# The place in the user's source that records an op, as a number.

cdef enum:
    BITS_OF_PLACES_AT_HAND = 10
    KEPT_PLACES = 1 << 16
    NO_PLACE = 0
    INTERNAL_PLACE = -1

assert (KEPT_PLACES, NO_PLACE, INTERNAL_PLACE) == (OPS_WITH_PLACES, NOT_KNOWN, INTERNAL)

cdef struct Place:  # see `places`, which keeps the code alive until its generation changes
    PyCodeObject* code
    int offset_bytes
    int32_t number
    int64_t generation

cdef Place PLACES[1 << BITS_OF_PLACES_AT_HAND]
cdef int64_t generation = places.generation


def user_place(frame):
    """Returns the number of the innermost place in the user's code on the stack of a frame, or NOT_KNOWN."""
    return place_from(<PyFrameObject*>Py_NewRef(<PyObject*>frame))


cdef inline int32_t place_here() except? -2:
    """Returns the number of the innermost place in the user's code, or NO_PLACE. May run Python code."""
    return place_from(PyThreadState_GetFrame(PyThreadState_Get()))


cdef int32_t place_from(PyFrameObject* frame) except? -2:
    """Takes over the reference to the frame."""
    cdef PyFrameObject* outer
    cdef int32_t number = NO_PLACE
    while frame != NULL:
        try:
            number = number_at(frame)
            outer = PyFrame_GetBack(frame) if number == INTERNAL_PLACE else NULL
        finally:
            Py_DECREF_object(<PyObject*>frame)
        frame = outer
    return NO_PLACE if number == INTERNAL_PLACE else number


cdef inline int32_t number_at(PyFrameObject* frame) except? -2:
    cdef PyCodeObject* code = PyFrame_GetCode(frame)
    cdef int offset_bytes = PyFrame_GetLasti(frame)
    cdef uint64_t mixed = (<uint64_t><uintptr_t>code + <uint64_t>offset_bytes) * <uint64_t>0x9E3779B97F4A7C15
    cdef Place* place = &PLACES[mixed >> (64 - BITS_OF_PLACES_AT_HAND)]
    Py_DECREF_object(<PyObject*>code)  # the frame keeps it alive
    if place.code == code and place.offset_bytes == offset_bytes and place.generation == generation:
        return place.number
    return learn_place(frame, code, offset_bytes, place)


cdef int32_t learn_place(PyFrameObject* frame, PyCodeObject* code, int offset_bytes, Place* place) except? -2:
    global generation
    cdef int32_t number = places.number_at(<object>frame)
    generation = places.generation
    place.code, place.offset_bytes, place.number, place.generation = code, offset_bytes, number, generation
    return number
