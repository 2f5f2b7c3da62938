# Operators: what is known of each op for the specs of its operands, and the functions that record it.

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
