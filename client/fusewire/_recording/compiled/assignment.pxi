# Assignment, `x[key] = v` and `x += v`, as the exchange of two objects' values.

def exchange(Recorded x not None, Recorded other not None):
    """Gives `x` the value of another object of the same spec, which then has the value of `x`."""
    cdef int64_t handle = x._handle
    cdef ThreadTape recorder = x._recorder
    cdef ThreadTape own = other._recorder
    if own is not None and own.notes is not None:
        own.notes.keep(x)
    x._handle, x._recorder = other._handle, other._recorder
    other._handle, other._recorder = handle, recorder


def records_no_body(Recorded x not None):
    """Returns whether the calling thread has made `x` and does not record the body of a loop or function."""
    return is_of_free_tape(x)


cdef inline bint is_of_free_tape(Recorded x) noexcept:
    cdef ThreadTape tape = x._recorder
    return tape is not None and tape.thread == PyThread_get_thread_ident() and not tape.is_in_body


def in_place_operator(operator, slow, rest):
    """Returns the method of `x op= v` that does what `slow` does, for the method `operator` of `x op v`.

    `rest(x, result)` assigns a result whose spec is not that of `x`, and returns what the method returns.
    """
    cdef DirectCall made
    op = next((op for name, op in BINARY.values() if Recorded.__dict__.get(name) is operator), None)
    if op is None:  # it is no method of ours
        return slow
    made = direct_call(slow, <void*>call_in_place)
    made.op, made.rest = op, rest
    return made


cdef const char* LOST = (
    "the assignment is lost: it is to a new array that no name refers to, because a slice is a value and no view; "
    "for x[i][j] = v write x[i, j] = v, and for others x[...] = the changed value"
)


def exchanging(slow, make):
    """Returns the method that does what `slow` does: it gives an array the value that `make` returns.

    It warns where nothing but the call refers to the array, so that nobody can ever see the new value.

    `make`, another method, takes the same arguments. Only in the body of a loop or function, and for an array of
    another thread, `slow` has to see whether the array may be assigned to.
    """
    cdef DirectCall made = direct_call(slow, <void*>call_exchanging)
    made.rest = make
    return made


cdef PyObject* call_exchanging(PyObject* function, PyObject** given, size_t flags, PyObject* names) except NULL:
    cdef DirectCall called = <DirectCall>function
    cdef PyObject* made
    if unlikely(PyVectorcall_NARGS(flags) == 3 and fw_is_only_on_stack(given[0])):
        PyErr_WarnEx(UserWarning, LOST, 1)
    if PyVectorcall_NARGS(flags) == 0 or names != NULL or Py_TYPE_of(given[0]) != UNTRACKED or \
            not is_of_free_tape(<Recorded>given[0]):
        return PyObject_Vectorcall(<PyObject*>called.slow, given, flags, names)
    made = PyObject_Vectorcall(<PyObject*>called.rest, given, PyVectorcall_NARGS(flags), NULL)
    if made == NULL:
        return NULL
    result = <object>made
    Py_DECREF_object(made)  # of the two references, `result` is one
    exchange(<object>given[0], result)
    return Py_NewRef(Py_None)


cdef PyObject* call_in_place(PyObject* function, PyObject** given, size_t flags, PyObject* names) except NULL:
    cdef DirectCall called = <DirectCall>function
    cdef Recorded x
    if PyVectorcall_NARGS(flags) != 2 or names != NULL or Py_TYPE_of(given[0]) != UNTRACKED:
        return PyObject_Vectorcall(<PyObject*>called.slow, given, flags, names)
    x = <Recorded>given[0]
    if not is_of_free_tape(x) or not x._spec.shape:
        return PyObject_Vectorcall(<PyObject*>called.slow, given, flags, names)
    result = record_binary(called.op, x, <object>given[1])
    if Py_TYPE(result) == UNTRACKED and (<Recorded>result)._spec is x._spec:
        exchange(x, <Recorded>result)
        return Py_NewRef(<PyObject*>x)
    result = called.rest(x, result)
    return Py_NewRef(<PyObject*>result)
