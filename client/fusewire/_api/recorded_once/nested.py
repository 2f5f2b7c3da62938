"""Takes nested tuples, lists and dicts of arrays apart, and puts others of the same form together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from fusewire._api.complex.complex_array import ComplexArray
from fusewire._errors import ArgumentError


class Form(NamedTuple):
    """The form of a nested value. Equal forms hold equally many leaves, in the same places.

    `kind` is the class of a tuple, list or dict, or None for a leaf. `keys` are those of a dict, and `key_types` their
    classes, as 1 and 1.0 are equal.
    """

    kind: type | None
    parts: tuple[Form, ...] = ()
    keys: tuple[Hashable, ...] = ()
    key_types: tuple[type, ...] = ()

    def __str__(self) -> str:
        """Returns the form as Python shows a value of it, with `_` for each leaf, and `_+_j` for a complex array."""
        return repr(_built(self, repeat(_Shown()), lambda _: _Shown("_+_j")))


class _Shown:
    """A leaf in the text of a form."""

    def __init__(self, text: str = "_") -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


_LEAF = Form(None)
_COMPLEX = Form(ComplexArray, (_LEAF, _LEAF))


def flatten(value: Any) -> tuple[list[Any], Form]:
    """Returns the leaves of a nested value in order, and its form. Dicts are taken in the order of insertion.

    An array of complex numbers is taken apart as a tuple of its two parts.

    Raises ArgumentError for a Counter or defaultdict, because its items alone do not make another of its class.
    """
    if isinstance(value, tuple | list):
        leaves, parts = _flatten_all(value)
        return leaves, Form(type(value), parts)
    if isinstance(value, dict):
        if isinstance(value, Counter | defaultdict):
            raise ArgumentError(f"a {type(value).__name__} of arrays; pass a dict")
        leaves, parts = _flatten_all(value.values())
        return leaves, Form(type(value), parts, tuple(value), tuple(map(type, value)))
    if type(value) is ComplexArray:
        return [*value.parts], _COMPLEX
    if type(value) is np.ndarray and value.dtype.kind == "c":
        return [value.real, value.imag], _COMPLEX
    return [value], _LEAF


def unflatten(form: Form, leaves: list[Any]) -> Any:
    """Returns a value of this form with these leaves."""
    return _built(form, iter(leaves))


def _flatten_all(values: Any) -> tuple[list[Any], tuple[Form, ...]]:
    flattened = [flatten(each) for each in values]
    return [leaf for leaves, _ in flattened for leaf in leaves], tuple([form for _, form in flattened])


def _built(
    form: Form, leaves: Iterator[Any], of_parts: Callable[[list[Any]], Any] = lambda parts: ComplexArray(*parts)
) -> Any:
    if form.kind is None:
        return next(leaves)
    parts = [_built(part, leaves, of_parts) for part in form.parts]
    if form.kind is ComplexArray:
        return of_parts(parts)
    if issubclass(form.kind, dict):
        return form.kind(zip(form.keys, parts, strict=True))
    make: Callable[[Any], Any] = getattr(form.kind, "_make", form.kind)  # a named tuple takes its fields one by one
    return make(parts)
