# Writes the record of an op, or of a recorded body, and completes its results.

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
