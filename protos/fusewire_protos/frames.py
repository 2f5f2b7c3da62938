"""What a client's frame carries: an ordered list of entries, and the programs they name for the first time.

Bytes: msgpack as in `program_parts`. `programs` is [[number, is_fragment, program bytes], …]; `bindings` is a list of
entries, each a list that begins with its `EntryKind`. Entries take effect in order.

Handles are 64-bit numbers that the client mints. A segment's results are never listed: result j of a segment with
base b has handle b + j. Scalars and starts are sent as their shortest period: a loop body repeated 64 times with an
unchanged factor sends it once.

A frame may be long. `read_entries` and `read_programs` decode each of its items when it is asked for, so that whoever
applies them can attend to others in between; what is wrong with one is told when it is reached.
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
from fusewire_protos.program_codec import ProgramLimits
from fusewire_protos.reader import Reader
from fusewire_protos.shapes import Spec
from fusewire_protos.unpacking import unpack

PROTOCOL_VERSION = 1
MAX_HANDLE = 2**63 - 1
HANDLES_PER_RECORDER = 2**40
FIRST_UPLOAD = 2**39  # within a recorder's range: results below, uploads from here
INLINE_BYTES = 32 << 10  # uploads and results up to this size travel in the frame itself
MAX_ENTRIES = 1 << 15  # of a frame, and programs of a frame: however small they are, each takes time to apply
MAX_FREED = 1 << 15  # handles that one entry frees
SHORT_BYTES = 16 << 10  # entries that take no more are decoded in a millisecond, whatever they are

Scalar = bool | int | float
_SCALARS = frozenset((bool, int, float))


class EntryKind(IntEnum):
    """The first element of an entry on the wire."""

    SEGMENT = 0
    UPLOAD = 1
    FREE = 2
    FETCH = 3
    ABANDON = 4
    CANCEL = 5
    FORGET = 6


class Segment(NamedTuple):
    """One use of a program. `inputs` are handles; `dying` are the positions in it whose handle dies here."""

    program: int
    base: int
    inputs: tuple[int, ...]
    scalars: tuple[Scalar, ...]  # one shortest period
    starts: tuple[int, ...]  # one shortest period
    dying: tuple[int, ...]


class Upload(NamedTuple):
    """A handle whose bytes come with this frame (`tensor` is their index there) or beside it (None)."""

    handle: int
    spec: Spec
    tensor: int | None


class Free(NamedTuple):
    """Handles that die here."""

    handles: tuple[int, ...]


class Fetch(NamedTuple):
    """Asks for a value. Repeating a fetch with the same id asks for the same answer again."""

    fetch: int
    handle: int


class Abandon(NamedTuple):
    """A fetch whose answer nobody awaits any more."""

    fetch: int


class Cancel(NamedTuple):
    """Gives up all segments before this entry that have not been submitted."""


class Forget(NamedTuple):
    """A program number that will not be used again."""

    program: int


Entry = Segment | Upload | Free | Fetch | Abandon | Cancel | Forget


class NewProgram(NamedTuple):
    """A program sent for the first time. A fragment is run op by op and compiled only if it keeps coming."""

    number: int
    is_fragment: bool
    raw: bytes


def encode_entries(entries: Sequence[Entry]) -> bytes:
    """The `bindings` of a frame."""
    raw: bytes = msgpack.packb([_ENCODERS[type(entry)](entry) for entry in entries])
    return raw


def encode_programs(programs: Sequence[NewProgram]) -> bytes:
    """The `programs` of a frame."""
    raw: bytes = msgpack.packb(programs)
    return raw


def decode_entries(raw: bytes) -> list[Entry]:
    """The entries of a frame's `bindings`. Raises CaseError (a protocol case) for anything malformed."""
    if not raw:
        return []
    items = unpack(raw, longest_array=len(raw))
    if type(items) is not tuple:
        raise CaseError("undecodable_frame", "bindings are no list")
    _check_count(len(items), "entries")
    return [_entry(item) for item in items]


def decode_programs(raw: bytes) -> list[NewProgram]:
    """The programs of a frame. Raises CaseError (a protocol case) for anything malformed."""
    return [*read_programs(raw)]


def read_entries(raw: bytes, most_listed: int) -> Reader[Entry]:
    """The entries of a frame's `bindings`, one by one; `most_listed` bounds each list of one. Raises CaseError."""
    reader = Reader(raw, _entry, most_listed)
    _check_count(len(reader), "entries")
    return reader


def read_programs(raw: bytes) -> Reader[NewProgram]:
    """The programs of a frame, one by one. Raises CaseError."""
    reader = Reader(raw, _new_program, most_listed=0)
    _check_count(len(reader), "programs")
    return reader


def most_listed(limits: ProgramLimits) -> int:
    """How many numbers a list of an entry holds at most: handles that die, or what a program within `limits` binds."""
    return max(MAX_FREED, limits.program_operands, shapes.MAX_RANK * limits.program_ops)


def _check_count(count: int, what: str) -> None:
    if count > MAX_ENTRIES:
        raise CaseError("oversized_frame", f"{count} {what} in a frame, which holds at most {MAX_ENTRIES}")


def shortest_period(values: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """The shortest head of `values` whose repetition is `values`, told apart as on the wire.

    1, 1.0 and True are equal and yet other scalars, so are 0.0 and −0.0; NaN is the same as itself.
    """
    count = len(values)
    if count <= 1:
        return tuple(values)
    sent = _packed(values)
    return next(
        tuple(values[:period]) for period in _divisors(count) if _packed(values[:period]) * (count // period) == sent
    )


def repeat_period(period: tuple[Any, ...], length: int, what: str) -> tuple[Any, ...]:
    """`period` repeated to `length` values. Raises CaseError if it does not divide it."""
    if len(period) == length:
        return period
    if not period or not length or length % len(period):
        raise CaseError("bad_binding", f"{len(period)} {what} do not repeat to {length}")
    return period * (length // len(period))


def _packed(values: Sequence[Scalar]) -> bytes:
    """One behind the other, without the head of the list, which is as long as what it counts asks for."""
    head_bytes = 1 if len(values) < 1 << 4 else 3 if len(values) < 1 << 16 else 5
    packed: bytes = msgpack.packb(values)
    return packed[head_bytes:]


def _divisors(number: int) -> list[int]:
    """Ascending. The root of a square comes twice."""
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
        raise CaseError("undecodable_frame", "an entry is a list that begins with its kind")
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
        raise CaseError("undecodable_frame", "an upload is described by the number of a dtype and a list of dims")
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
        raise CaseError("undecodable_frame", f"{shortened(value)} is no number in 0..2^63−1")
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
    return CaseError("undecodable_frame", f"{what} are no list of {of}")
