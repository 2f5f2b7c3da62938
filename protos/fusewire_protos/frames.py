"""Encodes and decodes a client's frame: an ordered list of entries, and the new programs that the entries use.

Both fields are msgpack, under the same rules as in `program_parts`. The field `programs` is a list. Each of
its items is a list [number, is_fragment, program bytes]. The field `bindings` is a list of entries. An entry is a list
that begins with its `EntryKind`. The server applies entries in order.

The client numbers its values with 64-bit handles. A segment does not list the handles of its results: result j of a
segment with base b has handle b + j. If the scalars of a segment repeat, only the shortest period is sent; the starts
are sent in the same way. So a segment of 64 loop bodies with the same factor sends the factor once.

A frame may be long. `read_entries` and `read_programs` decode one item at a time, so that the server can serve other
sessions between two items. An error in an item is raised when the item is decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from math import isqrt
from reprlib import repr as shortened
from typing import Any, NamedTuple

import msgpack

from fusewire_protos import shapes
from fusewire_protos.dtypes import from_code
from fusewire_protos.errors import CaseError, DtypeError, ShapeError
from fusewire_protos.program_limits import ProgramLimits
from fusewire_protos.reader import Reader
from fusewire_protos.shapes import Spec
from fusewire_protos.unpacking import unpack

PROTOCOL_VERSION = 1
MAX_HANDLE = 2**63 - 1
HANDLES_PER_RECORDER = 2**40
FIRST_UPLOAD = 2**39  # counted from a recorder's first handle: handles below this are results, others are uploads
INLINE_BYTES = 32 << 10  # uploads and results up to this size travel in the frame itself
MAX_ENTRIES = 1 << 15  # limits entries and new programs of a frame, because even small entries take time to apply
MAX_FREED = 1 << 15  # handles that one entry frees
SHORT_BYTES = 16 << 10  # entries of at most so many bytes together are decoded within a millisecond

Scalar = bool | int | float
_SCALARS = frozenset((bool, int, float))


class EntryKind(IntEnum):
    """Names the kind of an entry. The kind is the first element of the entry on the wire."""

    SEGMENT = 0
    UPLOAD = 1
    FREE = 2
    FETCH = 3
    ABANDON = 4
    CANCEL = 5
    FORGET = 6


class Segment(NamedTuple):
    """One use of a program.

    `base` is the handle of the first result. `inputs` are handles. `dying` are indices into `inputs`: the handles at
    these indices die with this segment.
    """

    program: int
    base: int
    inputs: tuple[int, ...]
    scalars: tuple[Scalar, ...]  # one shortest period
    starts: tuple[int, ...]  # one shortest period
    dying: tuple[int, ...]


class Upload(NamedTuple):
    """Declares a handle whose value the client sends.

    `tensor` is the index of the value's bytes among the tensors of this frame. If `tensor` is None, the bytes travel in
    a separate upload call.
    """

    handle: int
    spec: Spec
    tensor: int | None


class Free(NamedTuple):
    """Lists handles that die."""

    handles: tuple[int, ...]


class Fetch(NamedTuple):
    """Asks for a value. A second fetch with the same number asks for the same answer again."""

    fetch: int
    handle: int


class Abandon(NamedTuple):
    """Withdraws a fetch. The server does not send its answer."""

    fetch: int


class Cancel(NamedTuple):
    """Cancels all segments before this entry that are not submitted yet."""


class Forget(NamedTuple):
    """Drops a program. The client does not use the program's number again."""

    program: int


Entry = Segment | Upload | Free | Fetch | Abandon | Cancel | Forget


class NewProgram(NamedTuple):
    """A program sent for the first time. A fragment runs op by op, and is compiled only if it is used often."""

    number: int
    is_fragment: bool
    raw: bytes


def encode_entries(entries: Sequence[Entry]) -> bytes:
    """Returns the field `bindings` of a frame."""
    raw: bytes = msgpack.packb([_ENCODERS[type(entry)](entry) for entry in entries])
    return raw


def encode_programs(programs: Sequence[NewProgram]) -> bytes:
    """Returns the field `programs` of a frame."""
    raw: bytes = msgpack.packb(programs)
    return raw


def decode_entries(raw: bytes) -> list[Entry]:
    """Returns the entries of a frame's `bindings`. Raises CaseError (a protocol case) for malformed bytes."""
    if not raw:
        return []
    items = unpack(raw, longest_array=len(raw))
    if type(items) is not tuple:
        raise CaseError("undecodable_frame", "bindings are not a list")
    _check_count(len(items), "entries")
    return [_entry(item) for item in items]


def decode_programs(raw: bytes) -> list[NewProgram]:
    """Returns the programs of a frame. Raises CaseError (a protocol case) for malformed bytes."""
    return [*read_programs(raw)]


def read_entries(raw: bytes, most_listed: int) -> Reader[Entry]:
    """Returns a reader that decodes the entries of a frame's `bindings` one by one. Raises CaseError.

    `most_listed` is the most elements that any list inside an entry may have.
    """
    reader = Reader(raw, _entry, most_listed)
    _check_count(len(reader), "entries")
    return reader


def read_programs(raw: bytes) -> Reader[NewProgram]:
    """Returns a reader that decodes the programs of a frame one by one. Raises CaseError."""
    reader = Reader(raw, _new_program, most_listed=0)
    _check_count(len(reader), "programs")
    return reader


def most_listed(limits: ProgramLimits) -> int:
    """Returns the most numbers that a list inside an entry may hold.

    Such a list holds freed handles, or the bindings of a program that keeps to `limits`.
    """
    return max(MAX_FREED, limits.program_operands, shapes.MAX_RANK * limits.program_ops)


def _check_count(count: int, what: str) -> None:
    if count > MAX_ENTRIES:
        raise CaseError("oversized_frame", f"{count} {what} in a frame, which holds at most {MAX_ENTRIES}")


def shortest_period(values: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """Returns the shortest first part of `values` that gives `values` when it is repeated.

    Values are compared as encoded bytes. So 1, 1.0 and True differ, and 0.0 differs from −0.0, but NaN equals NaN.
    """
    count = len(values)
    if count <= 1:
        return tuple(values)
    sent = _packed(values)
    return next(
        tuple(values[:period]) for period in _divisors(count) if _packed(values[:period]) * (count // period) == sent
    )


def repeat_period(period: tuple[Any, ...], length: int, what: str) -> tuple[Any, ...]:
    """Repeats `period` to `length` values. Raises CaseError if `length` is no multiple of the length of `period`."""
    if len(period) == length:
        return period
    if not period or not length or length % len(period):
        raise CaseError("bad_binding", f"{len(period)} {what} do not repeat to {length}")
    return period * (length // len(period))


def _packed(values: Sequence[Scalar]) -> bytes:
    """Returns the encoded values one after another, without the head of the msgpack list.

    The head is left out because its length depends on the number of values.
    """
    head_bytes = 1 if len(values) < 1 << 4 else 3 if len(values) < 1 << 16 else 5
    packed: bytes = msgpack.packb(values)
    return packed[head_bytes:]


def _divisors(number: int) -> list[int]:
    """Returns the divisors of `number`, ascending. If `number` is a square, its root is listed twice."""
    lower = [divisor for divisor in range(1, isqrt(number) + 1) if number % divisor == 0]
    return lower + [number // divisor for divisor in reversed(lower)]


def _encode_segment(entry: Segment) -> tuple[Any, ...]:
    return (EntryKind.SEGMENT, *entry)


def _encode_upload(entry: Upload) -> tuple[Any, ...]:
    dtype, shape = entry.spec
    return (EntryKind.UPLOAD, entry.handle, dtype.code, shape, entry.tensor)


_ENCODERS: dict[type, Any] = {
    Segment: _encode_segment,
    Upload: _encode_upload,
    Free: lambda entry: (EntryKind.FREE, *entry),
    Fetch: lambda entry: (EntryKind.FETCH, *entry),
    Abandon: lambda entry: (EntryKind.ABANDON, *entry),
    Cancel: lambda entry: (EntryKind.CANCEL,),
    Forget: lambda entry: (EntryKind.FORGET, *entry),
}


def _entry(item: Any) -> Entry:
    decoder = _DECODERS.get(item[0]) if type(item) is tuple and item and type(item[0]) is int else None
    if decoder is None:
        raise CaseError("undecodable_frame", "an entry is not a list that begins with its kind")
    kind, length, decode = decoder
    if len(item) != length:
        raise CaseError("undecodable_frame", f"{kind.name} has {len(item) - 1} fields, not {length - 1}")
    entry: Entry = decode(item)
    return entry


def _decode_segment(item: tuple[Any, ...]) -> Segment:
    _, program, base, inputs, scalars, starts, dying = item
    _handles(inputs)
    _check_scalars(scalars)
    return Segment(
        _number(program), _number(base), inputs, scalars, _numbers(starts, "starts"), _numbers(dying, "dying")
    )


def _decode_upload(item: tuple[Any, ...]) -> Upload:
    _, handle, dtype, shape, tensor = item
    if type(dtype) is not int or type(shape) is not tuple:
        raise CaseError("undecodable_frame", "an upload is not described by a dtype code and a list of dims")
    try:
        spec = Spec(from_code(dtype), shapes.check(shape))
    except (ShapeError, DtypeError) as error:
        raise CaseError("undecodable_frame", f"upload: {error}") from None
    return Upload(_number(handle), spec, None if tensor is None else _number(tensor))


def _decode_free(item: tuple[Any, ...]) -> Free:
    handles = _handles(item[1])
    if len(handles) > MAX_FREED:
        raise CaseError("oversized_frame", f"{len(handles)} handles die in an entry, which frees at most {MAX_FREED}")
    return Free(handles)


def _decode_fetch(item: tuple[Any, ...]) -> Fetch:
    return Fetch(_number(item[1]), _number(item[2]))


_DECODERS: dict[int, tuple[EntryKind, int, Any]] = {
    kind.value: (kind, length, decode)
    for kind, length, decode in (
        (EntryKind.SEGMENT, 7, _decode_segment),
        (EntryKind.UPLOAD, 5, _decode_upload),
        (EntryKind.FREE, 2, _decode_free),
        (EntryKind.FETCH, 3, _decode_fetch),
        (EntryKind.ABANDON, 2, lambda item: Abandon(_number(item[1]))),
        (EntryKind.CANCEL, 1, lambda item: Cancel()),
        (EntryKind.FORGET, 2, lambda item: Forget(_number(item[1]))),
    )
}


def _new_program(item: Any) -> NewProgram:
    if type(item) is not tuple or len(item) != 3:
        raise CaseError("undecodable_frame", "a new program is a list of number, flag and bytes")
    number, is_fragment, raw = item
    if type(is_fragment) is not bool or type(raw) is not bytes:
        raise CaseError("undecodable_frame", "a new program is a list of number, flag and bytes")
    return NewProgram(_number(number), is_fragment, raw)


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_HANDLE:
        raise CaseError("undecodable_frame", f"{shortened(value)} is not an integer in 0..2^63−1")
    return value


def _check_scalars(value: Any) -> None:
    if type(value) is not tuple:
        raise _no_list("scalars", "numbers")
    for item in value:
        if type(item) not in _SCALARS:
            raise _no_list("scalars", "numbers")


def _numbers(value: Any, what: str) -> tuple[int, ...]:
    if type(value) is not tuple:
        raise _no_list(what, "integers")
    for item in value:
        if type(item) is not int:
            raise _no_list(what, "integers")
    return value


def _handles(value: Any) -> tuple[int, ...]:
    if type(value) is not tuple:
        raise _no_list("handles", "numbers in 0..2^63−1")
    for item in value:
        if type(item) is not int or not 0 <= item <= MAX_HANDLE:
            raise _no_list("handles", "numbers in 0..2^63−1")
    return value


def _no_list(what: str, of: str) -> CaseError:
    return CaseError("undecodable_frame", f"{what} are not a list of {of}")
