# The tape of a thread: the records of its ops, the values in them, and the deaths of results.

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
        for number in numbers:
            self.put_place(first, number)
            first += 1

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
