# The tapes of the default session, which calls without arrays use.

cdef dict default_tapes = {}  # by thread; those of the default session that calls without arrays have used
cdef ThreadTape last_default_tape = None


def forget_default_tapes():
    """Is called when another session becomes the default session."""
    global default_tapes, last_default_tape
    last_default_tape = None
    default_tapes = {}


cdef PyObject* default_tape() except? NULL:
    """Returns this thread's tape in the default session, borrowed, or NULL if it is not known."""
    global last_default_tape
    cdef unsigned long thread = PyThread_get_thread_ident()
    if last_default_tape is not None and last_default_tape.thread == thread:
        return <PyObject*>last_default_tape
    found = default_tapes.get(thread)
    if found is None:
        return NULL
    last_default_tape = found
    return <PyObject*>found


cdef PyObject* noting_tape(PyObject* function, PyObject** given, size_t flags, PyObject* names) except NULL:
    """Calls a function without arrays, and notes which tape of this thread has recorded its result."""
    cdef dict tapes = default_tapes  # another session may become the default session meanwhile
    cdef PyObject* result = PyObject_Vectorcall(function, given, flags, names)
    cdef ThreadTape tape
    if result != NULL and Py_TYPE_of(result) == UNTRACKED:
        tape = (<Recorded>result)._recorder
        if tape is not None and tape.thread == PyThread_get_thread_ident():
            tapes[tape.thread] = tape
    return result
