# The class of a result of an op, or of any other value on the server.

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
