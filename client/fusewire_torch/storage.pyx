# cython: language_level=3, boundscheck=False, wraparound=False
"""The array of a tensor lies on the tensor's storage; a tensor is a view of it, by shape, strides and offset.

Tensors stay plain `torch.Tensor`, because PyTorch loses attributes and subclasses of tensors where autograd saves a
variable, in `Parameter` and in `detach`. The Python object of a storage lives as long as the storage, and reference
counts free it, so the array is freed in time. The array has any shape; its elements in row-major order are those of
the storage. A storage without an array has no defined elements yet, as after `torch.empty`.

Here too is what every call of a kernel passes through. The file is compiled, because PyTorch's own half of an op takes
less time than these steps take in Python.
"""

cimport cython
from cpython.complex cimport PyComplex_Check
from cpython.object cimport PyObject, PyObject_Call
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport uintptr_t

from contextlib import contextmanager
from math import prod

import torch
from torch._prims_common import infer_size

import fusewire as fw
from fusewire import Array
from fusewire._api.ops.filled import filled
from fusewire._api.ops.strided import view_of, with_view
from fusewire_protos.ops.dtypes import bool_
from fusewire_torch.connection import CONNECTION, session
from fusewire_torch.dtypes import FUSEWIRE_OF, TORCH_OF, fusewire_of
from fusewire_torch.reinterpreted import as_dtype, conjugated, seen_across, written_across

cdef extern from "Python.h":
    object PyObject_Vectorcall(object function, PyObject** given, size_t count, PyObject* names)
    ctypedef struct PyTypeObject
    bint PyObject_TypeCheck(object value, PyTypeObject* kind)

DEVICE = "fusewire"

cdef object new_tensor = torch._C._acc.create_empty_tensor
cdef object tensor_base = torch._C.TensorBase
cdef PyTypeObject* tensor_type = <PyTypeObject*>tensor_base
cdef object storage_of = torch._C.TensorBase.untyped_storage


def is_ours(tensor):
    return not (tensor.is_cpu or tensor.is_meta or tensor.device.type != DEVICE)


# ---- what a storage holds ----

@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class Elements:
    """The elements of a storage. The garbage collector need not track them, because it tracks no arrays."""

    cdef public object array  # None if they are undefined
    cdef public Py_ssize_t size_bytes  # of undefined elements
    # Whether a tensor may see them otherwise than the first one: by other strides, or in another shape than the array's.
    cdef public bint is_viewed
    cdef public bint is_turned  # whether a tensor may see them conjugated or negated
    cdef public object made_in  # for the watcher
    cdef object __weakref__


@cython.final
cdef class _Facts:
    """What is known of the arrays of a spec. Specs are few, and live as long as the process."""

    cdef object spec, shape, dtype, dtype_of_tensor
    cdef bint is_floating


cdef enum:
    AT_HAND = 256

cdef dict _facts = {}  # by spec; keeps alive what is at hand
cdef PyObject* _at_hand[AT_HAND]  # facts, at places that follow from the addresses of their specs


cdef inline _Facts facts_of(object spec):
    cdef uintptr_t mixed = <uintptr_t><PyObject*>spec >> 4
    cdef PyObject** place = &_at_hand[(mixed ^ (mixed >> 8)) & (AT_HAND - 1)]
    if place[0] != NULL and (<_Facts>place[0]).spec is spec:
        return <_Facts>place[0]
    return learnt_facts(spec, place)


cdef _Facts learnt_facts(object spec, PyObject** place):
    cdef _Facts facts = _facts.get(spec)
    if facts is None:
        facts = _Facts()
        facts.spec, facts.shape, facts.dtype = spec, spec.shape, spec.dtype
        facts.dtype_of_tensor, facts.is_floating = TORCH_OF[spec.dtype], spec.dtype.is_floating
        _facts[spec] = facts
    place[0] = <PyObject*>facts
    return facts


cdef inline object storage(object tensor):
    cdef PyObject* given = <PyObject*>tensor
    return PyObject_Vectorcall(storage_of, &given, 1, NULL)


cdef inline Elements held_by(object tensor):
    """Returns the elements of a tensor of this device. Raises RuntimeError for one of another device."""
    cdef Elements elements = getattr(storage(tensor), "held", None)
    if elements is None:
        raise other_device(tensor)
    return elements


cdef object other_device(object tensor):
    return RuntimeError(
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"fusewire:0 and {tensor.device}!"
    )


def held(storage):
    """Returns the elements of a storage of this device. Raises RuntimeError for one of another device."""
    elements = getattr(storage, "held", None)
    if elements is None:
        raise RuntimeError(f"a storage on device {storage.device}, where one on device fusewire:0 is needed")
    return elements


# ---- who watches ----

cdef object watcher = None  # is told what kernels make and touch, if there is one; set by who has the recorder


@contextmanager
def watched_by(other):
    """Tells `other` of what happens within the `with` body, whose thread has the recorder."""
    global watcher
    watcher = other
    try:
        yield
    finally:
        watcher = None


def is_watched():
    """Returns whether a watcher is told, as while a step runs."""
    return watcher is not None


def note_transfer(what):
    """Tells the watcher, if there is one, what a kernel is about to do."""
    if watcher is not None:
        watcher.on_transfer(what)


# ---- tensors and arrays ----

cpdef object tensor_of(object array):
    """Returns a new tensor whose storage has this array."""
    cdef _Facts facts = facts_of(array._spec)
    cdef Elements elements = Elements.__new__(Elements)
    cdef PyObject* given[2]
    given[0], given[1] = <PyObject*>facts.shape, <PyObject*>facts.dtype_of_tensor
    tensor = PyObject_Vectorcall(new_tensor, given, 2, NULL)
    elements.array = array
    storage(tensor).held = elements
    if watcher is not None:
        watcher.on_new(elements)
    return tensor


def empty_tensor(tuple shape, dtype):
    """Returns a tensor of undefined elements. Records nothing: most such tensors are written as a whole at once."""
    cdef Elements elements = Elements.__new__(Elements)
    fusewire_of(dtype)
    tensor = new_tensor(shape, dtype)
    elements.size_bytes = prod(shape) * dtype.itemsize
    storage(tensor).held = elements
    if watcher is not None:
        watcher.on_new(elements)
    return tensor


def copied_storage(other):
    """Returns a new storage with the elements of another one."""
    cdef Elements elements = held(other)
    if watcher is not None:
        watcher.on_touch(elements)
    if elements.array is None:
        return empty_tensor((elements.size_bytes,), torch.uint8).untyped_storage()
    return tensor_of(elements.array).untyped_storage()


cpdef object array_of(object tensor):
    """Returns the elements of a tensor of this device, in its shape."""
    cdef Elements elements = held_by(tensor)
    if watcher is not None:
        watcher.on_touch(elements)
    if elements.array is not None and not elements.is_viewed:
        return elements.array
    return seen_by(tensor, elements)


cdef object seen_by(object tensor, Elements elements):
    """Returns what a tensor sees of elements that are undefined yet or that several tensors view."""
    array = plain_elements(tensor, elements)
    return conjugated(tensor, array) if elements.is_turned else array


cdef object plain_elements(object tensor, Elements elements):
    """Returns what a tensor sees without a conjugation or negation of it that PyTorch has put off."""
    if elements.array is None:
        elements.array = filled(session(), (count_in(elements, tensor.dtype),), 0, fusewire_of(tensor.dtype))
        if not elements.is_viewed:
            elements.array = elements.array.reshape(tuple(tensor.size()))
    base, shape = elements.array, tensor.size()  # a lazy parameter has sizes, but no shape
    if facts_of(base._spec).dtype_of_tensor is not tensor.dtype:
        return seen_across(base, fusewire_of(tensor.dtype), tuple(shape), tensor.stride(), tensor.storage_offset())
    if tensor.is_contiguous():
        if base.shape == shape:
            return base
        if base.size == tensor.numel():
            return base.reshape(tuple(shape))
    return view_of(base, tuple(shape), tensor.stride(), tensor.storage_offset())


cpdef object write(object tensor, object array):
    """Replaces the elements of a tensor, and returns the tensor. The array broadcasts to its shape.

    Raises RuntimeError for a tensor of another device.
    """
    cdef Elements elements = held_by(tensor)
    if watcher is not None:
        watcher.on_touch(elements)
    if replaces_all(tensor, elements, array):
        elements.array = array
        return tensor
    return write_any(tensor, array, elements)


cdef inline bint replaces_all(object tensor, Elements elements, object array) except -1:
    """Returns whether an array can take the place of the elements as it is. Other arrays may, after a cast."""
    if elements.array is None or elements.array._spec is not array._spec:
        return False
    return not elements.is_viewed or (not elements.is_turned and sees_all(tensor, facts_of(array._spec)))


cdef bint sees_all(object tensor, _Facts facts) except -1:
    """Returns whether a tensor sees elements of a spec in their shape: a contiguous one of this shape sees all."""
    return tensor.is_contiguous() and tensor.shape == facts.shape and tensor.dtype is facts.dtype_of_tensor


cdef object write_any(object tensor, object array, Elements elements):
    dtype = FUSEWIRE_OF[tensor.dtype]
    array = as_dtype(array, dtype)
    if elements.is_turned:
        array = conjugated(tensor, array)
    shape = tuple(tensor.shape)
    if elements.array is not None and facts_of(elements.array._spec).dtype is not dtype:
        elements.array = written_across(elements.array, array, shape, tensor.stride(), tensor.storage_offset())
    elif tensor.is_contiguous() and tensor.numel() == count_in(elements, tensor.dtype):
        elements.array = array if array.shape == shape else _broadcast(array, shape)
    elif tensor.numel():
        base = elements.array
        if base is None:
            base = filled(session(), (count_in(elements, tensor.dtype),), 0, dtype)
        elements.array = with_view(base, array, shape, tensor.stride(), tensor.storage_offset())
    return tensor


cdef object count_in(Elements elements, object dtype):
    return (elements.size_bytes if elements.array is None else elements.array.nbytes) // dtype.itemsize


def elements_for(dtype, storage):
    """Returns how many elements of a dtype a storage has: PyTorch itself takes it for empty."""
    return count_in(held(storage), dtype)


def bytes_of(storage):
    """Returns how many bytes the elements of a storage have."""
    return count_in(held(storage), torch.uint8)


def _broadcast(array, shape):
    is_reshaped = array.size == prod(shape) and array.ndim > len(shape)
    return array.reshape(shape) if is_reshaped else fw.broadcast_to(array, shape)


# ---- views ----

cdef object seen = torch._C._dynamo.guards._reinterpret_tensor  # makes a tensor over the storage of another one
cdef object is_inference_mode = torch.is_inference_mode_enabled
cdef dict _dense = {}  # strides by shape


def dense_strides(tuple shape):
    """Returns the strides of a tensor whose elements lie in row-major order."""
    found = _dense.get(shape)
    if found is not None:
        return found
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    if len(_dense) >= MOST_STRIDES:
        _dense.clear()
    return _dense.setdefault(shape, tuple(reversed(strides)))


cdef enum:
    MOST_STRIDES = 4096


def restrided(x, shape, strides, offset=None):
    """Returns a tensor over the storage of `x`, with its offset unless another one is given. No kernel runs for it.

    Raises RuntimeError for negative strides.
    """
    cdef Elements elements = held_by(x)
    for step in strides:
        if step < 0:
            raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {strides}")
    elements.is_viewed = True
    distance = 0 if offset is None else offset - x.storage_offset()
    if not is_inference_mode() or x.is_inference():
        return seen(x, shape, strides, distance)
    with torch._C._InferenceMode(False):  # the view of a tensor that autograd may know is one too
        return seen(x, shape, strides, distance)


def viewed(x, size):
    """Returns a tensor of another shape over the storage of `x`. Raises RuntimeError if no strides lead to it."""
    cdef tuple shape = tuple(size)
    cdef Py_ssize_t count, given = 1, open_axes = 0
    if not x.is_contiguous():
        like = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta").view(size)
        return restrided(x, like.shape, like.stride())
    count = x.numel()
    for dim in shape:
        if dim == -1:
            open_axes += 1
        else:
            given *= dim
    if open_axes == 1 and given > 0 and count % given == 0:
        shape = tuple([count // given if dim == -1 else dim for dim in shape])
    elif open_axes or given != count:
        shape = tuple(infer_size(shape, count))
    return restrided(x, shape, dense_strides(shape))


# ---- elementwise ops ----

@cython.final
cdef class Elementwise:
    """A function of tensors that does `function` of arrays in the dtype of the computation.

    The first `operands` arguments are operands, if 0 all; others are passed as they are. `promoted` brings operands of
    unequal dtypes, or of integers, to that dtype (see `promotion.promoted`); else it need not be called.
    """

    cdef object function, kind, promoted
    cdef Py_ssize_t operands
    cdef bint is_test

    def __init__(self, function, kind, Py_ssize_t operands, promoted, *, bint is_test):
        self.function, self.kind, self.operands, self.promoted = function, kind, operands, promoted
        self.is_test = is_test

    def __call__(self, *arguments, **options):
        return self.value(arguments, options)

    cdef object value(self, tuple arguments, dict options):
        cdef Py_ssize_t place, count = self.operands or PyTuple_GET_SIZE(arguments)
        cdef object lead = None, spec
        cdef Elements elements
        cdef list values = []
        for place in range(PyTuple_GET_SIZE(arguments)):
            value = <object>PyTuple_GET_ITEM(arguments, place)
            if place < count and PyObject_TypeCheck(value, tensor_type):
                elements = getattr(storage(value), "held", None)
                if elements is None:
                    value = self.number(value)
                    if PyComplex_Check(value):
                        return self.promoted_value(arguments, options, count)
                else:
                    if watcher is not None:
                        watcher.on_touch(elements)
                    value = elements.array if elements.array is not None and not elements.is_viewed else \
                        seen_by(value, elements)
                    spec = value._spec
                    if lead is None:
                        lead = spec
                    elif lead is not spec and facts_of(lead).dtype is not facts_of(spec).dtype:
                        return self.promoted_value(arguments, options, count)
            elif place < count and PyComplex_Check(value):
                return self.promoted_value(arguments, options, count)
            values.append(value)
        if lead is None or not facts_of(lead).is_floating:
            return self.promoted_value(arguments, options, count)
        result = called(self.function, values, options)
        return as_result(result, bool_ if self.is_test else facts_of(lead).dtype)

    cdef object number(self, object tensor):
        """Returns a number that PyTorch has wrapped in a tensor of the CPU."""
        if tensor.dim() or not tensor.is_cpu:
            raise other_device(tensor)
        return tensor.item()

    cdef object promoted_value(self, tuple arguments, dict options, Py_ssize_t count):
        values, dtype = self.promoted(arguments[:count], self.kind)
        return as_result(self.function(*values, *arguments[count:], **options), dtype)


cdef object called(object function, list values, dict options):
    cdef PyObject* given[8]
    cdef Py_ssize_t place, count = len(values)
    if options or count > 8:
        return function(*values, **options)
    for place in range(count):
        given[place] = <PyObject*>values[place]
    return PyObject_Vectorcall(function, given, count, NULL)


cdef inline object as_result(object array, object dtype):
    return array if facts_of(array._spec).dtype is dtype else array.astype(dtype)


# ---- calls of kernels ----

cdef object take_turn():
    """Gives the calling thread the recorder. Returns it, or None if a kernel calls another one."""
    recorder = CONNECTION.recorder
    if recorder is None:
        CONNECTION.opened()
        recorder = CONNECTION.recorder
    taken = recorder.take()
    if taken is None:
        return None
    if taken is False:
        CONNECTION.wait_for(recorder)
    return recorder


cdef object note_named = None  # is told which ops each kernel has recorded, while a profile is on


def name_ops(note):
    """Has kernels that have recorded ops tell by which recorder, the number of the first one, and the kernel's name.

    None ends that.
    """
    global note_named
    note_named = note


cdef class Kernel:
    """A function that PyTorch or a user calls. It records by the device's recorder, whichever thread runs it.

    `explained(arguments, options, error)` returns the error to raise in place of one that `function` has raised.
    `name` is that of PyTorch's op, or empty.
    """

    cdef object function, explained
    cdef public str name

    def __init__(self, function, explained=None):
        self.function, self.explained, self.name = function, explained, ""

    def __call__(self, *arguments, **options):
        try:
            return self.in_turn(arguments, options)
        except Exception as error:
            found = error if self.explained is None else self.explained(arguments, options, error)
            if found is error:
                raise
            raise found from error

    cdef object in_turn(self, tuple arguments, dict options):
        recorder = take_turn()
        if recorder is None:
            return self.run(arguments, options)
        first = 0 if note_named is None else recorder.next_number
        try:
            return self.run(arguments, options)
        finally:
            try:
                if first and note_named is not None and self.name and recorder.next_number > first:
                    note_named(recorder, first, self.name)
            finally:
                recorder.release()
                if CONNECTION.waiting:
                    CONNECTION.wake()

    cdef object run(self, tuple arguments, dict options):
        return PyObject_Call(self.function, arguments, options)

    cdef object value(self, tuple arguments, dict options):
        if type(self.function) is Elementwise:
            return (<Elementwise>self.function).value(arguments, options)
        return PyObject_Call(self.function, arguments, options)


cdef class NewTensors(Kernel):
    """The functional kernel of an op: `function` returns an array, or a tuple or list of arrays."""

    cdef object run(self, tuple arguments, dict options):
        return as_tensors(self.value(arguments, options))


cdef object as_tensors(object arrays):
    if isinstance(arrays, Array):
        return tensor_of(arrays)
    if isinstance(arrays, tuple):
        return tuple([as_tensors(each) for each in arrays])
    if isinstance(arrays, list):
        return [as_tensors(each) for each in arrays]
    return arrays


cdef class IntoFirst(Kernel):
    """The kernel that writes the value of an op to the op's first operand. `check(tensor, array)` raises if it may not."""

    cdef object check

    def __init__(self, function, check, explained=None):
        super().__init__(function, explained)
        self.check = check

    cdef object run(self, tuple arguments, dict options):
        return written(arguments[0], self.value(arguments, options), self.check)


cdef object written(object tensor, object array, object check):
    cdef Elements elements = held_by(tensor)
    if watcher is not None:
        watcher.on_touch(elements)
    if replaces_all(tensor, elements, array):
        elements.array = array
        return tensor
    check(tensor, array)
    return write_any(tensor, array, elements)


cdef class OfLists(Kernel):
    """The kernel of an op of each tensor of a list. An operand that is no list is the same for all.

    With `check`, it writes each value to the tensor of the first list; else it returns new tensors.
    """

    cdef object check

    def __init__(self, function, check=None, explained=None):
        super().__init__(function, explained)
        self.check = check

    cdef object run(self, tuple arguments, dict options):
        cdef list made = []
        if "scalars" in options:
            arguments = (*arguments, options.pop("scalars"))
        columns = [plain_column(each) for each in arguments]
        count = len(columns[0])
        rows = zip(*[each if isinstance(each, (list, tuple)) else [each] * count for each in columns], strict=True)
        for row in rows:
            array = self.value(row, options)
            if self.check is None:
                made.append(tensor_of(array))
            else:
                written((<tuple>row)[0], array, self.check)
        return made if self.check is None else None


cdef object plain_column(object each):
    """Returns an operand of a list, with numbers that were given as a tensor of the CPU as a list."""
    if PyObject_TypeCheck(each, tensor_type) and each.dim() == 1 and each.is_cpu:
        return each.tolist()
    return each
