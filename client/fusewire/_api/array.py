"""The array: a value on the server, used like a NumPy array. A program waits only when it reads a value.

A slice such as `x[1:]` is a value, not a view: `y = x[1:]; y += 1` does not change `x`, nor does `x[1:][0] = v`.
`x[i] = v` and `x += v` give the array object `x` a new value of its shape and dtype, and all names of that object see
the new value. Shapes and dtypes are known at once, so an op with operands that do not fit raises an error at its own
line.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from fusewire import _conversions as conversions
from fusewire._api import missing_names
from fusewire._api.devices import Device, check_device
from fusewire._api.flat import Flat
from fusewire._api.in_place import in_place
from fusewire._api.indexing.assignment import with_combined_item, with_item
from fusewire._api.indexing.at import At
from fusewire._api.indexing.selection import get_item, take_any
from fusewire._api.indexing.writes import COMBINATIONS
from fusewire._api.operators import comparison, divmod_of, operator, power_operator, prefix, reflected, reflected_divmod
from fusewire._api.ops import masked, operations
from fusewire._api.ops.operations import Axis
from fusewire._api.ops.strided import with_view
from fusewire._api.protocols import array_api, numpy_protocols, numpy_ufuncs
from fusewire._api.text import formatted, known_text, text_of
from fusewire._errors import ArgumentError
from fusewire._recording.bodies.body import check_may_assign
from fusewire._recording.default_session import default_session
from fusewire._recording.record_op import PYTHON_SCALARS
from fusewire._recording.recorded_ops import Recorded, exchange, exchanging, known_call, untracked
from fusewire._stream.receivers import Value
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import Shape


@untracked
class Array(Recorded):
    """A value on the server. Sessions and ops make arrays; the class cannot be called."""

    __slots__ = ()

    __array_priority__ = 1000

    __add__, __radd__ = operator("add"), reflected("add")
    __sub__, __rsub__ = operator("subtract"), reflected("subtract")
    __mul__, __rmul__ = operator("multiply"), reflected("multiply")
    __truediv__, __rtruediv__ = operator("divide"), reflected("divide")
    __floordiv__, __rfloordiv__ = operator("floor_divide"), reflected("floor_divide")
    __mod__, __rmod__ = operator("remainder"), reflected("remainder")
    __pow__, __rpow__ = power_operator(), reflected("power")
    __matmul__, __rmatmul__ = operator("matmul"), reflected("matmul")
    __and__, __rand__ = operator("bitwise_and"), reflected("bitwise_and")
    __or__, __ror__ = operator("bitwise_or"), reflected("bitwise_or")
    __xor__, __rxor__ = operator("bitwise_xor"), reflected("bitwise_xor")
    __lshift__, __rlshift__ = operator("bitwise_left_shift"), reflected("bitwise_left_shift")
    __rshift__, __rrshift__ = operator("bitwise_right_shift"), reflected("bitwise_right_shift")
    __lt__, __le__ = comparison("less"), comparison("less_equal")
    __gt__, __ge__ = comparison("greater"), comparison("greater_equal")
    __eq__ = comparison("equal")  # type: ignore[assignment]  # elementwise, as in NumPy
    __ne__ = comparison("not_equal")  # type: ignore[assignment]
    __iadd__, __isub__, __imul__ = in_place(__add__), in_place(__sub__), in_place(__mul__)
    __itruediv__, __ifloordiv__, __imod__ = in_place(__truediv__), in_place(__floordiv__), in_place(__mod__)
    __ipow__, __imatmul__ = in_place(__pow__), in_place(__matmul__)
    __iand__, __ior__, __ixor__ = in_place(__and__), in_place(__or__), in_place(__xor__)
    __ilshift__, __irshift__ = in_place(__lshift__), in_place(__rshift__)
    __divmod__, __rdivmod__ = divmod_of, reflected_divmod
    __neg__, __abs__, __invert__ = prefix("negative"), prefix("abs"), prefix("bitwise_invert")

    def __new__(cls, *data: object, **options: object) -> Self:
        raise TypeError("arrays are made by a session: session.array(data), or fusewire.asarray(data)")

    # ---- known without reading the value ----

    @property
    def shape(self) -> Shape:
        """Returns the lengths of the axes, a tuple."""
        return self._spec.shape

    @shape.setter
    def shape(self, shape: Any) -> NoReturn:
        raise AttributeError(f"an array keeps its shape; write x = x.reshape({shape})")

    @property
    def dtype(self) -> DType:
        """Returns the dtype of the elements."""
        return self._spec.dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> NoReturn:
        raise AttributeError("an array keeps its dtype; write x = x.astype(dtype)")

    @property
    def ndim(self) -> int:
        """Returns the number of axes."""
        return len(self._spec.shape)

    @property
    def size(self) -> int:
        """Returns the number of elements."""
        return self._spec.spec.elements

    @property
    def nbytes(self) -> int:
        """Returns the bytes of all elements."""
        return self._spec.spec.size_bytes

    @property
    def itemsize(self) -> int:
        """Returns the bytes of one element."""
        return self._spec.dtype.itemsize_bytes

    @property
    def session(self) -> Any:
        """Returns the session that holds the value."""
        return self._recorder.owner

    @property
    def device(self) -> str:
        """Returns the name of the backend of the session's server."""
        backend: str = self.session.backend
        return backend

    @property
    def strides(self) -> tuple[int, ...]:
        """Returns for each axis how many bytes lie between neighbours, as a value that was read has them."""
        return tuple(self.itemsize * math.prod(self.shape[axis + 1 :]) for axis in range(self.ndim))

    if not TYPE_CHECKING:  # a type checker would allow every attribute

        def __getattr__(self, name: str) -> NoReturn:
            raise missing_names.missing_member(name)

    def __len__(self) -> int:
        if not self._spec.shape:
            raise TypeError("an array of rank 0 has no length")
        return self._spec.shape[0]

    def __repr__(self) -> str:
        """Returns the elements if they were read last, else dtype and shape.

        Waits for nothing: debuggers and error messages ask for it.
        """
        return known_text(self) or f"<fusewire.Array {self._spec!r}>"

    def __str__(self) -> str:
        """Waits for the elements that NumPy would print, and returns them as text."""
        return text_of(self)

    def _repr_pretty_(self, printer: Any, _is_cycle: object) -> None:
        """Shows the array in a notebook. Waits for nothing, and says how to read what is not known."""
        printer.text(known_text(self) or f"<fusewire.Array {self._spec!r}: print(...) reads it>")

    def __format__(self, specification: str) -> str:
        """Returns the text of `str`. With a specification, waits for the value and formats it as a Python scalar."""
        return formatted(self, specification)

    # ---- reading: waits for the value ----

    def numpy(self, timeout: float | None = None) -> Value:
        """Waits for the value and returns it. Raises WaitTimeout after `timeout` seconds; the work itself goes on."""
        value: Value = self._recorder.owner.read(self, timeout)
        return value

    def to_numpy(self) -> Value:
        """Waits for the value and returns it. Matplotlib and others ask for it, and else take an array for a list."""
        return self.numpy()

    def future(self) -> Future[Value]:
        """Returns a future of the value. Its callbacks run in the client's I/O thread and must not wait."""
        return self._recorder.owner.fetch(self)

    def __await__(self) -> Generator[Any, None, Value]:
        return asyncio.wrap_future(self.future()).__await__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Value:  # noqa: FBT001  # as NumPy calls it
        if copy is False:
            raise ValueError("a value on a server cannot be read without a copy")
        value = self.numpy()
        return value if dtype is None else conversions.cast(value, np.dtype(dtype))

    def item(self, *index: Any) -> Any:
        """Waits for the only element, and returns it as a Python scalar; or for the one at an index.

        The index is one integer of the flat array, or an integer for each axis, one by one or as a tuple.
        """
        if index:
            at = index[0] if len(index) == 1 else index
            return (self[at] if isinstance(at, tuple) else self.flatten()[at]).item()
        if self.size != 1:
            raise ArgumentError(f"only an array of one element is a scalar; this one has shape {self.shape}")
        return self.numpy().item()

    def tolist(self) -> Any:
        """Waits for the value, and returns it as nested lists of Python scalars; of rank 0, as a scalar."""
        return self.numpy().tolist()

    def tobytes(self) -> bytes:
        """Waits for the value, and returns its bytes in C order."""
        return self.numpy().tobytes()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ArgumentError(f"an array of shape {self.shape} is neither true nor false; use x.any() or x.all()")
        return bool(self.item())

    def __contains__(self, value: Any) -> bool:
        equal: Any = self == value
        return isinstance(equal, Array) and bool(equal.any())

    def __int__(self) -> int:
        return int(self._scalar())

    __trunc__ = __int__

    def __float__(self) -> float:
        return float(self._scalar())

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def _scalar(self) -> Any:
        """Waits for the only element. Raises TypeError if there is another number of them, as NumPy does."""
        if self.size != 1:
            raise TypeError(f"only an array of one element is a Python number; this one has shape {self.shape}")
        return self.item()

    def __index__(self) -> int:
        if not self._spec.dtype.is_integer or self._spec.shape:
            raise TypeError("only an integer array of rank 0 is an index")
        return int(self.item())

    # ---- views and indices ----

    @known_call
    def __getitem__(self, key: Any) -> Array:
        return get_item(self, key, self._recorder.owner.array)

    @known_call
    def _with_item(self, key: Any, value: Any) -> Array:
        """Returns the new value of the array after `self[key] = value`."""
        return with_item(self, key, self._operand(value), self._recorder.owner.array)

    @partial(exchanging, make=_with_item)
    def __setitem__(self, key: Any, value: Any) -> None:
        check_may_assign(self)
        exchange(self, self._with_item(key, value))

    def _write_view(self, value: Any, shape: Sequence[int], strides: Sequence[int], start: int) -> None:
        """Replaces the elements that strides lead to, in place, by `value`, which broadcasts to `shape`."""
        operand = self._operand(value)
        check_may_assign(self)
        exchange(self, with_view(self, operand, shape, strides, start))

    @property
    def at(self) -> At[Array]:
        """Returns what makes changed copies: `x.at[key].add(v)` is `x` with `v` added to `x[key]`."""
        return At(self, self._recorder.owner.array, self._operand)

    def _combine_at(self, op: str, key: Any, value: Any) -> None:
        """Combines all of `value` that go to an element of `self[key]` with it, in place, by "add" or the like."""
        operand = self._operand(value)
        check_may_assign(self)
        exchange(self, with_combined_item(self, key, operand, self._recorder.owner.array, COMBINATIONS[op]))

    def _operand(self, value: Any) -> Any:
        """Returns an operand beside this array. Uploads what is no array and no scalar."""
        is_operand = isinstance(value, (Recorded, np.generic, *PYTHON_SCALARS, complex))
        return value if is_operand else self._recorder.owner.array(value)

    def __hash__(self) -> int:
        """Waits for the value of an array of rank 0 and hashes it, so that it finds what a number finds in a dict.

        Raises TypeError for other arrays, as NumPy does: equal ones would have to have the same hash.
        """
        if self._spec.shape:
            raise TypeError(f"unhashable array of shape {self.shape}: use x.tobytes() or tuple(x.tolist()) as the key")
        return hash(self.item())

    def __iter__(self) -> Iterator[Array]:
        return (self[row] for row in range(len(self)))

    @property
    @known_call
    def T(self) -> Array:  # noqa: N802  # the name is NumPy's and the standard's
        """Returns the array with its axes in reverse order."""
        return operations.transpose(self)

    @property
    @known_call
    def mT(self) -> Array:  # noqa: N802
        """Returns the array with its last two axes exchanged."""
        rank = self.ndim
        if rank < 2:
            raise ArgumentError(f"a matrix transpose needs rank 2 or more, not {rank}")
        return operations.transpose(self, (*range(rank - 2), rank - 1, rank - 2))

    @property
    def mH(self) -> Array:  # noqa: N802
        """Returns `mT`, and of complex numbers its conjugate."""
        return self.mT

    @known_call
    def transpose(self, *axes: int | Sequence[int] | None) -> Array:
        """Returns the array with its axes in the order of `axes`; without `axes`, in reverse order.

        The axes are given one by one or as a sequence.
        """
        return operations.transpose(self, operations.one_or_many(axes))

    @known_call
    def reshape(self, *shape: int | Sequence[int], order: str = "C") -> Array:
        """Returns the elements in another shape. One dim may be −1: it is computed from the others.

        The dims are given one by one or as a sequence. With `order` "F" the first index changes fastest.
        """
        dims = operations.one_or_many(shape)
        return operations.reshape(self, () if dims is None else dims, order)

    @known_call
    def flatten(self, order: str = "C") -> Array:
        """Returns the elements as a vector, in row-major order, or with `order` "F" in column-major order."""
        return operations.reshape(self, (-1,), order)

    ravel = flatten

    @known_call
    def squeeze(self, axis: Axis = None) -> Array:
        return operations.squeeze(self, axis)

    @known_call
    def swapaxes(self, axis1: int, axis2: int) -> Array:
        return self._called("swapaxes", axis1, axis2)

    @known_call
    def repeat(self, repeats: Any, axis: int | None = None) -> Array:
        return self._called("repeat", repeats, axis)

    @property
    def flat(self) -> Flat:
        """Returns what reads and assigns elements by their index in the flat array: `x.flat[3] = 1`."""
        return Flat(self)

    # ---- in order ----

    def sort(self, axis: int = -1, kind: Any = None, *, stable: bool = True) -> None:
        """Sorts the elements along `axis` in place. Every order is stable, whatever `kind` and `stable` say."""
        self[...] = self._called("sort", axis)

    @known_call
    def argsort(self, axis: int | None = -1, kind: Any = None, *, stable: bool = True) -> Array:
        return self._called("argsort", axis)

    def partition(self, kth: int | Sequence[int], axis: int = -1) -> None:
        """Changes the order along `axis` in place, as `fusewire.partition` does."""
        self[...] = self._called("partition", kth, axis)

    @known_call
    def argpartition(self, kth: int | Sequence[int], axis: int = -1) -> Array:
        return self._called("argpartition", kth, axis)

    @known_call
    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> Array:
        return self._called("searchsorted", v, side=side, sorter=sorter)

    @known_call
    def cumsum(self, axis: int | None = None, dtype: Any = None) -> Array:
        return self._called("cumsum", axis, dtype)

    @known_call
    def cumprod(self, axis: int | None = None, dtype: Any = None) -> Array:
        return self._called("cumprod", axis, dtype)

    # ---- chosen elements, diagonals and parts ----

    def nonzero(self) -> tuple[Array, ...]:
        """Waits for the places of the elements that are not 0, and returns a vector of indices for each axis."""
        places: tuple[Array, ...] = self.__array_namespace__().nonzero(self)
        return places

    @known_call
    def compress(self, condition: Any, axis: int | None = None) -> Array:
        """Does the same as `fusewire.compress(condition, self, axis)`."""
        chosen: Array = self.__array_namespace__().compress(condition, self, axis)
        return chosen

    @known_call
    def choose(self, choices: Any, mode: str = "raise") -> Array:
        return self._called("choose", choices, mode)

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """Assigns `values` at `indices` of the flat array, in place. Does the same as `fusewire.put`."""
        self.__array_namespace__().put(self, indices, values, mode)

    def fill(self, value: Any) -> None:
        """Assigns one number to all elements, in place."""
        self[...] = value

    @known_call
    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        return self._called("diagonal", offset, axis1, axis2)

    @known_call
    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Array:
        return self._called("trace", offset, axis1, axis2, dtype)

    @known_call
    def conj(self) -> Array:
        return self._called("conj")

    conjugate = conj

    @property
    @known_call
    def real(self) -> Array:
        return self._called("real")

    @property
    @known_call
    def imag(self) -> Array:
        return self._called("imag")

    def _called(self, name: str, *arguments: Any, **options: Any) -> Array:
        """Calls the function of that name. The class cannot import it, because functions import the class."""
        result: Array = getattr(self.__array_namespace__(), name)(self, *arguments, **options)
        return result

    @known_call
    def astype(self, dtype: Any, *, copy: bool = True) -> Array:
        return operations.astype(self, dtype, copy=copy)

    @known_call
    def view(self, dtype: Any = None) -> Array:
        """Returns the elements of another dtype that have the bits of this array, as a new value.

        The last axis grows or shrinks with the size of an element. Raises ArgumentError if it cannot.
        """
        return self._called("_viewed", dtype)

    @known_call
    def copy(self) -> Array:
        """Returns a new array of the same value. `x[i] = v` on one of the two arrays does not change the other."""
        return operations.reshape(self, self.shape)

    __pos__ = __copy__ = copy

    @known_call
    def take(self, indices: Any, axis: int | None = None) -> Array:
        """Returns the elements at `indices` along `axis`. If `axis` is None, `indices` select from the flat array.

        Raises IndexError for an index out of range in a list or a NumPy array. In an array on the server it means the
        first or the last element.
        """
        x, along = (self.flatten(), 0) if axis is None else (self, axis)
        return take_any(x, indices, along, self._recorder.owner.array)

    # ---- reductions ----

    @known_call
    def sum(
        self, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> Array:
        x = _cast(self, dtype)
        return _cast(masked.reduce("sum", x, axis, keepdims=keepdims, initial=initial, where=where), dtype)

    @known_call
    def prod(
        self, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> Array:
        x = _cast(self, dtype)
        return _cast(masked.reduce("prod", x, axis, keepdims=keepdims, initial=initial, where=where), dtype)

    @known_call
    def mean(self, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, where: Any = True) -> Array:
        return _cast(masked.mean(_cast(self, dtype), axis, where, keepdims=keepdims), dtype)

    @known_call
    def var(
        self,
        axis: Axis = None,
        *,
        correction: float = 0,
        ddof: float = 0,
        keepdims: bool = False,
        where: Any = True,
    ) -> Array:
        degrees = operations.correction_of(correction, ddof)
        return masked.var(self, axis, where, degrees, keepdims=keepdims)

    @known_call
    def std(
        self,
        axis: Axis = None,
        *,
        correction: float = 0,
        ddof: float = 0,
        keepdims: bool = False,
        where: Any = True,
    ) -> Array:
        degrees = operations.correction_of(correction, ddof)
        return masked.std(self, axis, where, degrees, keepdims=keepdims)

    @known_call
    def min(self, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = True) -> Array:
        return masked.reduce("min", self, axis, keepdims=keepdims, initial=initial, where=where)

    @known_call
    def max(self, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = True) -> Array:
        return masked.reduce("max", self, axis, keepdims=keepdims, initial=initial, where=where)

    @known_call
    def any(self, axis: Axis = None, *, keepdims: bool = False, where: Any = True) -> Array:
        return masked.reduce("any", self, axis, keepdims=keepdims, where=where)

    @known_call
    def all(self, axis: Axis = None, *, keepdims: bool = False, where: Any = True) -> Array:
        return masked.reduce("all", self, axis, keepdims=keepdims, where=where)

    @known_call
    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Array:
        return operations.arg_reduce("argmin", self, axis, keepdims=keepdims)

    @known_call
    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Array:
        return operations.arg_reduce("argmax", self, axis, keepdims=keepdims)

    @known_call
    def clip(self, min: Any = None, max: Any = None) -> Array:  # noqa: A002  # the names are NumPy's
        return self._called("clip", min, max)

    @known_call
    def round(self, decimals: int = 0) -> Array:
        """Rounds to `decimals` places, with ties to even. Negative `decimals` round to tens, hundreds, …"""
        return operations.round_to(self, decimals)

    def __round__(self, decimals: int = 0) -> Array:
        return self.round(decimals)

    @known_call
    def dot(self, other: Any) -> Array:
        """Does the same as `fusewire.dot(self, other)`."""
        return self._called("dot", other)

    # ---- other libraries ----

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """Returns the module `fusewire`. Raises ValueError for a version of the array API that it does not know."""
        return array_api.namespace(api_version)

    def to_device(self, device: Device, /, *, stream: None = None) -> Array:
        """Returns a copy. Raises ArgumentError for another device than its own, and for a stream."""
        array_api.refuse_stream(stream)
        check_device(self.session, device)
        return self.copy()

    def __dlpack_device__(self) -> tuple[int, int]:
        """Returns DLPack's number of a processor's memory, because `__dlpack__` reads the value into it."""
        return array_api.DLPACK_CPU

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Waits for the value, and exports it from this machine's memory.

        Raises BufferError if `copy` is False, for another device than the processor, and for a dtype that DLPack cannot
        export; and ArgumentError, a ValueError, for a stream.
        """
        array_api.refuse_stream(stream)
        array_api.check_export(dl_device, copy=copy)
        return array_api.exported(self.numpy(), max_version)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return numpy_ufuncs.call(ufunc, method, inputs, options)

    def __array_function__(self, numpy_function: Any, types: Any, arguments: Any, options: Any) -> Any:
        return numpy_protocols.call(numpy_function, arguments, options)

    def __reduce__(self) -> tuple[Callable[[Value], Array], tuple[Value]]:
        """Waits for the value, which is pickled. Where it is unpickled, the default session uploads it."""
        return _uploaded, (self.numpy(),)

    def __deepcopy__(self, memo: dict[int, Any]) -> Array:
        return self.copy()


def _uploaded(value: Value) -> Array:
    session: Any = default_session()
    array: Array = session.array(value)
    return array


def _cast(array: Array, dtype: Any) -> Array:
    return array if dtype is None else operations.astype(array, dtype, copy=False)
