"""Lets the tests of array-api-extra know Fusewire as a backend: adds it to the enumeration that they go through."""

from __future__ import annotations

from enum import Enum
from typing import Any

from array_api_extra._lib import _backends

_METHODS = ("modname", "like", "pytest_param")

_known = _backends.Backend
_methods = type("BackendMethods", (), {name: vars(_known)[name] for name in _METHODS})
_members = {each.name: each.value for each in _known} | {"FUSEWIRE": "fusewire"}
_enumeration: Any = Enum  # a type checker wants the members written out
_backends.Backend = _enumeration("Backend", _members, type=_methods)
