"""Encodes what processes of a server tell each other: named tuples, one line of JSON each. Pure.

A field is plain data, bytes, a configuration, or tuples of these.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from fusewire_server.config.config import SECTIONS, SETTINGS, Config, load, plain_value_of


class Fault(NamedTuple):
    """A child process cannot begin, and ends."""

    text: str


def encode(message: Any, sections: Iterable[str] = SECTIONS) -> bytes:
    """Returns the line of a message. Of a configuration it has these sections."""
    return (
        json.dumps([type(message).__name__, message], default=partial(_plain, sections=frozenset(sections))).encode()
        + b"\n"
    )


def decode(line: bytes, kinds: Iterable[type[Any]]) -> Any:
    """Reads the line of a message of one of these kinds."""
    name, fields = json.loads(line)
    return _of_kind({kind.__name__: kind for kind in kinds}[name], fields)


def _plain(value: object, sections: frozenset[str]) -> object:
    if isinstance(value, bytes):
        return value.hex()
    assert isinstance(value, Config), "other fields are plain data"
    names = [name for name in SETTINGS if name.partition(".")[0] in sections]
    return {name: plain for name in names if (plain := plain_value_of(value, name)) is not None}


def _of_kind(kind: Any, raw: Any) -> Any:
    if kind is bytes:
        return bytes.fromhex(raw)
    if kind is Config:
        return load(None, {}, raw).config
    if get_origin(kind) is tuple:
        return tuple([_of_kind(get_args(kind)[0], each) for each in raw])
    if hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        return kind(*[_of_kind(hints[name], each) for name, each in zip(kind._fields, raw, strict=True)])
    return raw
