"""Unpacks the fields of a program's bytes in steps, and tells whether the bytes are canonical.

Bytes are compared instead of values. A client could choose lists of numbers that all have one hash in Python; a set of
these would take seconds. The hashes of bytes differ from process to process.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgpack

from fusewire_protos.errors import CaseError
from fusewire_protos.in_steps import InSteps
from fusewire_protos.programs.limits import MOST_LEAVES
from fusewire_protos.reader import Reader, head_of, skipper
from fusewire_protos.unpacking import unpack

_MOST_FIELDS = 8
_STEP_BYTES = 2 << 10  # of listed items; each of them takes some 2 µs and has at least one byte


class Unpacked(NamedTuple):
    """The fields of a program's bytes.

    The bytes are canonical if each number has its shortest form, and each spec and each signature is listed once.
    """

    fields: tuple[Any, ...]
    is_canonical: bool


class _Listed(NamedTuple):
    items: tuple[Any, ...]
    is_canonical: bool


def unpacked(raw: bytes) -> InSteps[Unpacked]:
    """Returns the fields that `raw` lists. Raises CaseError unless `raw` is msgpack of lists and bytes."""
    head = head_of(raw)
    if head is None or head.length > _MOST_FIELDS:
        return Unpacked((), is_canonical=False)
    ends = _ends_of_fields(raw, head.length)
    fields, is_canonical = [], head.size_bytes == 1
    for begin, end in zip([head.size_bytes, *ends], ends, strict=False):
        field = raw[begin:end]
        if head_of(field) is None:
            value = unpack(field, longest_array=0)
            is_canonical = is_canonical and msgpack.packb(value) == field
        else:
            value, is_listed_well = yield from _listed(field)
            is_canonical = is_canonical and is_listed_well
        fields.append(value)
    return Unpacked(tuple(fields), is_canonical)


def _ends_of_fields(raw: bytes, count: int) -> list[int]:
    """Returns the position behind each field. Raises CaseError if a field is truncated or if bytes follow the last."""
    walker, ends = skipper(raw), []
    try:
        walker.read_array_header()
        for _ in range(count):
            walker.skip()
            ends.append(walker.tell())
    except (ValueError, msgpack.UnpackException) as error:
        raise CaseError("undecodable_frame", f"not msgpack of the expected form: {type(error).__name__}") from None
    if ends[-1:] != [len(raw)]:
        raise CaseError("undecodable_frame", "there are bytes behind the last field")
    return ends


def _listed(field: bytes) -> InSteps[_Listed]:
    """Returns the items of a list, each of which is a list too. Raises CaseError."""
    reader = Reader(field, _as_it_is, most_listed=MOST_LEAVES)
    packer, items, seen = msgpack.Packer(), [], set()
    head: bytes = packer.pack_array_header(len(reader))
    is_canonical, position, step_ends = field.startswith(head), len(head), _STEP_BYTES
    while reader:
        item = next(reader)
        items.append(item)
        packed = packer.pack(item)
        is_canonical = is_canonical and field.startswith(packed, position) and packed not in seen
        seen.add(packed)
        position += len(packed)
        if reader.position >= step_ends:
            step_ends = reader.position + _STEP_BYTES
            yield
    return _Listed(tuple(items), is_canonical)


def _as_it_is(item: Any) -> Any:
    return item
