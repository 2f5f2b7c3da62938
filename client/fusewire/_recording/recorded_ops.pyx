# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Records ops: the tape of a thread, the objects of results, and the functions that operators call.

No Python code runs from the moment when an op's operands are read until its record is on the tape and its result is
complete. So no finaliser, no signal handler and no other thread ever sees half an op. What may run Python code comes
before: the rules for new specs, and the conversion of a scalar. The op's place and the checkpoint come behind.

Arrays are not tracked by the garbage collector, which would cost a third of the time of an op. An array refers to its
recorder and its spec alone, so it is part of a cycle only if the user stores it in an attribute of its own session.
Python frees such a session only after the user has deleted the attribute.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uintptr_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memmove, memset

from numpy import empty, int64, integer

from fusewire._recording.op_rules import known_items, known_ops, learn, learn_beside
from fusewire._recording.pinned_handles import ForeignHandles
from fusewire._recording.places import INTERNAL, NOT_KNOWN, OPS_WITH_PLACES, places

# Py_INCREF of Python 3.12 and 3.13 stores half a word, and Py_DECREF loads all of it. If it does so within a few
# nanoseconds, the processor waits until the store has reached its cache. An op counts a dozen references up and down.
cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000 && \\
        !defined(Py_GIL_DISABLED) && !defined(Py_REF_DEBUG)
    static inline void fw_count_up(PyObject *object) { Py_SET_REFCNT(object, Py_REFCNT(object) + 1); }
    #undef Py_INCREF
    #define Py_INCREF(object) fw_count_up((PyObject *)(object))
    #endif
    """

cdef extern from "Python.h":
    ctypedef struct PyNumberMethods:
        void* nb_add
        void* nb_subtract
        void* nb_multiply
        void* nb_true_divide
        void* nb_floor_divide
        void* nb_remainder
        void* nb_matrix_multiply
        void* nb_and
        void* nb_or
        void* nb_xor
        void* nb_lshift
        void* nb_rshift

    ctypedef struct PyTypeObject:
        PyNumberMethods* tp_as_number
        Py_ssize_t tp_basicsize, tp_weaklistoffset
        unsigned long tp_flags
        void* tp_traverse
        void* tp_clear
        PyObject* (*tp_alloc)(PyTypeObject*, Py_ssize_t) noexcept
        void (*tp_free)(void*) noexcept
        void (*tp_dealloc)(PyObject*) noexcept
        object (*tp_new)(type, PyObject*, PyObject*)
    unsigned long Py_TPFLAGS_HAVE_GC
    PyTypeObject* Py_TYPE(object value)
    PyTypeObject* Py_TYPE_of "Py_TYPE"(PyObject* value)
    void Py_DECREF_pointer "Py_DECREF"(PyTypeObject* value)
    void Py_DECREF_object "Py_DECREF"(PyObject* value)
    void _Py_NewReference(PyObject* value)
    void PyObject_ClearWeakRefs(PyObject* value)
    void PyType_Modified(type kind)
    PyObject* PyObject_Init(PyObject* memory, PyTypeObject* kind)
    PyObject* PyErr_NoMemory()
    void* PyObject_Malloc(size_t size)
    void PyObject_Free(void* memory) noexcept
    unsigned long PyThread_get_thread_ident()
    ctypedef struct PyFrameObject
    ctypedef struct PyCodeObject
    ctypedef struct PyThreadState
    PyThreadState* PyThreadState_Get()
    PyFrameObject* PyThreadState_GetFrame(PyThreadState* thread)
    PyCodeObject* PyFrame_GetCode(PyFrameObject* frame)
    PyFrameObject* PyFrame_GetBack(PyFrameObject* frame)
    int PyFrame_GetLasti(PyFrameObject* frame)


# ---- places ----

cdef enum:
    AT_HAND = 256
    KEPT_PLACES = 1 << 16
    NO_PLACE = 0
    INTERNAL_PLACE = -1

assert (KEPT_PLACES, NO_PLACE, INTERNAL_PLACE) == (OPS_WITH_PLACES, NOT_KNOWN, INTERNAL)

cdef struct Place:  # see `places`, which keeps the code alive until its generation changes
    PyCodeObject* code
    int offset_bytes
    int32_t number
    int64_t generation

cdef Place PLACES[AT_HAND]
cdef int64_t generation = places.generation


cdef int32_t place_here() except? -2:
    """Returns the number of the innermost place in the user's code, or NO_PLACE. May run Python code."""
    cdef PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get())
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
    cdef uintptr_t mixed = (<uintptr_t>code >> 4) * 31 + (<uintptr_t>offset_bytes >> 1)
    cdef Place* place = &PLACES[(mixed ^ (mixed >> 8)) & (AT_HAND - 1)]
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


# ---- the tape ----

cdef struct Numbers:  # an array that grows
    int64_t* items
    Py_ssize_t count
    Py_ssize_t room


cdef bint has_grown(Numbers* numbers, Py_ssize_t more=1) noexcept:
    """Makes room for more items. Returns False if there is no memory."""
    cdef Py_ssize_t room = max(2 * numbers.room, numbers.count + more, 1024)
    cdef int64_t* items = <int64_t*>realloc(numbers.items, room * sizeof(int64_t))
    if items == NULL:
        return False
    numbers.items = items
    numbers.room = room
    return True


cdef inline int make_room(Numbers* numbers, Py_ssize_t more) except -1:
    if numbers.count + more > numbers.room and not has_grown(numbers, more):
        raise MemoryError()
    return 0


cdef void drop_first(Numbers* numbers, Py_ssize_t count) noexcept:
    numbers.count -= count
    memmove(numbers.items, numbers.items + count, numbers.count * sizeof(int64_t))


cdef int fill(object array, const int64_t* items, Py_ssize_t count) except -1:
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_WRITABLE)
    memcpy(view.buf, items, count * sizeof(int64_t))
    PyBuffer_Release(&view)
    return 0


cdef class ThreadTape:
    """The ops that one thread has recorded, and the deaths of their results. `Recorder` inherits from it.

    The owning thread records and trims, any thread reads, and finalisers of any thread report deaths. The methods
    `trim` and `take_deaths` are called by the holder of the recorder's lock. An inheritor has `on_checkpoint`, which is
    called when an op is on the tape and its result exists, if the op's number is `checkpoint` or more.
    """

    cdef readonly unsigned long thread
    cdef public int64_t checkpoint
    cdef public object foreign
    cdef int64_t first  # the number of the first record
    cdef int64_t first_value  # the index of the first value
    cdef Numbers integers  # the records, one behind the other
    cdef Numbers starts  # the index in `integers` with which each record begins
    cdef Numbers dead
    cdef list values
    cdef int64_t origin  # the number of the first op of all
    cdef int32_t* op_places  # of the last KEPT_PLACES ops, by the distance of their number from `origin` modulo these
    cdef Py_ssize_t op_places_room

    def __init__(self, unsigned long thread, int64_t first, int64_t checkpoint):
        self.thread = thread
        self.first = self.origin = first
        self.checkpoint = checkpoint
        self.values = []
        self.foreign = ForeignHandles()

    def __dealloc__(self):
        free(self.integers.items)
        free(self.starts.items)
        free(self.dead.items)
        free(self.op_places)

    @property
    def next_number(self):
        """Returns the number of the next op."""
        return self.first + self.starts.count

    @property
    def records_kept(self):
        """Returns how many ops are on the tape. Sent ops are dropped from it now and then."""
        return self.starts.count

    @property
    def deaths(self):
        """Returns how many handles of dead objects wait to be taken."""
        return self.dead.count

    def between(self, int64_t first, int64_t end):
        """Returns the records of the ops numbered first..end−1, one behind the other (see `tape`).

        Raises IndexError if not all of them are on the tape.
        """
        if not self.first <= first <= end <= self.first + self.starts.count:
            raise IndexError(f"ops {first} to {end} are not all on the tape")
        array = empty(self.place_of(end) - self.place_of(first), int64)
        # The allocation may have run a finaliser that recorded, which may have moved the tape.
        fill(array, self.integers.items + self.place_of(first), self.place_of(end) - self.place_of(first))
        return array

    @cython.boundscheck(True)
    def values_of(self, flat):
        """Returns the values to which the negative integers of `flat` refer, in order. `flat` holds unsent records."""
        cdef Py_buffer view
        cdef Py_ssize_t place
        cdef int64_t* items
        found = []
        if not self.values:
            return found
        PyObject_GetBuffer(flat, &view, PyBUF_SIMPLE)
        items = <int64_t*>view.buf
        try:
            for place in range(view.len // <Py_ssize_t>sizeof(int64_t)):
                if items[place] < 0:
                    found.append(self.values[-1 - items[place] - self.first_value])
        finally:
            PyBuffer_Release(&view)
        return found

    def note_death(self, int64_t handle):
        """Notes that no object has `handle` any more."""
        make_room(&self.dead, 1)
        self.add_death(handle)

    def take_deaths(self, Py_ssize_t count):
        """Removes the first `count` handles of dead objects, and returns them. Raises IndexError if there are fewer."""
        array = empty(count, int64)
        if not 0 <= count <= self.dead.count:
            raise IndexError(f"{count} of {self.dead.count} deaths")
        fill(array, self.dead.items, count)
        drop_first(&self.dead, count)
        return array

    def trim(self, int64_t first, int64_t unsent):
        """Drops the records of ops before number `first`, and the values of ops before number `unsent`.

        Called in the owning thread.
        """
        cdef Py_ssize_t place, records = first - self.first, dropped
        cdef int64_t least_value = self.first_value + len(self.values)
        if not 0 < records <= self.starts.count:
            return
        for place in range(self.place_of(unsent), self.integers.count):
            if self.integers.items[place] < 0:
                least_value = min(least_value, -1 - self.integers.items[place])
        dropped = self.place_of(first)
        drop_first(&self.integers, dropped)
        drop_first(&self.starts, records)
        for place in range(self.starts.count):
            self.starts.items[place] -= dropped
        self.first = first
        del self.values[:least_value - self.first_value]
        self.first_value = least_value

    def pass_over(self, int64_t ops):
        """Drops all records and values. The number of the next op grows by `ops`. Called in the owning thread."""
        cdef int64_t number = self.first + self.starts.count, place
        for place in range(max(0, ops - KEPT_PLACES), ops):
            self.put_place(number + place, NO_PLACE)
        self.first += self.starts.count + ops
        self.integers.count = self.starts.count = 0
        self.first_value += len(self.values)
        self.values = []

    def place_of_op(self, int64_t number):
        """Returns the number of the place that recorded op `number`, or NOT_KNOWN, as for all but the last ops."""
        cdef int64_t next_number = self.first + self.starts.count
        cdef Py_ssize_t index = (number - self.origin) % KEPT_PLACES
        is_kept = max(self.origin, next_number - KEPT_PLACES) <= number < next_number and index < self.op_places_room
        return self.op_places[index] if is_kept else NO_PLACE

    def put_places(self, int64_t first, numbers):
        """Notes the places of ops that are numbered from `first` on."""
        cdef int32_t number
        for index, each in enumerate(numbers):
            number = each
            self.put_place(first + index, number)

    cdef inline void put_place(self, int64_t number, int32_t place) noexcept:
        """Without memory for it, the place is not known."""
        cdef Py_ssize_t index = (number - self.origin) % KEPT_PLACES
        if index < self.op_places_room or self.has_room_for_place(index):
            self.op_places[index] = place

    cdef bint has_room_for_place(self, Py_ssize_t index) noexcept:
        cdef Py_ssize_t room = min(max(2 * self.op_places_room, index + 1, 1024), KEPT_PLACES)
        cdef int32_t* items = <int32_t*>realloc(self.op_places, room * sizeof(int32_t))
        if items == NULL:
            return False
        memset(items + self.op_places_room, NO_PLACE, (room - self.op_places_room) * sizeof(int32_t))
        self.op_places = items
        self.op_places_room = room
        return True

    cdef inline Py_ssize_t place_of(self, int64_t number) noexcept:
        cdef Py_ssize_t record = number - self.first
        return self.starts.items[record] if record < self.starts.count else self.integers.count

    cdef inline void add_death(self, int64_t handle) noexcept:
        self.dead.items[self.dead.count] = handle
        self.dead.count += 1

    cdef inline int make_room_for_record(self, Py_ssize_t integers) except -1:
        make_room(&self.integers, integers)
        make_room(&self.starts, 1)
        return 0

    cdef inline int64_t end_record(self, Py_ssize_t integers) noexcept:
        """Makes a record of the next integers, for which there is room. Returns the number of the op."""
        self.starts.items[self.starts.count] = self.integers.count
        self.integers.count += integers
        self.starts.count += 1
        return self.first + self.starts.count - 1

    cdef inline int64_t keep_value(self, object value) except 0:
        """Returns the operand that refers to a new value."""
        self.values.append(value)
        return -self.first_value - len(self.values)


# ---- arrays ----

cdef tuple NO_ARGUMENTS = ()


@cython.no_gc
@cython.c_api_binop_methods(True)
cdef class Recorded:
    """A value of a session, named by its handle. When the object is deleted, its recorder is told that the handle died.

    The class is not called: `adopt` and the functions that record make objects.
    """

    cdef public ThreadTape _recorder
    cdef public int64_t _handle  # 0 until the value has a handle
    cdef public object _spec
    cdef object __weakref__

    def __dealloc__(self):
        if self._recorder is not None:
            note_death_on(self._recorder, self._handle)

    def __add__(left, right): return record_operator(ADD, RADD, left, right)
    def __sub__(left, right): return record_operator(SUBTRACT, RSUBTRACT, left, right)
    def __mul__(left, right): return record_operator(MULTIPLY, RMULTIPLY, left, right)
    def __truediv__(left, right): return record_operator(DIVIDE, RDIVIDE, left, right)
    def __floordiv__(left, right): return record_operator(FLOOR_DIVIDE, RFLOOR_DIVIDE, left, right)
    def __mod__(left, right): return record_operator(REMAINDER, RREMAINDER, left, right)
    def __pow__(left, right, modulo):
        return record_operator(POWER, RPOWER, left, right) if modulo is None else NotImplemented
    def __matmul__(left, right): return record_operator(MATMUL, RMATMUL, left, right)
    def __and__(left, right): return record_operator(AND, RAND, left, right)
    def __or__(left, right): return record_operator(OR, ROR, left, right)
    def __xor__(left, right): return record_operator(XOR, RXOR, left, right)
    def __lshift__(left, right): return record_operator(LEFT_SHIFT, RLEFT_SHIFT, left, right)
    def __rshift__(left, right): return record_operator(RIGHT_SHIFT, RRIGHT_SHIFT, left, right)
    def __lt__(self, other): return record_binary(LESS, self, other)
    def __le__(self, other): return record_binary(LESS_EQUAL, self, other)
    def __gt__(self, other): return record_binary(GREATER, self, other)
    def __ge__(self, other): return record_binary(GREATER_EQUAL, self, other)
    def __eq__(self, other): return record_binary(EQUAL, self, other)
    def __ne__(self, other): return record_binary(NOT_EQUAL, self, other)
    def __neg__(self): return record_unary(NEGATIVE, self)
    def __abs__(self): return record_unary(ABS, self)
    def __invert__(self): return record_unary(INVERT, self)


# ---- allocation ----

cdef enum:
    MOST_FREE = 256

cdef PyObject* FREE[MOST_FREE]  # dead objects of class LIGHT
cdef Py_ssize_t free_count = 0
cdef PyTypeObject* LIGHT = NULL


def light(type kind):
    """Makes `kind`, the Python class of arrays, as cheap to allocate as a class of C. Returns `kind`.

    Python tracks each object of a class that was made in Python with its garbage collector, gives its memory back when
    it dies, and looks up its operators by name. `kind` has no fields of its own, so its objects need no tracking, and
    their memory is used again. Subclasses of `kind` are treated by Python as usual.
    """
    global LIGHT
    cdef PyTypeObject* made = <PyTypeObject*>kind
    if made.tp_basicsize != (<PyTypeObject*>Recorded).tp_basicsize:
        raise TypeError(f"{kind} has fields of its own")
    if LIGHT != NULL:  # the module of the class was imported anew
        return kind
    take_operators(made.tp_as_number, (<PyTypeObject*>Recorded).tp_as_number)
    made.tp_flags &= ~Py_TPFLAGS_HAVE_GC
    made.tp_traverse, made.tp_clear = NULL, NULL
    made.tp_alloc, made.tp_free, made.tp_dealloc = allocate_light, PyObject_Free, deallocate
    PyType_Modified(kind)
    LIGHT = made
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


cdef PyObject* allocate_light(PyTypeObject* kind, Py_ssize_t _items) noexcept:
    cdef PyObject* made = <PyObject*>PyObject_Malloc(kind.tp_basicsize)
    if made == NULL:
        return PyErr_NoMemory()
    memset(made, 0, kind.tp_basicsize)
    return PyObject_Init(made, kind)


cdef void deallocate(PyObject* dead) noexcept:
    """Is the destructor of LIGHT. A subclass made in Python calls it too, and expects it to release the subclass."""
    global free_count
    cdef PyTypeObject* kind = Py_TYPE_of(dead)
    if kind != LIGHT or free_count == MOST_FREE:
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
    if kind == LIGHT and free_count:
        free_count -= 1
        made = FREE[free_count]
        _Py_NewReference(made)
        result = <Recorded>made
        Py_DECREF_object(made)  # of the two references, `result` is one
        return result
    # Array.__new__ refuses every call, so the constructor of the base class is called.
    return <Recorded>(<PyTypeObject*>Recorded).tp_new(<type>kind, <PyObject*>NO_ARGUMENTS, NULL)


def adopt(type kind, ThreadTape recorder not None, int64_t handle, spec):
    """Makes a new object of class `kind` for a handle."""
    result = adopt_without_handle(kind, recorder, spec)
    (<Recorded>result)._handle = handle
    return result


def adopt_without_handle(type kind, ThreadTape recorder not None, spec):
    """Makes a new object for a value that gets its handle later. If the object dies before, no death is reported."""
    if not issubclass(kind, Recorded):
        raise TypeError(f"{kind} is no class of recorded values")
    cdef Recorded result = new_array(<PyTypeObject*>kind)
    result._spec = spec
    result._recorder = recorder
    return result


cdef inline Recorded finish(Recorded result, ThreadTape tape, Py_ssize_t integers, object spec):
    """Ends the record, and completes its result."""
    cdef int64_t number = tape.end_record(integers)
    result._handle = number
    result._spec = spec
    result._recorder = tape
    tape.put_place(number, NO_PLACE)  # not that of an older op, if what follows raises
    tape.put_place(number, place_here())
    if number >= tape.checkpoint:
        (<object>tape).on_checkpoint(number)
    return result


def record(type kind, ThreadTape recorder not None, signature, handles, values):
    """Records an op, and returns an object of class `kind` for its result. Called in the recorder's own thread."""
    cdef Recorded result = adopt_without_handle(kind, recorder, signature.result)
    cdef int64_t number = signature.number, operand
    cdef Py_ssize_t place, count = 1 + len(handles) + len(values)
    cdef tuple listed = tuple(handles)
    cdef tuple listed_values = tuple(values)
    recorder.make_room_for_record(count)
    cdef int64_t* items = recorder.integers.items + recorder.integers.count
    items[0] = number
    for place in range(len(listed)):
        operand = listed[place]
        items[1 + place] = operand
    for place in range(len(listed_values)):
        items[1 + len(listed) + place] = recorder.keep_value(listed_values[place])
    return finish(result, recorder, count, signature.result)


cdef dict KNOWN_ITEMS = known_items, KNOWN_OPS = known_ops


def record_known(op, operands, attributes, starts=()):
    """Records an op of arrays of this thread and scalars if `known_ops` has it. Returns None if it does not.

    Also returns None for any other operands, and for a scalar that the dtype cannot hold.
    """
    cdef tuple given = tuple(operands), listed_starts = tuple(starts)
    cdef list kinds = [], values = []
    cdef ThreadTape tape = None
    cdef Recorded result
    cdef PyTypeObject* kind = NULL
    cdef int64_t* items
    for each in given:
        if not isinstance(each, Recorded):
            kinds.append(type(each))
            continue
        if kind == NULL:
            kind, tape = Py_TYPE(each), (<Recorded>each)._recorder
            if tape is None or tape.thread != PyThread_get_thread_ident():
                return None
        elif (<Recorded>each)._recorder is not tape:
            return None
        kinds.append((<Recorded>each)._spec)
    found = None if tape is None else KNOWN_OPS.get((op, attributes, tuple(kinds)))
    if found is None:
        return None
    scalars = iter(found[2])
    try:
        for each in given:
            if not isinstance(each, Recorded):
                values.append(next(scalars)(each))
    except OverflowError:
        return None
    cdef int64_t number = found[0]
    result = new_array(kind)
    tape.make_room_for_record(1 + len(given) + len(listed_starts))
    items = tape.integers.items + tape.integers.count
    items[0] = number
    items += 1
    for each in given:
        if isinstance(each, Recorded):
            items[0] = (<Recorded>each)._handle
            items += 1
    for value in values:
        items[0] = tape.keep_value(value)
        items += 1
    for value in listed_starts:
        items[0] = tape.keep_value(value)
        items += 1
    return finish(result, tape, 1 + len(given) + len(listed_starts), found[1])


cdef inline object named_part(object part):
    """Returns a part of a key as its name holds it, or `slice` for a part that has no name."""
    if type(part) is int or part is None or part is Ellipsis:
        return part
    return int(part) if isinstance(part, integer) else slice


def name_of_key(key):
    """Returns the name of a key of integers, slices, `...` and None, which equal keys share, or None for other keys.

    The integers may be NumPy's.
    """
    cdef tuple items = key if type(key) is tuple else (key,)
    cdef list name = []
    for item in items:
        if type(item) is slice:
            start, stop, step = named_part(item.start), named_part(item.stop), named_part(item.step)
            if start is slice or stop is slice or step is slice:
                return None
            name.append(start)
            name.append(stop)
            name.append(step)
            name.append(slice)
            continue
        part = named_part(item)
        if part is slice:
            return None
        name.append(part)
    return tuple(name)


def record_item(Recorded x not None, key):
    """Records `x[key]` if `known_items` has it. Returns None if it does not, or for an array of another thread."""
    name = name_of_key(key)
    return None if name is None else record_named(x, name)


def record_call(Recorded x not None, str function, key):
    """Records a call of a function of one array, with `key` as its other argument, if `known_items` has it.

    Returns None if it does not, or for an array of another thread. The argument is an integer, None, or a tuple of
    integers: a shape or axes.
    """
    name = name_of_call(function, key)
    return None if name is None else record_named(x, name)


def name_of_call(str function, key):
    """Returns the name of a call, which equal calls share, or None for an argument that is no such key.

    One item and a tuple of it are two arguments: they are one index, but one number has an axis 0 and no axes (0,).
    """
    name = name_of_key(key)
    return None if name is None else (function, type(key) is tuple, name)


cdef record_named(Recorded x, tuple name):
    cdef ThreadTape tape = x._recorder
    cdef tuple starts
    cdef Recorded result
    cdef int64_t* items
    if tape is None or tape.thread != PyThread_get_thread_ident():
        return None
    found = KNOWN_ITEMS.get((x._spec, name))
    if found is None:
        return None
    cdef int64_t number = found[0]
    starts = found[2]
    result = new_array(Py_TYPE(x))
    tape.make_room_for_record(2 + len(starts))
    items = tape.integers.items + tape.integers.count
    items[0] = number
    items[1] = x._handle
    items += 2
    for value in starts:
        items[0] = tape.keep_value(value)
        items += 1
    return finish(result, tape, 2 + len(starts), found[1])


# ---- what is known of an op ----

cdef enum:
    WAYS = 64

cdef struct Known:
    PyObject* left  # a spec
    PyObject* right  # a spec, or the type of a Python scalar
    int64_t signature
    PyObject* spec
    PyObject* canonical


cdef class BinaryOp:
    """An op of two operands.

    `table` holds what is known of the op beside the specs of its operands, at a place that follows from the addresses
    of the specs. Pairs that share a place push out each other, and are found again in `known`, a dict. Specs, which are
    interned, are never freed, and `known` keeps the rest, so that the table need not count references.
    """

    cdef object op, slow_path, checked
    cdef bint is_reflected
    cdef Known table[WAYS]
    cdef dict known

    def __cinit__(self):
        self.known = {}


cdef class UnaryOp:
    """An op of one array."""

    cdef object op, slow_path
    cdef Known table[WAYS]
    cdef dict known

    def __cinit__(self):
        self.known = {}


cdef inline Known* slot_of(Known* table, PyObject* left, PyObject* right) noexcept:
    cdef uintptr_t mixed = (<uintptr_t>left >> 4) * 31 + (<uintptr_t>right >> 4)
    return &table[(mixed ^ (mixed >> 6) ^ (mixed >> 12)) & (WAYS - 1)]


cdef Known learn_binary(BinaryOp op, object left, object right):
    found = op.known.get((left, right))
    if found is None:
        if isinstance(right, type):
            found = learn_beside(op.op, left, right, op.checked, is_reflected=op.is_reflected)
        else:
            found = (*learn(op.op, (left, right)), None)
        found = op.known.setdefault((left, right), found)
    return place_known(op.table, <PyObject*>left, <PyObject*>right, found)


cdef Known learn_unary(UnaryOp op, object spec):
    found = op.known.get(spec)
    if found is None:
        found = op.known.setdefault(spec, (*learn(op.op, (spec,)), None))
    return place_known(op.table, <PyObject*>spec, NULL, found)


cdef Known place_known(Known* table, PyObject* left, PyObject* right, object found):
    cdef Known known
    known.left, known.right = left, right
    known.signature = found[0]
    known.spec, known.canonical = <PyObject*>found[1], <PyObject*>found[2]
    slot_of(table, left, right)[0] = known
    return known


cdef inline object record_operator(BinaryOp op, BinaryOp reflected, object left, object right):
    """Python calls an operator's method with the operands in their order; either of them may be the array."""
    if Py_TYPE(left) == LIGHT or isinstance(left, Recorded):
        return record_binary(op, <Recorded>left, right)
    return record_binary(reflected, <Recorded>right, left)


cdef object record_binary(BinaryOp op, Recorded x, object other):
    cdef ThreadTape tape = x._recorder
    cdef PyObject* left = <PyObject*>x._spec
    cdef PyTypeObject* kind = Py_TYPE(x)
    cdef Known known
    cdef Known* slot
    cdef Recorded result
    cdef Recorded foreign = None
    cdef int64_t* items
    if Py_TYPE(other) != kind:
        if tape is None or tape.thread != PyThread_get_thread_ident():
            return op.slow_path(x, other)
        return record_beside(op, x, other)
    if (<Recorded>other)._recorder is not tape or tape is None or tape.thread != PyThread_get_thread_ident():
        tape = tape_of_either(x, <Recorded>other)
        if tape is None:
            return op.slow_path(x, other)
        foreign = <Recorded>other if x._recorder is tape else x
    slot = slot_of(op.table, left, <PyObject*>(<Recorded>other)._spec)
    if slot.left == left and slot.right == <PyObject*>(<Recorded>other)._spec:
        known = slot[0]
    else:
        known = learn_binary(op, x._spec, (<Recorded>other)._spec)
    result = new_array(kind)
    tape.make_room_for_record(3)
    # From here on, no Python code runs that might let the lock's holder replace these handles.
    if foreign is not None and tape.foreign.get(foreign._handle) is not foreign._recorder:
        return op.slow_path(x, other)
    items = tape.integers.items + tape.integers.count
    items[0] = known.signature
    items[1] = x._handle
    items[2] = (<Recorded>other)._handle
    return finish(result, tape, 3, <object>known.spec)


cdef ThreadTape tape_of_either(Recorded x, Recorded other):
    """Returns this thread's tape if one of the arrays is of this thread, else None."""
    cdef unsigned long thread = PyThread_get_thread_ident()
    if x._recorder is not None and x._recorder.thread == thread:
        return x._recorder
    return other._recorder if other._recorder is not None and other._recorder.thread == thread else None


cdef object record_beside(BinaryOp op, Recorded x, object other):
    """Records an op of an array of this thread and anything but an array of the same class."""
    cdef ThreadTape tape = x._recorder
    cdef PyObject* right = <PyObject*>Py_TYPE(other)
    cdef Known known
    cdef Known* slot
    cdef Recorded result
    cdef int64_t* items
    if type(other) is not float and type(other) is not int and type(other) is not bool:
        return op.slow_path(x, other)
    slot = slot_of(op.table, <PyObject*>x._spec, right)
    if slot.left == <PyObject*>x._spec and slot.right == right:
        known = slot[0]
    else:
        known = learn_binary(op, x._spec, type(other))
    if type(other) is float and <object>known.canonical is float:
        value = other
    else:
        try:
            value = (<object>known.canonical)(other)
        except OverflowError:
            value = None
        if value is None:
            return op.slow_path(x, other)
    result = new_array(Py_TYPE(x))
    tape.make_room_for_record(3)
    items = tape.integers.items + tape.integers.count
    items[0] = known.signature
    items[1] = x._handle
    items[2] = tape.keep_value(value)
    return finish(result, tape, 3, <object>known.spec)


cdef object record_unary(UnaryOp op, Recorded x):
    cdef ThreadTape tape = x._recorder
    cdef PyObject* spec = <PyObject*>x._spec
    cdef Known known
    cdef Known* slot
    cdef Recorded result
    cdef int64_t* items
    if tape is None or tape.thread != PyThread_get_thread_ident():
        return op.slow_path(x)
    slot = slot_of(op.table, spec, NULL)
    if slot.left == spec:
        known = slot[0]
    else:
        known = learn_unary(op, x._spec)
    result = new_array(Py_TYPE(x))
    tape.make_room_for_record(2)
    items = tape.integers.items + tape.integers.count
    items[0] = known.signature
    items[1] = x._handle
    return finish(result, tape, 2, <object>known.spec)


# ---- operators ----

cdef BinaryOp ADD = BinaryOp(), RADD = BinaryOp(), SUBTRACT = BinaryOp(), RSUBTRACT = BinaryOp()
cdef BinaryOp MULTIPLY = BinaryOp(), RMULTIPLY = BinaryOp(), DIVIDE = BinaryOp(), RDIVIDE = BinaryOp()
cdef BinaryOp FLOOR_DIVIDE = BinaryOp(), RFLOOR_DIVIDE = BinaryOp(), REMAINDER = BinaryOp(), RREMAINDER = BinaryOp()
cdef BinaryOp POWER = BinaryOp(), RPOWER = BinaryOp(), MATMUL = BinaryOp(), RMATMUL = BinaryOp()
cdef BinaryOp AND = BinaryOp(), RAND = BinaryOp(), OR = BinaryOp(), ROR = BinaryOp()
cdef BinaryOp XOR = BinaryOp(), RXOR = BinaryOp(), LEFT_SHIFT = BinaryOp(), RLEFT_SHIFT = BinaryOp()
cdef BinaryOp RIGHT_SHIFT = BinaryOp(), RRIGHT_SHIFT = BinaryOp()
cdef BinaryOp LESS = BinaryOp(), LESS_EQUAL = BinaryOp(), GREATER = BinaryOp(), GREATER_EQUAL = BinaryOp()
cdef BinaryOp EQUAL = BinaryOp(), NOT_EQUAL = BinaryOp()
cdef UnaryOp NEGATIVE = UnaryOp(), ABS = UnaryOp(), INVERT = UnaryOp()

# The method of each operator, and the op that the method records.
cdef dict BINARY = {
    ("add", False): ("__add__", ADD), ("add", True): ("__radd__", RADD),
    ("subtract", False): ("__sub__", SUBTRACT), ("subtract", True): ("__rsub__", RSUBTRACT),
    ("multiply", False): ("__mul__", MULTIPLY), ("multiply", True): ("__rmul__", RMULTIPLY),
    ("divide", False): ("__truediv__", DIVIDE), ("divide", True): ("__rtruediv__", RDIVIDE),
    ("floor_divide", False): ("__floordiv__", FLOOR_DIVIDE), ("floor_divide", True): ("__rfloordiv__", RFLOOR_DIVIDE),
    ("remainder", False): ("__mod__", REMAINDER), ("remainder", True): ("__rmod__", RREMAINDER),
    ("power", False): ("__pow__", POWER), ("power", True): ("__rpow__", RPOWER),
    ("matmul", False): ("__matmul__", MATMUL), ("matmul", True): ("__rmatmul__", RMATMUL),
    ("bitwise_and", False): ("__and__", AND), ("bitwise_and", True): ("__rand__", RAND),
    ("bitwise_or", False): ("__or__", OR), ("bitwise_or", True): ("__ror__", ROR),
    ("bitwise_xor", False): ("__xor__", XOR), ("bitwise_xor", True): ("__rxor__", RXOR),
    ("bitwise_left_shift", False): ("__lshift__", LEFT_SHIFT),
    ("bitwise_left_shift", True): ("__rlshift__", RLEFT_SHIFT),
    ("bitwise_right_shift", False): ("__rshift__", RIGHT_SHIFT),
    ("bitwise_right_shift", True): ("__rrshift__", RRIGHT_SHIFT),
    ("less", False): ("__lt__", LESS), ("less_equal", False): ("__le__", LESS_EQUAL),
    ("greater", False): ("__gt__", GREATER), ("greater_equal", False): ("__ge__", GREATER_EQUAL),
    ("equal", False): ("__eq__", EQUAL), ("not_equal", False): ("__ne__", NOT_EQUAL),
}
cdef dict PREFIX = {
    "negative": ("__neg__", NEGATIVE), "abs": ("__abs__", ABS), "bitwise_invert": ("__invert__", INVERT),
}


def binary_operator(op, slow_path, *, is_reflected=False, checked=None):
    """Returns the method of an operator that records `op`. If `is_reflected`, `self` is the right operand.

    The method calls `slow_path` for unusual operands: an array of another thread or class, a scalar that the dtype
    cannot hold, or anything else than an array, bool, int or float. For `checked` see `learn_beside`. It is the method
    of `Recorded`, so that Python calls it directly.
    """
    name, kept = BINARY[op.name, is_reflected]
    cdef BinaryOp binary = kept
    binary.op, binary.slow_path, binary.checked, binary.is_reflected = op, slow_path, checked, is_reflected
    return Recorded.__dict__[name]


def prefix_operator(op, slow_path):
    """Returns the method of a prefix operator that records `op`."""
    name, kept = PREFIX[op.name]
    cdef UnaryOp prefix = kept
    prefix.op, prefix.slow_path = op, slow_path
    return Recorded.__dict__[name]


def unary(op, slow_path):
    """Returns the function that records `op`, which has no attributes, of one array.

    It calls `slow_path` for an array of another thread, and for what is no array.
    """
    cdef UnaryOp made = UnaryOp()
    made.op, made.slow_path = op, slow_path

    def record_one(x, /):
        if Py_TYPE(x) == LIGHT or isinstance(x, Recorded):
            return record_unary(made, <Recorded>x)
        return made.slow_path(x)

    return record_one
