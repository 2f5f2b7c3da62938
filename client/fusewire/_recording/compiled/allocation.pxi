# Makes and frees results without the collector of cycles.

cdef enum:
    MOST_FREE = 256

cdef PyObject* FREE[MOST_FREE]  # dead objects of class UNTRACKED
cdef Py_ssize_t free_count = 0
cdef PyTypeObject* UNTRACKED = NULL


def untracked(type kind):
    """Makes `kind`, the Python class of arrays, as cheap to allocate as a class of C. Returns `kind`.

    Python tracks each object of a class that was made in Python with its garbage collector, gives its memory back when
    it dies, and looks up its operators by name. `kind` has no fields of its own, so its objects need no tracking, and
    their memory is used again. Subclasses of `kind` are treated by Python as usual.
    """
    global UNTRACKED
    cdef PyTypeObject* made = <PyTypeObject*>kind
    if made.tp_basicsize != (<PyTypeObject*>Recorded).tp_basicsize:
        raise TypeError(f"{kind} has fields of its own")
    if UNTRACKED != NULL:  # the module of the class was imported anew
        return kind
    take_operators(made.tp_as_number, (<PyTypeObject*>Recorded).tp_as_number)
    made.tp_flags &= ~Py_TPFLAGS_HAVE_GC
    made.tp_traverse, made.tp_clear = NULL, NULL
    made.tp_alloc, made.tp_free, made.tp_dealloc = allocate_untracked, PyObject_Free, deallocate
    PyType_Modified(kind)
    UNTRACKED = made
    return kind


cdef void take_operators(PyNumberMethods* own, PyNumberMethods* base) noexcept:
    """Lets Python call the functions of the base class. Else it looks each operator up by its name."""
    own.nb_add = base.nb_add
    own.nb_subtract = base.nb_subtract
    own.nb_multiply = base.nb_multiply
    own.nb_true_divide = base.nb_true_divide
    own.nb_floor_divide = base.nb_floor_divide
    own.nb_remainder = base.nb_remainder
    own.nb_matrix_multiply = base.nb_matrix_multiply
    own.nb_and = base.nb_and
    own.nb_or = base.nb_or
    own.nb_xor = base.nb_xor
    own.nb_lshift = base.nb_lshift
    own.nb_rshift = base.nb_rshift


cdef PyObject* allocate_untracked(PyTypeObject* kind, Py_ssize_t _items) noexcept:
    cdef PyObject* made = <PyObject*>PyObject_Malloc(kind.tp_basicsize)
    if made == NULL:
        return PyErr_NoMemory()
    memset(made, 0, kind.tp_basicsize)
    return PyObject_Init(made, kind)


cdef void deallocate(PyObject* dead) noexcept:
    """Is the destructor of UNTRACKED. A subclass made in Python calls it too, and expects it to release the subclass."""
    global free_count
    cdef PyTypeObject* kind = Py_TYPE_of(dead)
    if kind != UNTRACKED or free_count == MOST_FREE:
        (<PyTypeObject*>Recorded).tp_dealloc(dead)
        Py_DECREF_pointer(kind)
        return
    if (<PyObject**>(<char*>dead + kind.tp_weaklistoffset))[0] != NULL:
        PyObject_ClearWeakRefs(dead)
    if <PyObject*>(<Recorded>dead)._recorder != <PyObject*>None:
        note_death_on((<Recorded>dead)._recorder, (<Recorded>dead)._handle)
    (<Recorded>dead)._handle = 0
    (<Recorded>dead)._spec = None
    (<Recorded>dead)._recorder = None
    if free_count == MOST_FREE:  # what died with the recorder has taken the last place
        PyObject_Free(dead)
        Py_DECREF_pointer(kind)
        return
    FREE[free_count] = dead
    free_count += 1


cdef inline void note_death_on(ThreadTape tape, int64_t handle) noexcept:
    """Notes the death of a handle; 0 is none. Without memory for the note, the value lives as long as its session."""
    if handle != 0 and (tape.dead.count < tape.dead.room or has_grown(&tape.dead)):
        tape.add_death(handle)


cdef inline Recorded new_array(PyTypeObject* kind):
    global free_count
    cdef PyObject* made
    cdef Recorded result
    if kind == UNTRACKED and free_count:
        free_count -= 1
        made = FREE[free_count]
        _Py_NewReference(made)
        result = <Recorded>made
        Py_DECREF_object(made)  # of the two references, `result` is one
        return result
    # Array.__new__ refuses every call, so the constructor of the base class is called.
    return <Recorded>(<PyTypeObject*>Recorded).tp_new(<type>kind, <PyObject*>NO_ARGUMENTS, NULL)


def recorded_of_handle(type kind, ThreadTape recorder not None, int64_t handle, spec):
    """Makes a new object of class `kind` for a handle."""
    result = recorded_without_handle(kind, recorder, spec)
    (<Recorded>result)._handle = handle
    return result


def recorded_without_handle(type kind, ThreadTape recorder not None, spec):
    """Makes a new object for a value that gets its handle later. If the object dies before, no death is reported."""
    if not issubclass(kind, Recorded):
        raise TypeError(f"{kind} is no class of recorded values")
    cdef Recorded result = new_array(<PyTypeObject*>kind)
    result._spec = spec
    result._recorder = recorder
    return result
