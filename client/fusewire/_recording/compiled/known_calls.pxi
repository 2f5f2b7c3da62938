# Calls that have recorded one op before and are recorded again without running their function.

cdef enum:
    MOST_WORDS = 32
    MOST_ARRAYS = 8
    MOST_KEPT = 8
    RECENT_CALLS = 256
    MOST_CALLS = 4096  # of one tape, such as `x[i]` in a loop that goes through a sequence

cdef enum:  # begins the words of an argument
    IS_NONE = 1
    IS_TRUE
    IS_FALSE
    IS_ELLIPSIS
    IS_INTEGER
    IS_FLOAT
    IS_NUMPYS_INTEGER
    IS_OBJECT
    IS_ARRAY
    IS_TUPLE
    IS_LIST
    IS_SLICE
    IS_NAMED

cdef struct Call:
    uint64_t words[MOST_WORDS]  # equal if the calls are equal but for the arrays, which have equal specs
    int count
    PyObject* arrays[MOST_ARRAYS]
    int array_count
    PyObject* kept[MOST_KEPT]  # objects whose addresses are among the words
    int kept_count
    PyObject* tape  # of all arrays; NULL without arrays
    bint has_float

cdef PyTypeObject* DTYPE = <PyTypeObject*>DType
cdef PyTypeObject* NUMPYS_INTEGER = <PyTypeObject*>integer


cdef class KnownRecord:
    """The record of a call, but for the handles of the arrays."""

    cdef bytes words
    cdef tuple kept
    cdef int64_t signature
    cdef object spec
    cdef tuple values
    cdef int operands[MOST_ARRAYS]  # which array of the call each is
    cdef int operand_count


@cython.final
cdef class DirectCall:
    """A function in C to which Python passes arguments without a tuple, in place of the Python function `slow`."""

    cdef void* vectorcall
    cdef object slow
    cdef object rest
    cdef BinaryOp op
    cdef dict __dict__
    cdef object __weakref__

    def __get__(self, instance, _owner):
        return self if instance is None else PyMethod_New(self, instance)

    def __call__(self, *given, **named):
        return self.slow(*given, **named)

    def __reduce__(self):
        return self.__qualname__

    def __repr__(self):
        return f"<function {self.__module__}.{self.__qualname__}>"


cdef void let_python_call_directly(DirectCall made) noexcept:
    """Lets Python use the field `vectorcall` of objects such as `made`, and pass a method's object as an argument."""
    cdef PyTypeObject* kind = <PyTypeObject*>DirectCall
    kind.tp_vectorcall_offset = <char*>&made.vectorcall - <char*><PyObject*>made
    kind.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR
    PyType_Modified(DirectCall)


let_python_call_directly(DirectCall())


cdef DirectCall direct_call(object slow, void* vectorcall):
    cdef DirectCall made = DirectCall()
    made.slow, made.vectorcall = slow, vectorcall
    update_wrapper(made, slow)
    return made


cdef uint64_t reads = 0  # of values, by all threads


def note_read():
    """Is called when a value is read: what a function then records may follow from the value."""
    global reads
    reads += 1


def known_call(slow):
    """Returns a function that does what `slow` does, but repeats what `slow` has recorded for the same arguments.

    A call is known once `slow` has recorded one op for it, of arrays among its arguments, and has returned the result.
    All else in the op must follow from the other arguments and the specs of the arrays; so a call that has read a value
    is not known. It is found by its plain arguments: None, booleans, numbers, `...`, dtypes, types, names, and tuples,
    lists and slices of these. One with floats is known if it comes again soon, because floats may be others each time.
    Other arguments, and arrays of another thread or a user's class, are left to `slow`. So is every call in the body of
    a loop or function. A call without arrays is one of the default session.
    """
    return direct_call(slow, <void*>call_known)


cdef PyObject* call_known(PyObject* function, PyObject** given, size_t flags, PyObject* names) except NULL:
    cdef Call call
    cdef PyObject* slow = <PyObject*>(<DirectCall>function).slow
    if not is_plain_call(function, given, PyVectorcall_NARGS(flags), names, &call):
        return PyObject_Vectorcall(slow, given, flags, names)
    cdef bint is_creation = call.tape == NULL
    if is_creation:
        call.tape = default_tape()
    if call.tape == NULL:
        return noting_tape(slow, given, flags, names)
    cdef ThreadTape tape = <ThreadTape>call.tape
    if tape.thread != PyThread_get_thread_ident() or tape.is_in_body:
        return PyObject_Vectorcall(slow, given, flags, names)
    cdef int64_t number = tape.first + tape.starts.count
    cdef uint64_t mixed = mixed_words(&call)
    cdef KnownRecord known = find_call(tape, &call, mixed)
    # A default session that has ended has a message of its own, which the function gives.
    cdef Recorded recorded
    if known is not None and not (is_creation and number >= tape.checkpoint):
        recorded = record_again(known, tape, &call)
        return Py_NewRef(<PyObject*>recorded)
    cdef uint64_t reads_before = reads
    cdef PyObject* result = PyObject_Vectorcall(slow, given, flags, names)
    if result != NULL and known is None and Py_TYPE_of(result) == UNTRACKED and reads == reads_before and \
            comes_again(tape, &call, mixed):
        recorded = <Recorded>result
        Py_DECREF_object(result)  # of the two references, `recorded` is one
        learn_call(function, given, PyVectorcall_NARGS(flags), names, &call, tape, number, recorded)
        return Py_NewRef(result)
    return result


cdef bint is_plain_call(PyObject* function, PyObject** given, Py_ssize_t count, PyObject* names, Call* call) noexcept:
    """Describes a call. Returns False if an argument is not plain, or if there are too many."""
    cdef Py_ssize_t place
    call.words[0] = <uintptr_t>function
    call.kept[0] = function
    call.count = call.kept_count = 1
    call.array_count = 0
    call.has_float = False
    call.tape = NULL
    for place in range(count):
        if not is_plain(given[place], call):
            return False
    if names != NULL:
        for place in range(PyTuple_GET_SIZE(names)):
            if not (has_word(call, IS_NAMED) and is_plain(PyTuple_GET_ITEM(names, place), call)):
                return False
            if not is_plain(given[count + place], call):
                return False
    return True


cdef inline bint has_word(Call* call, uint64_t word) noexcept:
    """Adds a word if there is room for it."""
    if call.count == MOST_WORDS:
        return False
    call.words[call.count] = word
    call.count += 1
    return True


cdef bint is_plain(PyObject* value, Call* call) noexcept:
    """Adds the words of an argument. Returns False if it is not plain, or if there is no room for them."""
    cdef PyTypeObject* kind = Py_TYPE_of(value)
    if kind == UNTRACKED:
        return is_array_of_tape(<Recorded>value, value, call)
    if value == Py_None:
        return has_word(call, IS_NONE)
    if kind == &PyLong_Type:
        return is_integer(value, IS_INTEGER, call)
    if kind == &PyTuple_Type:
        return are_plain(value, IS_TUPLE, PyTuple_GET_SIZE(value), call)
    if kind == &PySlice_Type:
        return has_word(call, IS_SLICE) and is_plain((<PySliceObject*>value).start, call) and \
            is_plain((<PySliceObject*>value).stop, call) and is_plain((<PySliceObject*>value).step, call)
    if value == Py_True or value == Py_False:
        return has_word(call, IS_TRUE if value == Py_True else IS_FALSE)
    if kind == DTYPE or kind == &PyType_Type or (kind == &PyUnicode_Type and PyUnicode_CHECK_INTERNED(value)):
        return is_kept(value, call)
    if kind == &PyFloat_Type:
        return is_float(PyFloat_AS_DOUBLE(value), call)
    if value == Py_Ellipsis:
        return has_word(call, IS_ELLIPSIS)
    if kind == &PyList_Type:
        return are_plain(value, IS_LIST, PyList_GET_SIZE(value), call)
    return PyObject_TypeCheck(value, NUMPYS_INTEGER) and is_numpys_integer(value, call)


cdef inline bint is_array_of_tape(Recorded array, PyObject* value, Call* call) noexcept:
    cdef PyObject* tape = <PyObject*>array._recorder
    if call.tape != NULL and call.tape != tape or call.array_count == MOST_ARRAYS or tape == Py_None:
        return False
    call.tape = tape
    call.arrays[call.array_count] = value
    call.array_count += 1
    return has_word(call, IS_ARRAY) and has_word(call, <uintptr_t><PyObject*>array._spec)


cdef inline bint is_integer(PyObject* value, uint64_t tag, Call* call) noexcept:
    cdef int overflow = 0
    cdef long long integer = PyLong_AsLongLongAndOverflow(value, &overflow)
    return not overflow and has_word(call, tag) and has_word(call, <uint64_t>integer)


cdef inline bint is_float(double number, Call* call) noexcept:
    cdef uint64_t bits
    memcpy(&bits, &number, sizeof(bits))
    call.has_float = True
    return has_word(call, IS_FLOAT) and has_word(call, bits)


cdef bint is_numpys_integer(PyObject* value, Call* call) noexcept:
    """Adds the words of an integer of NumPy, whose type is not that of Python's and may give an op another dtype."""
    try:
        number = (<object>value).__index__()
    except TypeError:  # of a time difference, which NumPy counts among the integers
        return False
    return is_kept(<PyObject*>Py_TYPE_of(value), call) and is_integer(<PyObject*>number, IS_NUMPYS_INTEGER, call)


cdef inline bint is_kept(PyObject* value, Call* call) noexcept:
    if call.kept_count == MOST_KEPT:
        return False
    call.kept[call.kept_count] = value
    call.kept_count += 1
    return has_word(call, IS_OBJECT) and has_word(call, <uintptr_t>value)


cdef bint are_plain(PyObject* items, uint64_t tag, Py_ssize_t count, Call* call) noexcept:
    cdef Py_ssize_t place
    if not (has_word(call, tag) and has_word(call, count)):
        return False
    for place in range(count):
        if not is_plain(PyTuple_GET_ITEM(items, place) if tag == IS_TUPLE else PyList_GET_ITEM(items, place), call):
            return False
    return True


cdef inline uint64_t mixed_words(Call* call) noexcept:
    """Returns a hash of a call."""
    cdef uint64_t mixed = call.count
    cdef int place
    for place in range(call.count):
        mixed = (mixed ^ call.words[place]) * <uint64_t>0x9E3779B97F4A7C15
        mixed ^= mixed >> 32
    return mixed


cdef KnownRecord find_call(ThreadTape tape, Call* call, uint64_t mixed):
    cdef RecentCall* recent
    if tape.recent_calls == NULL:
        return None
    recent = &tape.recent_calls[mixed & (RECENT_CALLS - 1)]
    if recent.known != NULL and has_words(<KnownRecord>recent.known, call):
        return <KnownRecord>recent.known
    found = tape.known_calls.get(words_of(call))
    if found is not None:
        recent.known = <PyObject*>found
    return found


cdef bint comes_again(ThreadTape tape, Call* call, uint64_t mixed) except -1:
    """Returns whether a call is worth keeping: one with floats is if the last such one at its place was the same."""
    cdef RecentCall* recent
    if tape.recent_calls == NULL:
        tape.recent_calls = <RecentCall*>calloc(RECENT_CALLS, sizeof(RecentCall))
        if tape.recent_calls == NULL:
            raise MemoryError()
    recent = &tape.recent_calls[mixed & (RECENT_CALLS - 1)]
    if not call.has_float or recent.last_with_float == mixed:
        return True
    recent.last_with_float = mixed
    return False


cdef inline bytes words_of(Call* call):
    return PyBytes_FromStringAndSize(<char*>call.words, call.count * sizeof(uint64_t))


cdef inline bint has_words(KnownRecord known, Call* call) noexcept:
    cdef Py_ssize_t length = call.count * sizeof(uint64_t)
    return PyBytes_GET_SIZE(known.words) == length and not memcmp(PyBytes_AS_STRING(known.words), call.words, length)


cdef Recorded record_again(KnownRecord known, ThreadTape tape, Call* call):
    cdef Py_ssize_t place, count = 1 + known.operand_count + len(known.values)
    cdef Recorded result = new_array(UNTRACKED)
    cdef int64_t* items
    tape.make_room_for_record(count)
    items = tape.integers.items + tape.integers.count
    items[0] = known.signature
    items += 1
    for place in range(known.operand_count):
        items[place] = (<Recorded>call.arrays[known.operands[place]])._handle
    items += known.operand_count
    for place in range(len(known.values)):
        items[place] = tape.keep_value(known.values[place])
    operands = None if tape.notes is None else tuple([<object>call.arrays[place] for place in range(call.array_count)])
    return finish(result, tape, count, known.spec, operands, None)


cdef int learn_call(
    PyObject* function,
    PyObject** given,
    Py_ssize_t count,
    PyObject* names,
    Call* called,
    ThreadTape tape,
    int64_t number,
    Recorded result,
) except -1:
    """Keeps the record of a call if its function has recorded op `number` alone, of the call's arrays and constants."""
    cdef Call call  # described anew: the function may have changed a list
    cdef KnownRecord known
    if result._handle != number or result._recorder is not tape or tape.first + tape.starts.count != number + 1:
        return 0
    if number < tape.first or not is_plain_call(function, given, count, names, &call) or call.count != called.count:
        return 0
    if memcmp(call.words, called.words, call.count * sizeof(uint64_t)):
        return 0
    known = KnownRecord()
    if not has_record(known, &call, tape, number, result):
        return 0
    known.words = words_of(&call)
    known.kept = tuple([<object>call.kept[place] for place in range(call.kept_count)])
    if len(tape.known_calls) >= MOST_CALLS:
        memset(tape.recent_calls, 0, RECENT_CALLS * sizeof(RecentCall))
        tape.known_calls = {}
    tape.known_calls.setdefault(known.words, known)
    return 0


cdef bint has_record(KnownRecord known, Call* call, ThreadTape tape, int64_t number, Recorded result) except -1:
    """Takes over the record of op `number`, the last one. Returns False if another call may have another record."""
    cdef Py_ssize_t place, first = tape.place_of(number)
    cdef int64_t* items = tape.integers.items + first
    cdef list values = []
    known.operand_count = 0
    for place in range(1, tape.integers.count - first):
        if items[place] < 0:
            value = tape.values[-1 - items[place] - tape.first_value]
            if type(value) is not int and type(value) is not float and type(value) is not bool:
                return False
            values.append(value)
        elif values or known.operand_count == MOST_ARRAYS:
            return False
        else:
            known.operands[known.operand_count] = array_of_handle(call, items[place], result)
            if known.operands[known.operand_count] < 0:
                return False
            known.operand_count += 1
    known.signature, known.spec, known.values = items[0], result._spec, tuple(values)
    return True


cdef int array_of_handle(Call* call, int64_t handle, Recorded result) noexcept:
    """Returns which array of a call has a handle; −1 if none or several have, or if the result is one of them."""
    cdef int place, found = -1
    for place in range(call.array_count):
        if call.arrays[place] == <PyObject*>result:
            return -1
        if (<Recorded>call.arrays[place])._handle == handle:
            if found >= 0:
                return -1
            found = place
    return found
