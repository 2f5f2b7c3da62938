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
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

from functools import update_wrapper

from numpy import empty, int64, integer

from fusewire._recording.integer_scans import INSIDE, OUTSIDE
from fusewire._recording.op_rules import known_ops, learn, learn_beside
from fusewire._recording.pinned_handles import ForeignHandles
from fusewire._recording.places import INTERNAL, NOT_KNOWN, OPS_WITH_PLACES, places
from fusewire_protos.ops.dtypes import DType

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

# Python 3.14 counts no reference for a name whose object it only lends to an operation. A caller in C that lends its only
# reference, such as functools.partial or a compiled module, is taken for a stack too.
cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030E0000
    #define fw_is_only_on_stack(object) PyUnstable_Object_IsUniqueReferencedTemporary(object)
    #else
    #define fw_is_only_on_stack(object) (Py_REFCNT(object) == 1)
    #endif
    """
    bint fw_is_only_on_stack(PyObject* value)

cdef extern from *:
    bint unlikely(bint condition)  # Cython's own, for a branch that stands beside the hot path

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
        Py_ssize_t tp_vectorcall_offset
    unsigned long Py_TPFLAGS_HAVE_GC, Py_TPFLAGS_HAVE_VECTORCALL, Py_TPFLAGS_METHOD_DESCRIPTOR
    PyTypeObject* Py_TYPE(object value)
    PyTypeObject* Py_TYPE_of "Py_TYPE"(PyObject* value)
    void Py_DECREF_pointer "Py_DECREF"(PyTypeObject* value)
    void Py_DECREF_object "Py_DECREF"(PyObject* value)
    void _Py_NewReference(PyObject* value)
    void PyObject_ClearWeakRefs(PyObject* value)
    void PyType_Modified(type kind)
    PyObject* PyObject_Init(PyObject* memory, PyTypeObject* kind)
    PyObject* PyErr_NoMemory()
    int PyErr_WarnEx(object kind, const char* text, Py_ssize_t level) except -1
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
    PyTypeObject PyLong_Type, PyUnicode_Type, PyTuple_Type, PyList_Type, PySlice_Type, PyType_Type, PyFloat_Type
    PyTypeObject PyBool_Type
    PyObject* Py_None
    PyObject* Py_True
    PyObject* Py_False
    PyObject* Py_Ellipsis
    ctypedef struct PySliceObject:
        PyObject* start
        PyObject* stop
        PyObject* step
    bint PyUnicode_CHECK_INTERNED(PyObject* text)
    bint PyObject_TypeCheck(PyObject* value, PyTypeObject* kind)
    long long PyLong_AsLongLongAndOverflow(PyObject* value, int* overflow) noexcept
    Py_ssize_t PyTuple_GET_SIZE(PyObject* items)
    PyObject* PyTuple_GET_ITEM(PyObject* items, Py_ssize_t place)
    Py_ssize_t PyList_GET_SIZE(PyObject* items)
    PyObject* PyList_GET_ITEM(PyObject* items, Py_ssize_t place)
    PyObject* PyObject_Vectorcall(PyObject* function, PyObject** given, size_t count, PyObject* names) noexcept
    Py_ssize_t PyVectorcall_NARGS(size_t count)
    object PyMethod_New(object function, object instance)
    double PyFloat_AS_DOUBLE(PyObject* value)
    PyObject* Py_NewRef(PyObject* value)


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


cdef int64_t LEAST_INSIDE = INSIDE, LEAST_OUTSIDE = OUTSIDE  # of the integers of a structure


cdef struct RecentCall:
    PyObject* known
    uint64_t last_with_float  # the hash of a call


cdef class ThreadTape:
    """The ops that one thread has recorded, and the deaths of their results. `Recorder` inherits from it.

    The owning thread records and trims, any thread reads, and finalisers of any thread report deaths. The methods
    `trim` and `take_deaths` are called by the holder of the recorder's lock. An inheritor has `on_checkpoint`, which is
    called when an op is on the tape and its result exists, if the op's number is `checkpoint` or more.
    """

    cdef public unsigned long thread  # 0 if no thread may record now
    cdef public int64_t checkpoint
    cdef public object notes  # what `note` adds to while a gradient is wanted, else None
    cdef public object foreign
    cdef int64_t first  # the number of the first record
    cdef int64_t first_value  # the index of the first value
    cdef Numbers integers  # the records, one behind the other
    cdef Numbers starts  # the index in `integers` with which each record begins
    cdef Numbers dead
    cdef list values
    cdef int64_t origin  # the number of the first op of all
    cdef public list repeats  # of bodies, each the number of its first op and the body, see `record_body`
    cdef public bint is_in_body  # whether the owning thread records the body of a loop or function
    cdef dict known_calls  # by their words, see `known_call`
    cdef RecentCall* recent_calls  # of `known_calls`, by the hash of their words
    cdef int32_t* op_places  # of the last KEPT_PLACES ops, by the distance of their number from `origin` modulo these
    cdef Py_ssize_t op_places_room

    def __init__(self, unsigned long thread, int64_t first, int64_t checkpoint):
        self.thread = thread
        self.first = self.origin = first
        self.checkpoint = checkpoint
        self.values = []
        self.repeats = []
        self.foreign = ForeignHandles()
        self.known_calls = {}

    def __dealloc__(self):
        free(self.integers.items)
        free(self.starts.items)
        free(self.dead.items)
        free(self.op_places)
        free(self.recent_calls)

    def take(self):
        """Makes the calling thread the owner of a tape that threads use in turns.

        Returns True, or None if the thread is the owner already, or False if another thread is.
        """
        cdef unsigned long thread = PyThread_get_thread_ident()
        if self.thread:
            return None if self.thread == thread else False
        self.thread = thread
        return True

    def release(self):
        """Leaves the tape to any thread."""
        self.thread = 0

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

    def drop_all(self):
        """Drops all records and values. Called in the owning thread."""
        self.first += self.starts.count
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

    The class is not called: `recorded_of_handle` and the functions that record make objects.
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


cdef inline Recorded finish(
    Recorded result, ThreadTape tape, Py_ssize_t integers, object spec, object left, object right
):
    """Ends the record, and completes its result. `left` and `right` are the operands, or tuples of operands."""
    cdef int64_t number = tape.end_record(integers)
    result._handle = number
    result._spec = spec
    result._recorder = tape
    if unlikely(tape.notes is not None):
        note(tape, number, result, left, right)
    tape.put_place(number, NO_PLACE)  # not that of an older op, if what follows raises
    tape.put_place(number, place_here())
    if number >= tape.checkpoint:
        (<object>tape).on_checkpoint(number)
    return result


cdef int note(ThreadTape tape, int64_t number, Recorded result, object left, object right) except -1:
    """Notes an op (see `Notes`). Its operands and its result live as long as the note.

    An allocation may run a finaliser that records, which may move the tape: so each integer is found anew.
    """
    cdef Py_ssize_t cell, count = tape.place_of(number + 1) - tape.place_of(number)
    cdef int64_t item, signature = tape.integers.items[tape.place_of(number)]
    cdef list handles = [], values = []
    for cell in range(1, count):
        item = tape.integers.items[tape.place_of(number) + cell]
        if item < 0:
            values.append(tape.values[-1 - item - tape.first_value])
        else:
            handles.append(item)
    tape.notes.add(number, signature, tuple(handles), tuple(values), (result, left, right))
    return 0


def record(type kind, ThreadTape recorder not None, signature, handles, values, operands=()):
    """Records an op, and returns an object of class `kind` for its result. Called in the recorder's own thread.

    `operands` are the arrays of the handles.
    """
    cdef Recorded result = recorded_without_handle(kind, recorder, signature.result)
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
    return finish(result, recorder, count, signature.result, operands, None)


def record_body(type kind, ThreadTape recorder not None, body, inputs, values):
    """Records the ops of a `RecordedBody` again. Returns objects of class `kind` for its live results.

    `inputs` are the handles of its inputs, and `values` its values. Called in the recorder's own thread. Raises
    ValueError if there are fewer inputs than the body has, or another number of values.
    """
    cdef list handles = list(inputs), scalars = list(values)
    cdef list results = [recorded_without_handle(kind, recorder, spec) for spec in body.specs]
    cdef tuple live = body.live
    cdef int64_t first = write_body(recorder, body.cells, handles, scalars), number
    cdef Py_ssize_t place
    for place in range(len(live)):
        number = live[place]
        (<Recorded>results[place])._handle = first + number
    add_deaths(recorder, body.dead, first)
    recorder.repeats.append((first, body))
    recorder.put_places(first, body.places)
    number = recorder.next_number - 1
    if number >= recorder.checkpoint:
        (<object>recorder).on_checkpoint(number)
    return results


cdef int64_t write_body(ThreadTape tape, object cells, list handles, list scalars) except 0:
    """Writes the records of a structure (see `integer_scans`). Returns the number of the first op."""
    cdef Py_buffer view
    cdef Py_ssize_t place, count, values = 0, starts = tape.starts.count
    cdef int64_t cell, slot, first = tape.first + starts, value = -tape.first_value - len(tape.values)
    cdef int64_t* items
    cdef const int64_t* given
    PyObject_GetBuffer(cells, &view, PyBUF_SIMPLE)
    try:
        count = view.len // <Py_ssize_t>sizeof(int64_t)
        make_room(&tape.integers, count)
        make_room(&tape.starts, count)
        given, items = <const int64_t*>view.buf, tape.integers.items + tape.integers.count
        for place in range(count):
            cell = given[place]
            if cell < 0:
                values += 1
                items[place] = value - values
            elif cell < LEAST_INSIDE:
                items[place] = cell
                tape.starts.items[starts] = tape.integers.count + place
                starts += 1
            elif cell < LEAST_OUTSIDE:
                items[place] = first + (cell - LEAST_INSIDE)
            else:
                slot = cell - LEAST_OUTSIDE
                if slot >= len(handles):
                    raise ValueError(f"{len(handles)} inputs of a body that has more")
                items[place] = handles[slot]
    finally:
        PyBuffer_Release(&view)
    if values != len(scalars):
        raise ValueError(f"{len(scalars)} values of a body of {values}")
    tape.values.extend(scalars)
    tape.integers.count += count
    tape.starts.count = starts
    return first


cdef int add_deaths(ThreadTape tape, object ops, int64_t first) except -1:
    """Notes that the results of these ops are dead. They are relative to op number `first`."""
    cdef Py_buffer view
    cdef Py_ssize_t place, count
    PyObject_GetBuffer(ops, &view, PyBUF_SIMPLE)
    try:
        count = view.len // <Py_ssize_t>sizeof(int64_t)
        make_room(&tape.dead, count)
        for place in range(count):
            tape.add_death(first + (<const int64_t*>view.buf)[place])
    finally:
        PyBuffer_Release(&view)
    return 0


cdef dict KNOWN_OPS = known_ops


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
    return finish(result, tape, 1 + len(given) + len(listed_starts), found[1], given, None)


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
    if Py_TYPE(left) == UNTRACKED or isinstance(left, Recorded):
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
    return finish(result, tape, 3, <object>known.spec, x, other)


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
    return finish(result, tape, 3, <object>known.spec, x, None)


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
    return finish(result, tape, 2, <object>known.spec, x, None)


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


# ---- known calls ----

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


# ---- the default session ----

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


# ---- assignment ----

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
