"""Says what to write for a name that the namespace lacks."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from types import ModuleType

import numpy as np

from fusewire._api.names_of_numpy import ABOUT_NO_ARRAY, ITERATE, MAKE_ARRAYS, OTHER_NAMES
from fusewire_protos.ops import dtypes

_INSTEAD = {
    "common_type": "fw.result_type",
}
# What to write for members of NumPy's arrays.
_INSTEAD_OF_MEMBERS = {
    "__array_interface__": "x.numpy(), whose memory others can read",
    "base": "None: every array is a value of its own",
    "byteswap": "x.numpy().byteswap()",
    "ctypes": "x.numpy().ctypes",
    "data": "x.numpy().data",
    "dump": "x.numpy().dump(file)",
    "dumps": "x.numpy().dumps()",
    "flags": "x.numpy().flags",
    "getfield": "x.numpy().getfield(dtype)",
    "resize": "x = fw.resize(x, shape)",
    "setfield": "x[...] = v",
    "setflags": "nothing: every array can be written",
    "tofile": "x.numpy().tofile(file)",
    "to": "x.astype(dtype)",
}
_INSTEAD_OF_DRAWS = {
    "bit_generator": ": a generator that is copied or pickled draws on from where it was",
    "spawn": ": draw by keys, fw.random.split(fw.random.key(seed), n)",
}


def missing(name: str, known: Sequence[str]) -> AttributeError:
    """Returns the error of an attribute `name` that the module lacks. It names the nearest of the `known` names.

    For a name of NumPy's the error says how NumPy computes it from the values of arrays.
    """
    hint = "" if name.startswith("_") else instead_of(name) or _nearest(name, known)
    text = f"module 'fusewire' has no attribute {name!r}"
    return AttributeError(f"{text}: {hint}" if hint else text, name=name)


def missing_member(name: str) -> AttributeError:
    """Returns the error of an attribute `name` that arrays lack. It says what to write for a name of NumPy's arrays."""
    text = f"'Array' object has no attribute {name!r}"
    instead = _INSTEAD_OF_MEMBERS.get(name)
    return AttributeError(f"{text}: write {instead}" if instead else text, name=name)


def instead_of_draw(name: str) -> str:
    """Returns what to write for a name that only NumPy's generator has, or an empty text for another name."""
    if name in _INSTEAD_OF_DRAWS:
        return _INSTEAD_OF_DRAWS[name]
    is_numpys = hasattr(np.random.Generator, name) and not name.startswith("_")
    return f": NumPy draws it, fw.asarray(np.random.default_rng(seed).{name}(…))" if is_numpys else ""


def instead_of(name: str) -> str:
    """Returns what to write for a name of NumPy's that there is not here, or an empty text for another name."""
    if name in _INSTEAD:
        return f"write {_INSTEAD[name]}"
    if name in OTHER_NAMES:
        return f"another name of fw.{OTHER_NAMES[name]}"
    if name in MAKE_ARRAYS:
        return f"uploads what NumPy makes, np.{name}"
    if name in ITERATE:
        return f"NumPy's own, np.{name}, over values that are read only"
    if name in ABOUT_NO_ARRAY:
        return f"NumPy's own, np.{name}"
    in_numpy = getattr(np, name, None)
    if isinstance(in_numpy, type) and issubclass(in_numpy, np.generic):
        return f"it is no dtype here; the dtypes are {', '.join([*dtypes.BY_NAME, *dtypes.COMPLEX_BY_NAME])}"
    if isinstance(in_numpy, ModuleType):
        return f"give NumPy's functions values, np.{name}.…(x.numpy())"
    return f"NumPy computes it from values, np.{name}(x.numpy())" if callable(in_numpy) else ""


def _nearest(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else ""
