"""The array of complex numbers: two real arrays on the server, its parts, of which the server knows nothing more.

What an op makes of complex numbers is recorded as ops of their parts (`complex_ops`). The class has what follows from a
value as a whole: reading it, its parts, and assignment. All else it inherits, because methods and functions of arrays
record ops by `apply`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, NoReturn, Self

import numpy as np

from fusewire._api.array import Array
from fusewire._api.indexing.assignment import with_combined_item
from fusewire._api.indexing.writes import COMBINATIONS
from fusewire._api.ops.strided import with_view
from fusewire._errors import DtypeError, ShapeError, WaitTimeout
from fusewire._recording.bodies.body import check_may_assign
from fusewire._recording.recorded_ops import Recorded, exchange, exchanging
from fusewire._recording.recorder import Recorder
from fusewire._recording.signature import intern_spec
from fusewire._stream.receivers import UserFuture, Value
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec


def _in_place(operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Returns the method of `z op= v`. The result is cast to the dtype of `z`; of rank 0, it is the result itself."""

    def assign(z: Any, value: Any) -> Any:
        result = operator(z, value)
        if result is NotImplemented or not z.shape:
            return result
        if result.shape != z.shape:
            raise ShapeError(f"an assignment in place keeps the shape {z.shape}, but its result has {result.shape}")
        z._assign(result.astype(z.dtype, copy=False))
        return z

    return assign


class ComplexArray(Array):
    """An array of complex numbers, of dtype complex64 or complex128.

    `real_part` and `imag_part` are arrays of one session and shape, both float32 or both float64, which the new array
    owns: nobody else may hold or assign to them. Raises ShapeError and DtypeError for others.
    """

    __slots__ = ("imag_part", "real_part")

    real_part: Array
    imag_part: Array

    def __new__(cls, real_part: Array, imag_part: Array) -> Self:
        shape, part = real_part.shape, real_part.dtype
        if imag_part.shape != shape:
            raise ShapeError(f"the parts of complex numbers have one shape, not {shape} and {imag_part.shape}")
        if imag_part.dtype is not part or part not in (dtypes.float32, dtypes.float64):
            raise DtypeError(
                f"the parts of complex numbers are both float32 or both float64, not {part.name} and "
                f"{imag_part.dtype.name}"
            )
        made = Recorded.__new__(cls)
        made._spec = intern_spec(Spec(dtypes.complex_of(part), shape), real_part._spec.limit_bytes)
        made.real_part = real_part
        made.imag_part = imag_part.copy() if imag_part is real_part else imag_part  # each is assigned to by itself
        return made

    @property
    def _recorder(self) -> Recorder:  # type: ignore[override]  # what records in C sees none, and leaves the op to Python
        return self.real_part._recorder

    @property
    def parts(self) -> tuple[Array, Array]:
        return self.real_part, self.imag_part

    @property
    def real(self) -> Array:
        """Returns a copy of the real part."""
        return self.real_part.copy()

    @property
    def imag(self) -> Array:
        """Returns a copy of the imaginary part."""
        return self.imag_part.copy()

    # ---- assignment ----

    @partial(exchanging, make=Array._with_item)  # which warns of an assignment that is lost, and then calls this one
    def __setitem__(self, key: Any, value: Any) -> None:
        self._assign(self._with_item(key, value))

    def _write_view(self, value: Any, shape: Sequence[int], strides: Sequence[int], start: int) -> None:
        self._assign(with_view(self, self._operand(value), shape, strides, start))

    def _combine_at(self, op: str, key: Any, value: Any) -> None:
        operand = self._operand(value)
        self._assign(with_combined_item(self, key, operand, self.session.array, COMBINATIONS[op]))

    def _assign(self, new: Array) -> None:
        """Gives the parts their new values, in place, so that all names of the array and of its parts show them."""
        assert isinstance(new, ComplexArray)
        for part in self.parts:
            check_may_assign(part)
        for part, value in zip(self.parts, new.parts, strict=True):
            exchange(part, value)

    __iadd__, __isub__, __imul__ = _in_place(Array.__add__), _in_place(Array.__sub__), _in_place(Array.__mul__)
    __itruediv__, __ipow__ = _in_place(Array.__truediv__), _in_place(Array.__pow__)
    __imatmul__ = _in_place(Array.__matmul__)

    @property
    def mH(self) -> Array:  # noqa: N802
        """Returns the conjugate with its last two axes exchanged."""
        return self.mT.conj()

    def round(self, decimals: int = 0) -> Array:
        """Rounds both parts, as `Array.round` does."""
        return type(self)(*[part.round(decimals) for part in self.parts])

    # ---- reading: waits for the value ----

    def numpy(self, timeout: float | None = None) -> Value:
        """Waits for the value and returns it. Both parts come in one round trip. Raises what `Array.numpy` raises."""
        session = self.session
        real = session.fetch(self.real_part)
        imag = session.read(self.imag_part, timeout)
        try:
            return joined(real.result(timeout), imag)
        except TimeoutError:
            raise WaitTimeout(f"the value did not come within {timeout} s; the work goes on") from None

    def future(self) -> Future[Value]:
        """Returns a future of the value. Its callbacks run in the client's I/O thread and must not wait."""
        session = self.session
        return _joined_future(session.fetch(self.real_part), session.fetch(self.imag_part))

    def __await__(self) -> Generator[Any, None, Value]:
        return asyncio.wrap_future(self.future()).__await__()

    def __int__(self) -> NoReturn:
        raise TypeError("a complex number is no int; take x.real first")

    __trunc__ = __int__

    def __float__(self) -> NoReturn:
        raise TypeError("a complex number is no float; take x.real first")


def joined(real: Value, imag: Value) -> Value:
    """Returns complex numbers of their parts. `real + 1j * imag` would change signed zeros and infinities."""
    value = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
    value.real, value.imag = real, imag
    return value


def _joined_future(real: Future[Value], imag: Future[Value]) -> Future[Value]:
    """Returns a future that is done when both are, and fails as the first of them that failed."""
    both = UserFuture()
    both.set_running_or_notify_cancel()
    take: Callable[[Future[Value]], None] = partial(_take_both, both, real, imag)
    real.add_done_callback(lambda _: imag.add_done_callback(take))
    return both


def _take_both(both: Future[Value], real: Future[Value], imag: Future[Value], _last: Future[Value]) -> None:
    error = real.exception() or imag.exception()
    if error is not None:
        both.set_exception(error)
    else:
        both.set_result(joined(real.result(), imag.result()))
