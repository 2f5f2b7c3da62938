"""Names of NumPy's that mean the same here, because they are about no array on the server, or make one of a file."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from fusewire._recording.default_session import default_session

# These make arrays from no array: from files, texts and iterators.
MAKE_ARRAYS = ("frombuffer", "fromfile", "fromiter", "fromregex", "fromstring", "genfromtxt", "load", "loadtxt")
# These take no array, are about NumPy itself, or read what they show and save.
ABOUT_NO_ARRAY = (
    *("array2string", "array_repr", "array_str", "save", "savetxt", "savez", "savez_compressed"),
    *("base_repr", "binary_repr", "busday_count", "busday_offset", "datetime_as_string", "datetime_data", "is_busday"),
    *("mask_indices", "einsum_path", "nested_iters"),
    *("euler_gamma", "format_float_positional", "format_float_scientific", "isscalar", "iterable", "typename"),
    *("errstate", "get_include", "get_printoptions", "getbufsize", "geterr", "geterrcall", "info", "mintypecode"),
    *("frompyfunc", "printoptions", "set_printoptions", "setbufsize", "seterr", "seterrcall"),
    *("complexfloating", "dtype", "floating", "generic", "inexact", "integer", "issubdtype", "number", "signedinteger"),
    *("show_config", "show_runtime", "unsignedinteger"),
)


def of_numpy(name: str) -> Any:
    """Returns NumPy's own object for `ABOUT_NO_ARRAY`, a function that uploads for `MAKE_ARRAYS`, None for others."""
    if name in ABOUT_NO_ARRAY:
        return getattr(np, name)
    return _uploading(getattr(np, name)) if name in MAKE_ARRAYS else None


def _uploading(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that uploads the array that a function of NumPy makes. What is no array stays as it is."""

    @wraps(function)
    def make(*arguments: Any, **options: Any) -> Any:
        made = function(*arguments, **options)
        return default_session().array(made) if isinstance(made, np.ndarray) else made

    return make
