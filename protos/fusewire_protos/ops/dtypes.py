"""Defines the dtypes of arrays, and the promotion rules: which dtype results when two dtypes meet in an operation.

Promotion follows NumPy 2 (NEP 50). So promotion also follows the array API standard, wherever the standard defines a
result. NumPy has no bfloat16. Here, bfloat16 promotes as float16 does, and float16 with bfloat16 gives float32.

The complex dtypes are known to clients alone, where an array of complex numbers is two arrays of floats, its parts.
They have no code on the wire, and no op takes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from fusewire_protos.errors import DtypeError

_Type = type  # in the class below, `type` is an attribute


@dataclass(frozen=True, eq=False)
class DType:
    """One dtype. The constants below are the only instances, so compare two of them by identity.

    A DType may be passed wherever NumPy takes a dtype. `isinstance` takes it for an `np.dtype`, so that functions such
    as `np.isdtype` do, and it has the attributes of one. A DType is equal to its name, to NumPy's dtype of that name,
    and to the scalar type of NumPy's dtype. The hash of a DType is the hash of NumPy's dtype; the hash of bfloat16 is
    the hash of its name.

    `code` identifies the dtype on the wire and is never reused. `kind` is NumPy's letter: "b" for booleans, "u" and "i"
    for unsigned and signed integers, "f" for floats, among which bfloat16 is here, "c" for complex numbers. The code of
    a complex dtype is negative, which no message and no op takes.
    """

    name: str
    code: int
    itemsize_bytes: int
    kind: str

    @property
    def itemsize(self) -> int:
        """Returns `itemsize_bytes` under NumPy's name."""
        return self.itemsize_bytes

    @property
    def is_floating(self) -> bool:
        return self.kind == "f"

    @property
    def is_integer(self) -> bool:
        return self.kind in "iu"

    @property
    def is_boolean(self) -> bool:
        return self.kind == "b"

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    @property
    def is_signed(self) -> bool:
        return self.kind in "if"

    @property
    def is_half(self) -> bool:
        """Returns whether this is float16 or bfloat16. Ops compute in float32 and round each result to such a dtype."""
        return self.is_floating and self.itemsize_bytes == 2

    @property
    def accumulator(self) -> DType:
        """Returns the dtype in which sums, products and matrix products of this dtype are accumulated."""
        return float32 if self.is_half else self

    @property
    def dtype(self) -> np.dtype[Any]:
        """Returns NumPy's dtype object. NumPy reads this attribute if a DType is passed where NumPy takes a dtype."""
        return to_numpy(self)

    @property
    def type(self) -> Any:
        """Returns the type of NumPy's scalars of this dtype."""
        return to_numpy(self).type

    if not TYPE_CHECKING:  # a type checker would allow every attribute, and take a DType for NumPy's

        @property
        def __class__(self) -> Any:
            """Returns NumPy's class to `isinstance`: `np.isdtype` silently answers False for any other class."""
            return np.dtype

        def __getattr__(self, name: str) -> Any:
            """Returns an attribute of NumPy's dtype."""
            try:
                return getattr(to_numpy(self), name)
            except DtypeError as missing:  # bfloat16 without its package
                raise AttributeError(str(missing)) from None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, str | _Type | np.dtype):
            return NotImplemented
        return self.name == other or self is _native_dtype(other)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # The hash of bfloat16 is that of its name, because NumPy's hash would need the import of ml_dtypes.
        return hash(self.name if self.name == "bfloat16" else np.dtype(self.name))

    def __repr__(self) -> str:
        return f"fusewire.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __call__(self, value: Any = 0) -> Any:
        """Returns a number as NumPy's scalar of this dtype, and an array cast to it, as NumPy's scalar types do."""
        cast = getattr(value, "astype", None)
        return self.type(value) if cast is None else cast(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Makes a copied or unpickled dtype the constant itself."""
        return (_from_name, (self.name,)) if self.is_complex else (from_code, (self.code,))


bool_ = DType("bool", 0, 1, "b")
uint8 = DType("uint8", 1, 1, "u")
int32 = DType("int32", 2, 4, "i")
int64 = DType("int64", 3, 8, "i")
float16 = DType("float16", 4, 2, "f")
bfloat16 = DType("bfloat16", 5, 2, "f")
float32 = DType("float32", 6, 4, "f")
float64 = DType("float64", 7, 8, "f")
int8 = DType("int8", 8, 1, "i")
int16 = DType("int16", 9, 2, "i")
uint16 = DType("uint16", 10, 2, "u")
uint32 = DType("uint32", 11, 4, "u")
uint64 = DType("uint64", 12, 8, "u")

SIGNED: tuple[DType, ...] = (int8, int16, int32, int64)
UNSIGNED: tuple[DType, ...] = (uint8, uint16, uint32, uint64)
FLOATING: tuple[DType, ...] = (float16, bfloat16, float32, float64)
ALL: tuple[DType, ...] = (bool_, *SIGNED, *UNSIGNED, *FLOATING)
BY_CODE: dict[int, DType] = {dtype.code: dtype for dtype in ALL}
BY_NAME: dict[str, DType] = {dtype.name: dtype for dtype in ALL}

complex64 = DType("complex64", -1, 8, "c")
complex128 = DType("complex128", -2, 16, "c")

COMPLEX: tuple[DType, ...] = (complex64, complex128)
COMPLEX_BY_NAME: dict[str, DType] = {dtype.name: dtype for dtype in COMPLEX}
_NAMED = BY_NAME | COMPLEX_BY_NAME

# The smallest float that holds every integer of so many bytes, as NumPy sees it; the largest one for longer integers.
_FLOAT_OF_BYTES: dict[int, DType] = {1: float16, 2: float32, 4: float64, 8: float64}


def from_code(code: int) -> DType:
    """Returns the dtype that has this code on the wire. Raises DtypeError for an unknown code."""
    try:
        return BY_CODE[code]
    except (KeyError, TypeError):
        raise DtypeError(f"unknown dtype code {code!r}; known are 0..{len(ALL) - 1}") from None


@cache
def promote(a: DType, b: DType) -> DType:
    """Returns the dtype to which arrays of two dtypes promote."""
    if a is b:
        return a
    if a.is_complex or b.is_complex:
        return complex_of(promote(part_of(a), part_of(b)))
    if a.is_floating and b.is_floating:
        return _promote_floats(a, b)
    if a.is_floating or b.is_floating:
        floating, other = (a, b) if a.is_floating else (b, a)
        return floating if other.is_boolean else max(floating, to_floating(other), key=_size_bytes)
    if a.is_boolean or b.is_boolean:
        return b if a.is_boolean else a
    return _promote_integers(a, b)


def promote_all(dtypes: Iterable[DType]) -> DType:
    """Returns the dtype to which arrays of one or more dtypes promote. A float that holds every integer stays one."""
    return reduce(promote, sorted(dtypes, key=_is_exact))


def part_of(dtype: DType) -> DType:
    """Returns the float dtype of the parts of complex numbers. Of a real dtype it is the float that holds it."""
    if dtype.is_complex:
        return float32 if dtype is complex64 else float64
    return to_floating(dtype)


def complex_of(floating: DType) -> DType:
    """Returns the smallest complex dtype whose parts hold a float dtype."""
    return complex128 if floating is float64 else complex64


def to_floating(dtype: DType) -> DType:
    """Returns the dtype in which NumPy evaluates a function such as `exp` of an argument of `dtype`."""
    return dtype if dtype.is_floating or dtype.is_complex else _FLOAT_OF_BYTES[dtype.itemsize_bytes]


def quotient(dtype: DType) -> DType:
    """Returns the dtype of a true division or a mean. The result is float64 for integers and booleans."""
    return dtype if dtype.is_floating or dtype.is_complex else float64


def of_scalar(value: complex, beside: DType) -> DType:
    """Returns the dtype that a Python scalar takes if the other operand is an array of dtype `beside` (NEP 50)."""
    if isinstance(value, bool):
        return beside
    if isinstance(value, complex):
        return beside if beside.is_complex else complex_of(quotient(beside))
    if isinstance(value, int):
        return int64 if beside.is_boolean else beside
    return quotient(beside)


@cache
def to_numpy(dtype: DType) -> np.dtype[Any]:
    """Returns NumPy's dtype object. Raises DtypeError for bfloat16 if the package ml_dtypes is missing."""
    if dtype is not bfloat16:
        return np.dtype(dtype.name)
    try:
        from ml_dtypes import bfloat16 as numpy_bfloat16  # noqa: PLC0415 - optional, and slow to import
    except ImportError:
        raise DtypeError("bfloat16 values need the package ml_dtypes: pip install ml_dtypes") from None
    numpy_dtype: np.dtype[Any] = np.dtype(numpy_bfloat16)
    return numpy_dtype


@cache
def from_numpy(dtype: np.dtype[Any]) -> DType:
    """Returns the DType for NumPy's dtype. Raises DtypeError for an unsupported dtype."""
    found = BY_NAME.get(dtype.name)
    if found is None or dtype.hasobject:
        known = ", ".join(BY_NAME)
        instead = "; text and objects stay in arrays of NumPy's" if dtype.kind in "OSU" else ""
        raise DtypeError(f"dtype {dtype.name} is not supported; supported are {known}{instead}")
    return found


def _native_dtype(given: str | type | np.dtype[Any]) -> DType | None:
    """Returns the DType for anything that NumPy takes as a dtype.

    Returns None if Fusewire has no such dtype, or if the dtype has another byte order than this machine.
    """
    try:
        numpy_dtype = np.dtype(given)
    except (TypeError, ValueError, SyntaxError, AttributeError):  # NumPy parses some texts as lists of fields
        return None
    return _NAMED.get(numpy_dtype.name) if numpy_dtype.isnative else None


def _from_name(name: str) -> DType:
    return _NAMED[name]


def _promote_floats(a: DType, b: DType) -> DType:
    if a.itemsize_bytes == b.itemsize_bytes:
        return a if a is b else float32  # of float16 and bfloat16
    return max(a, b, key=_size_bytes)


def _promote_integers(a: DType, b: DType) -> DType:
    """Returns the smallest integer dtype that holds both; float64 if there is none, as for int64 and uint64."""
    if a.kind == b.kind:
        return max(a, b, key=_size_bytes)
    signed, unsigned = (a, b) if a.is_signed else (b, a)
    if signed.itemsize_bytes > unsigned.itemsize_bytes:
        return signed
    return next((dtype for dtype in SIGNED if dtype.itemsize_bytes > unsigned.itemsize_bytes), float64)


def _is_exact(dtype: DType) -> bool:
    return not (dtype.is_floating or dtype.is_complex)


def _size_bytes(dtype: DType) -> int:
    return dtype.itemsize_bytes
