# What the other parts need of Python's C API.

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
