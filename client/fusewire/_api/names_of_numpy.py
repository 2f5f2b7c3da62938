"""Names of NumPy's beside those of `__all__`: other names of these, and names that mean the same here as in NumPy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from fusewire._recording.default_session import default_session
from fusewire._recording.recorded_ops import Recorded

# Names of NumPy's -> ours.
OTHER_NAMES = {
    "asanyarray": "asarray",
    "ascontiguousarray": "asarray",
    "byte": "int8",
    "cdouble": "complex128",
    "csingle": "complex64",
    "double": "float64",
    "half": "float16",
    "int_": "int64",
    "intc": "int32",
    "intp": "int64",
    "longlong": "int64",
    "ndarray": "Array",
    "row_stack": "vstack",
    "short": "int16",
    "single": "float32",
    "ubyte": "uint8",
    "uint": "uint64",
    "uintc": "uint32",
    "uintp": "uint64",
    "ulonglong": "uint64",
    "ushort": "uint16",
}
# These make arrays from no array, from files, texts and iterators, or from the few coefficients of a polynomial.
MAKE_ARRAYS = (
    *("frombuffer", "fromfile", "fromiter", "fromregex", "fromstring", "genfromtxt", "load", "loadtxt"),
    *("poly", "polyadd", "polyder", "polydiv", "polyint", "polymul", "polysub", "roots"),
)
# These take no array, are about NumPy itself, or read the arrays that they are given.
ABOUT_NO_ARRAY = (
    *("array2string", "array_repr", "array_str", "save", "savetxt", "savez", "savez_compressed"),
    *("base_repr", "binary_repr", "busday_count", "busday_offset", "datetime_as_string", "datetime_data", "is_busday"),
    *("mask_indices", "einsum_path", "poly1d"),
    *("euler_gamma", "format_float_positional", "format_float_scientific", "isscalar", "iterable", "typename"),
    *("char", "exceptions", "ma", "polynomial", "strings"),
    *("False_", "True_", "ndenumerate", "ndindex", "vectorize"),
    *("errstate", "get_include", "get_printoptions", "getbufsize", "geterr", "geterrcall", "info", "mintypecode"),
    *("frompyfunc", "printoptions", "set_printoptions", "setbufsize", "seterr", "seterrcall"),
    *("complexfloating", "dtype", "floating", "generic", "inexact", "integer", "issubdtype", "number", "signedinteger"),
    *("show_config", "show_runtime", "unsignedinteger"),
)
# These can write to the arrays that they iterate over. So they get values that NumPy refuses to write to.
ITERATE = ("nditer", "nested_iters")


def of_numpy(name: str) -> Any:
    """Returns what a name of NumPy's means here beside those of `__all__`, or None if it means nothing."""
    if name in OTHER_NAMES:
        return getattr(sys.modules["fusewire"], OTHER_NAMES[name])
    if name in ABOUT_NO_ARRAY:
        return getattr(np, name)
    if name in ITERATE:
        return _iterating(getattr(np, name))
    return _uploading(getattr(np, name)) if name in MAKE_ARRAYS else None


def _uploading(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that uploads the array that a function of NumPy makes, or a tuple of them, and nothing else.

    Arrays that it is given are read, and the session of the first of them gets the result.
    """

    @wraps(function)
    def make(*arguments: Any, **options: Any) -> Any:
        owner = next(
            (each._recorder.owner for each in (*arguments, *options.values()) if isinstance(each, Recorded)), None
        )

        def upload(result: Any) -> Any:
            return (owner or default_session()).array(result) if isinstance(result, np.ndarray) else result

        made = function(*map(value_of, arguments), **{name: value_of(given) for name, given in options.items()})
        if isinstance(made, tuple):
            return tuple(upload(each) for each in made)
        return upload(made)

    return make


def _iterating(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns an iterator of NumPy's over values of arrays, which are read. It raises ValueError if it is to write."""

    @wraps(function)
    def iterate(op: Any, *arguments: Any, **options: Any) -> Any:
        values = [_read_only(each) for each in op] if isinstance(op, list | tuple) else _read_only(op)
        return function(values, *arguments, **options)

    return iterate


def _read_only(given: Any) -> Any:
    if not isinstance(given, Recorded):
        return given
    value = np.array(given)
    value.flags.writeable = False
    return value


def value_of(given: Any) -> Any:
    """Waits for the value of an array. What is none stays as it is."""
    return np.asarray(given) if isinstance(given, Recorded) else given
