"""The array: a value on the server, used like a NumPy array. A program waits only when it reads a value.

A slice such as `x[1:]` is a value, not a view: `y = x[1:]; y += 1` does not change `x`, nor does `x[1:][0] = v`.
`x[i] = v` gives the array object `x` a new value, and all names of that object see the new value. `x += v` binds the
name `x` to a new object of the same shape and dtype. Shapes and dtypes are known at once, so an op with operands that
do not fit raises an error at its own line.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from types import ModuleType
from typing import Any, NoReturn, Self

import numpy as np

from fusewire import _conversions as conversions
from fusewire._api import numpy_protocols, operations
from fusewire._api.in_place import in_place
from fusewire._api.indexing.assignment import with_item
from fusewire._api.indexing.selection import get_item, take_any
from fusewire._api.operations import Axis
from fusewire._errors import ArgumentError
from fusewire._recording.body import check_may_assign
from fusewire._recording.implementation import Recorded, binary_operator, light, prefix_operator, record_item
from fusewire._recording.record_op import PYTHON_SCALARS, apply, apply_of_one
from fusewire._stream.receivers import Value
from fusewire_protos.ops.catalogue import BY_NAME, Op
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import Shape

# NumPy functions that return Python objects. They need the values of their arrays, so these values are read.
_NEEDS_VALUES = frozenset({np.allclose, np.array_equal})


def is_array_like(value: object) -> bool:
    """Returns whether an operator uploads `value`, the operand beside the array.

    An operator uploads a buffer, a list, or an object with `__array__`. A complex number counts too, because the upload
    then raises an error that names the number's dtype.
    """
    is_given = isinstance(value, np.ndarray | list | tuple | memoryview | bytearray | complex)
    return is_given or hasattr(value, "__array__")


def _slow_path(op: Op, *, is_reflected: bool = False) -> Callable[[Array, Any], Array]:
    """Returns the function that records an operator if an operand is no Python scalar and no array of this thread."""

    def record_unusual(self: Array, other: Any) -> Array:
        if not isinstance(other, (Recorded, np.generic, *PYTHON_SCALARS)):
            if not is_array_like(other):
                return NotImplemented  # type: ignore[no-any-return]  # as operators do
            other = self._recorder.owner.array(other)
        result: Array = apply(op, (other, self) if is_reflected else (self, other))
        return result

    return record_unusual


def _operator(name: str) -> Callable[[Array, Any], Array]:
    return binary_operator(BY_NAME[name], _slow_path(BY_NAME[name]))


def _comparison(name: str) -> Callable[[Array, Any], Array]:
    """Returns an operator that also compares with a Python integer out of the dtype's range."""
    op = BY_NAME[name]
    slow_path = _slow_path(op)

    def record_any(self: Array, other: Any) -> Array:
        try:
            return slow_path(self, other)
        except OverflowError as overflow:
            recorded: Array = operations.apply_beyond_range(op, (self, other), overflow)
            return recorded

    return binary_operator(op, record_any)


def _power_operator() -> Callable[[Array, Any], Array]:
    """Returns the power operator. It refuses a negative power of integers, because the result is no integer.

    As in NumPy, `x ** 2`, `x ** 0.5` and `x ** -1` are the square, the square root and the reciprocal.
    """
    op = BY_NAME["power"]
    slow_path = _slow_path(op)

    def record_unusual(self: Array, other: Any) -> Array:
        operations.check_exponent(self, other)
        return slow_path(self, other)

    power = binary_operator(op, record_unusual, checked=_checked_exponent)

    def record_power(self: Array, exponent: Any) -> Array:
        special = _POWERS.get(exponent) if type(exponent) in (int, float) else None
        is_same = self.dtype.is_floating or (self.dtype.is_integer and type(exponent) is int and exponent > 0)
        return special(self) if special is not None and is_same else power(self, exponent)

    return record_power


_POWERS: dict[float, Callable[[Array], Array]] = {  # as NumPy's operator has them
    2: lambda x: apply(BY_NAME["square"], (x,)),
    0.5: lambda x: apply(BY_NAME["sqrt"], (x,)),
    -1: lambda x: apply(BY_NAME["divide"], (1, x)),
}


def _checked_exponent(dtype: DType, canonical: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns a function that converts exponents as `canonical` does, but refuses negative exponents of integers."""
    if not dtype.is_integer:
        return canonical

    def exponent_of(value: int) -> Any:
        if value < 0:
            raise operations.no_integer(dtype, value)
        return canonical(value)

    return exponent_of


def _reflected(name: str) -> Callable[[Array, Any], Array]:
    op = BY_NAME[name]
    return binary_operator(op, _slow_path(op, is_reflected=True), is_reflected=True)


def _prefix(name: str) -> Callable[[Array], Array]:
    return prefix_operator(BY_NAME[name], apply_of_one(BY_NAME[name]))


def _no_output(name: str, out: Sequence[Any]) -> TypeError:
    """Returns the error of a ufunc that is to write to `out`, of which NumPy makes a tuple."""
    if any(isinstance(each, Array) for each in out):
        return TypeError(f"np.{name} cannot write to out=, an array on a server; write out[...] = np.{name}(…)")
    return TypeError(
        f"np.{name} cannot write a value on a server to out=; for a += x write a += x.numpy(), "
        f"otherwise out[...] = np.{name}(…).numpy()"
    )


def _divmod(self: Array, other: Any) -> tuple[Array, Array]:
    return self // other, self % other


def _reflected_divmod(self: Array, other: Any) -> tuple[Array, Array]:
    return other // self, other % self


@light
class Array(Recorded):
    """A value on the server. Sessions and ops make arrays; the class cannot be called."""

    __slots__ = ()

    __array_priority__ = 1000

    __add__, __radd__ = _operator("add"), _reflected("add")
    __sub__, __rsub__ = _operator("subtract"), _reflected("subtract")
    __mul__, __rmul__ = _operator("multiply"), _reflected("multiply")
    __truediv__, __rtruediv__ = _operator("divide"), _reflected("divide")
    __floordiv__, __rfloordiv__ = _operator("floor_divide"), _reflected("floor_divide")
    __mod__, __rmod__ = _operator("remainder"), _reflected("remainder")
    __pow__, __rpow__ = _power_operator(), _reflected("power")
    __matmul__, __rmatmul__ = _operator("matmul"), _reflected("matmul")
    __and__, __rand__ = _operator("bitwise_and"), _reflected("bitwise_and")
    __or__, __ror__ = _operator("bitwise_or"), _reflected("bitwise_or")
    __xor__, __rxor__ = _operator("bitwise_xor"), _reflected("bitwise_xor")
    __lshift__, __rlshift__ = _operator("bitwise_left_shift"), _reflected("bitwise_left_shift")
    __rshift__, __rrshift__ = _operator("bitwise_right_shift"), _reflected("bitwise_right_shift")
    __lt__, __le__ = _comparison("less"), _comparison("less_equal")
    __gt__, __ge__ = _comparison("greater"), _comparison("greater_equal")
    __eq__ = _comparison("equal")  # type: ignore[assignment]  # elementwise, as in NumPy
    __ne__ = _comparison("not_equal")  # type: ignore[assignment]
    __iadd__, __isub__, __imul__ = in_place(__add__), in_place(__sub__), in_place(__mul__)
    __itruediv__, __ifloordiv__, __imod__ = in_place(__truediv__), in_place(__floordiv__), in_place(__mod__)
    __ipow__, __imatmul__ = in_place(__pow__), in_place(__matmul__)
    __iand__, __ior__, __ixor__ = in_place(__and__), in_place(__or__), in_place(__xor__)
    __ilshift__, __irshift__ = in_place(__lshift__), in_place(__rshift__)
    __divmod__, __rdivmod__ = _divmod, _reflected_divmod
    __neg__, __abs__, __invert__ = _prefix("negative"), _prefix("abs"), _prefix("bitwise_invert")
    __hash__ = object.__hash__

    def __new__(cls, *data: object, **options: object) -> Self:
        raise TypeError("arrays are made by a session: session.array(data), or fusewire.asarray(data)")

    def __pos__(self) -> Array:
        return self.copy()

    # ---- known without reading the value ----

    @property
    def shape(self) -> Shape:
        return self._spec.shape

    @property
    def dtype(self) -> DType:
        return self._spec.dtype

    @property
    def ndim(self) -> int:
        return len(self._spec.shape)

    @property
    def size(self) -> int:
        return self._spec.spec.elements

    @property
    def nbytes(self) -> int:
        return self._spec.spec.size_bytes

    @property
    def session(self) -> Any:
        """Returns the session that holds the value."""
        return self._recorder.owner

    @property
    def device(self) -> str:
        """Returns the name of the backend of the session's server."""
        backend: str = self.session.backend
        return backend

    def __len__(self) -> int:
        if not self._spec.shape:
            raise TypeError("an array of rank 0 has no length")
        return self._spec.shape[0]

    def __repr__(self) -> str:
        return f"<fusewire.Array {self._spec!r}>"

    def __format__(self, specification: str) -> str:
        """Returns the text of `repr`. With a specification, waits for the value and formats it as a Python scalar."""
        if not specification:
            return repr(self)
        if self._spec.shape:
            raise TypeError(f"an array of rank {self.ndim} has no format; format its elements")
        return format(self.item(), specification)

    # ---- reading: waits for the value ----

    def numpy(self, timeout: float | None = None) -> Value:
        """Waits for the value and returns it. Raises WaitTimeout after `timeout` seconds; the work itself goes on."""
        value: Value = self._recorder.owner.read(self, timeout)
        return value

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

    def item(self) -> bool | int | float:
        """Waits for the value, and returns its only element as a Python scalar."""
        if self.size != 1:
            raise ArgumentError(f"only an array of one element is a scalar; this one has shape {self.shape}")
        value: bool | int | float = self.numpy().item()
        return value

    def tolist(self) -> Any:
        return self.numpy().tolist()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ArgumentError(f"an array of shape {self.shape} is neither true nor false; use x.any() or x.all()")
        return bool(self.item())

    def __contains__(self, value: Any) -> bool:
        equal: Any = self == value
        return isinstance(equal, Array) and bool(equal.any())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if not self._spec.dtype.is_integer or self._spec.shape:
            raise TypeError("only an integer array of rank 0 is an index")
        return int(self.item())

    # ---- views and indices ----

    def __getitem__(self, key: Any) -> Array:
        item: Array | None = record_item(self, key)
        return get_item(self, key, self._recorder.owner.array) if item is None else item

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(value, (Recorded, np.generic, *PYTHON_SCALARS)):
            value = self._recorder.owner.array(value)
        check_may_assign(self)
        self._exchange(with_item(self, key, value, self._recorder.owner.array))

    def _exchange(self, other: Array) -> None:
        """Gives this object the value of another one of the same spec, which then has the value of this one."""
        self._handle, other._handle = other._handle, self._handle
        self._recorder, other._recorder = other._recorder, self._recorder

    def __iter__(self) -> Iterator[Array]:
        return (self[row] for row in range(len(self)))

    @property
    def T(self) -> Array:  # noqa: N802  # the name is NumPy's and the standard's
        """Returns the array with its axes in reverse order."""
        return operations.transpose(self)

    @property
    def mT(self) -> Array:  # noqa: N802
        """Returns the array with its last two axes exchanged."""
        rank = self.ndim
        if rank < 2:
            raise ArgumentError(f"a matrix transpose needs rank 2 or more, not {rank}")
        return operations.transpose(self, (*range(rank - 2), rank - 1, rank - 2))

    def transpose(self, *axes: int | Sequence[int] | None) -> Array:
        """Returns the array with its axes in the order of `axes`; without `axes`, in reverse order.

        The axes are given one by one or as a sequence.
        """
        return operations.transpose(self, _one_or_many(axes))

    def reshape(self, *shape: int | Sequence[int]) -> Array:
        """Returns the elements in another shape. One dim may be −1: it is computed from the others.

        The dims are given one by one or as a sequence.
        """
        dims = _one_or_many(shape)
        return operations.reshape(self, () if dims is None else dims)

    def flatten(self) -> Array:
        return operations.reshape(self, (-1,))

    ravel = flatten

    def squeeze(self, axis: Axis = None) -> Array:
        return operations.squeeze(self, axis)

    def astype(self, dtype: Any, *, copy: bool = True) -> Array:
        return operations.astype(self, dtype, copy=copy)

    def copy(self) -> Array:
        """Returns a new array of the same value. `x[i] = v` on one of the two arrays does not change the other."""
        return operations.reshape(self, self.shape)

    def take(self, indices: Any, axis: int | None = None) -> Array:
        """Returns the elements at `indices` along `axis`. If `axis` is None, `indices` select from the flat array.

        Raises IndexError for an index out of range in a list or a NumPy array. In an array on the server it means the
        first or the last element.
        """
        x, along = (self.flatten(), 0) if axis is None else (self, axis)
        return take_any(x, indices, along, self._recorder.owner.array)

    # ---- reductions ----

    def sum(self, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
        return _cast(operations.reduce("sum", _cast(self, dtype), axis, keepdims=keepdims), dtype)

    def prod(self, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
        return _cast(operations.reduce("prod", _cast(self, dtype), axis, keepdims=keepdims), dtype)

    def mean(self, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
        return _cast(operations.reduce("mean", _cast(self, dtype), axis, keepdims=keepdims), dtype)

    def var(self, axis: Axis = None, *, correction: float = 0, ddof: float = 0, keepdims: bool = False) -> Array:
        scalars = (operations.correction_of(correction, ddof),)
        return operations.reduce("var", self, axis, keepdims=keepdims, scalars=scalars)

    def std(self, axis: Axis = None, *, correction: float = 0, ddof: float = 0, keepdims: bool = False) -> Array:
        scalars = (operations.correction_of(correction, ddof),)
        return operations.reduce("std", self, axis, keepdims=keepdims, scalars=scalars)

    def min(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        return operations.reduce("min", self, axis, keepdims=keepdims)

    def max(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        return operations.reduce("max", self, axis, keepdims=keepdims)

    def any(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        return operations.reduce("any", self, axis, keepdims=keepdims)

    def all(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        return operations.reduce("all", self, axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Array:
        return operations.arg_reduce("argmin", self, axis, keepdims=keepdims)

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Array:
        return operations.arg_reduce("argmax", self, axis, keepdims=keepdims)

    def clip(self, min: Any = None, max: Any = None) -> Array:  # noqa: A002  # the names are NumPy's
        clipped: Array = self.__array_namespace__().clip(self, min, max)
        return clipped

    def round(self, decimals: int = 0) -> Array:
        """Rounds to `decimals` places, with ties to even. Negative `decimals` round to tens, hundreds, …"""
        return operations.round_to(self, decimals)

    def __round__(self, decimals: int = 0) -> Array:
        return self.round(decimals)

    def dot(self, other: Any) -> Array:
        """Does the same as `fusewire.dot(self, other)`."""
        product: Array = self.__array_namespace__().dot(self, other)
        return product

    # ---- other libraries ----

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        if api_version is not None and api_version > "2024.12":
            raise ValueError(f"version {api_version} of the array API is not supported")
        return sys.modules["fusewire"]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        function = numpy_protocols.counterpart_of(ufunc)
        if method != "__call__":
            raise numpy_protocols.unsupported(
                f"{ufunc.__name__}.{method}", writes=method == "at" and isinstance(inputs[0], Array)
            )
        if function is None:
            raise numpy_protocols.unsupported(ufunc.__name__)
        if "out" in options:
            raise _no_output(ufunc.__name__, options["out"])
        if options:
            raise TypeError(
                f"np.{ufunc.__name__} of arrays on a server takes no {', '.join(options)}; use where or astype"
            )
        return function(*inputs)

    def __array_function__(self, numpy_function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if numpy_function in _NEEDS_VALUES:
            return numpy_function(*map(_read, arguments), **{name: _read(each) for name, each in options.items()})
        function = numpy_protocols.counterpart_of(numpy_function)
        if function is None:
            writes = isinstance(numpy_protocols.writes_to(numpy_function, arguments, options), Array)
            raise numpy_protocols.unsupported(numpy_function.__name__, writes=writes)
        if options:
            arguments, options = numpy_protocols.translate_arguments(numpy_function, function, arguments, options)
        return function(*arguments, **options)

    def __reduce__(self) -> NoReturn:
        raise TypeError("an array lives on its server and cannot be pickled; pickle array.numpy() instead")

    def __deepcopy__(self, memo: dict[int, Any]) -> Array:
        return self.copy()

    def __copy__(self) -> Array:
        return self.copy()


def _read(argument: Any) -> Any:
    return argument.numpy() if isinstance(argument, Array) else argument


def _cast(array: Array, dtype: Any) -> Array:
    return array if dtype is None else operations.astype(array, dtype, copy=False)


def _one_or_many(given: tuple[Any, ...]) -> Any:
    """Returns the arguments of a call `f(…)` as one value.

    `f(1, 2)`, `f((1, 2))` and `f([1, 2])` mean the same. `f()` and `f(None)` give None.
    """
    if len(given) == 1:
        return given[0]
    return given or None
