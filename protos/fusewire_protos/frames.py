"""Encodes and decodes a client's frame: an ordered list of entries, and the new programs that the entries use.

Both fields are msgpack, under the same rules as in `programs.parts`. The field `programs` is a list. Each of
its items is a list [number, is_fragment, program bytes]. The field `bindings` is a list of entries. An entry is a list
that begins with its `EntryKind`. The server applies entries in order.

The client numbers its values with 64-bit handles. A segment does not list the handles of its results: result j of a
segment with base b has handle b + j. If the scalars of a segment repeat, only the shortest period is sent; the starts
are sent in the same way. So a segment of 64 loop bodies with the same factor sends the factor once.

A segment may run its program several times, as a loop. Result j of iteration t has handle b + j + t · `handle_stride`.
On the wire a segment that does not repeat is a `SEGMENT`, which is short, and any other is a `LOOP`.

A frame may be long. `read_entries` and `read_programs` decode one item at a time, so that the server can serve other
sessions between two items. An error in an item is raised when the item is decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from math import isqrt
from reprlib import repr as shortened
from typing import Any, NamedTuple, TypeVar

import msgpack

from fusewire_protos.errors import CaseError, DtypeError, ShapeError
from fusewire_protos.ops import shapes
from fusewire_protos.ops.dtypes import from_code
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.limits import MOST_LEAVES, ProgramLimits
from fusewire_protos.reader import Reader
from fusewire_protos.unpacking import unpack

PROTOCOL_VERSION = 1
MAX_HANDLE = 2**63 - 1
_DIFFERENCES = range(-(2**63), 2**63)  # of a binding that changes by a difference from iteration to iteration
HANDLES_PER_RECORDER = 2**40
FIRST_UPLOAD = 2**39  # counted from a recorder's first handle: handles below this are results, others are uploads
INLINE_BYTES = 256 << 10  # uploads and results up to this size travel in the frame itself
MAX_ITERATIONS = 2**32  # of a loop
MAX_STORED = 1024  # results that the client keeps of one loop, which the server makes in one piece
MOST_TENSORS = 1024  # uploads whose bytes are in one frame
MAX_ENTRIES = 1 << 15  # limits entries and new programs of a frame, because even small entries take time to apply
MAX_FREED = 1 << 12  # handles that one entry frees
MAX_STEPPED = 1 << 13  # numbers in the list of a loop's stepped inputs, scalars or starts
NUMBER_BYTES = 9  # the most bytes that one encoded number takes
_SEGMENT_FIELDS = 7  # its kind included; those of a loop follow
# Of all threads: a compiled packer calls no Python code, so no other thread comes between.
_PACKER = msgpack.Packer()
_IS_PACKER_COMPILED = msgpack.Packer.__module__ != "msgpack.fallback"

Scalar = bool | int | float
_SCALARS = frozenset((bool, int, float))
S = TypeVar("S", bound=Scalar)


class EntryKind(IntEnum):
    """Names the kind of an entry. The kind is the first element of the entry on the wire."""

    SEGMENT = 0
    UPLOAD = 1
    FREE = 2
    FETCH = 3
    ABANDON = 4
    CANCEL = 5
    FORGET = 6
    LOOP = 7
    EXPLAIN = 8
    PROFILE = 9


Steps = int | tuple[Any, ...]  # the difference from one iteration to the next, or the values, which repeat


class Repetition(NamedTuple):
    """How often a segment runs its program, what the client keeps of that, and what changes between the iterations.

    Each iteration takes what the one before carries to it. `kept` says for each live result of how many of the last
    iterations the client holds it; None says one of each. The stepped bindings are given by their index. A stepped
    input has the handles of its values; a stepped scalar or start may have a difference instead, if it is an integer.
    """

    iterations: int
    handle_stride: int  # from a result to the result of the next iteration; 0 if only last results are kept
    kept: tuple[int, ...] | None
    inputs: tuple[tuple[int, Steps], ...] = ()
    scalars: tuple[tuple[int, Steps], ...] = ()
    starts: tuple[tuple[int, Steps], ...] = ()


NO_REPETITION = Repetition(1, 0, None)  # the one object without `kept`


class Segment(NamedTuple):
    """One use of a program.

    `base` is the handle of the first result. `inputs` are handles. `inputs`, `scalars` and `starts` are those of the
    first iteration, and of all others but for what is stepped. `dying` are ascending indices into `all_inputs`: the
    handles at these indices die with this segment.
    """

    program: int
    base: int
    inputs: tuple[int, ...]
    scalars: tuple[Scalar, ...]  # one shortest period
    starts: tuple[int, ...]  # one shortest period
    dying: tuple[int, ...]
    repetition: Repetition = NO_REPETITION

    @property
    def all_inputs(self) -> tuple[int, ...]:
        """The handles of the first iteration, then the others that inputs step through. Their form is not checked."""
        stepped = self.repetition.inputs
        if not stepped:
            return self.inputs
        return (*self.inputs, *[handle for _, steps in stepped if type(steps) is tuple for handle in steps[1:]])


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
    """Withdraws a fetch, whose answer the server does not send; or says that a large answer has arrived whole."""

    fetch: int


class Cancel(NamedTuple):
    """Cancels all segments before this entry that are not submitted yet."""


class Forget(NamedTuple):
    """Drops a program. The client does not use the program's number again."""

    program: int


class Explain(NamedTuple):
    """Asks how a program of the session runs. It is answered as a fetch is, with an encoded `ExplainedProgram`."""

    fetch: int
    program: int


class Profile(NamedTuple):
    """Asks for the time, and how the session's segments ran since the last question. It is answered as a fetch is, with
    an encoded `Profiled`.

    The server keeps this from the first question on, until one that does not go on.
    """

    fetch: int
    goes_on: bool


Entry = Segment | Upload | Free | Fetch | Abandon | Cancel | Forget | Explain | Profile


class NewProgram(NamedTuple):
    """A program sent for the first time. A fragment runs op by op, and is compiled only if it is used often."""

    number: int
    is_fragment: bool
    raw: bytes


def _packer() -> msgpack.Packer:
    """Returns a packer that no other thread uses meanwhile."""
    return _PACKER if _IS_PACKER_COMPILED else msgpack.Packer()


def encode_entry(entry: Entry) -> bytes:
    """Returns the bytes of an entry, which `list_entries` takes."""
    raw: bytes = _packer().pack(_ENCODERS[type(entry)](entry))
    return raw


def list_entries(encoded: Sequence[bytes]) -> bytes:
    """Returns the field `bindings` of a frame with these encoded entries."""
    head: bytes = _packer().pack_array_header(len(encoded))
    return head + b"".join(encoded)


def encode_entries(entries: Sequence[Entry]) -> bytes:
    """Returns the field `bindings` of a frame."""
    return list_entries([encode_entry(entry) for entry in entries])


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


def are_few(raw: bytes) -> bool:
    """Returns whether the field `bindings` of a frame lists at most 15 entries: its head then takes one byte."""
    return raw[:1] < b"\xa0"


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


def in_iteration(first: Sequence[S], stepped: Iterable[tuple[int, Steps]], iteration: int) -> tuple[S, ...]:
    """Returns the scalars or starts of an iteration. `first` are those of the first iteration."""
    values: list[Any] = [*first]
    for index, steps in stepped:
        values[index] = steps[iteration % len(steps)] if isinstance(steps, tuple) else values[index] + steps * iteration
    return tuple(values)


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
    program, base, inputs, scalars, starts, dying, repetition = entry
    if repetition is NO_REPETITION:
        return (EntryKind.SEGMENT, program, base, inputs, scalars, starts, dying)
    iterations, handle_stride, kept, *stepped = repetition
    return (EntryKind.LOOP, *entry[:-1], iterations, handle_stride, kept, *map(_flat_steps, stepped))


def _flat_steps(stepped: Sequence[tuple[int, Steps]]) -> list[Any]:
    """Returns for each stepped binding its index, the number of its values, and the values; or 0 and the difference."""
    flat: list[Any] = []
    for index, steps in stepped:
        flat += (index, len(steps), *steps) if isinstance(steps, tuple) else (index, 0, steps)
    return flat


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
    Explain: lambda entry: (EntryKind.EXPLAIN, *entry),
    Profile: lambda entry: (EntryKind.PROFILE, *entry),
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
    _check_length(inputs, MOST_LEAVES, "inputs")
    _check_length(scalars, MOST_LEAVES, "scalars")
    _check_length(dying, MOST_LEAVES + MAX_STEPPED, "dying inputs")
    _handles(inputs)
    _check_scalars(scalars)
    return Segment(
        _number(program), _number(base), inputs, scalars, _numbers(starts, "starts"), _numbers(dying, "dying")
    )


def _decode_loop(item: tuple[Any, ...]) -> Segment:
    return _decode_segment(item[:_SEGMENT_FIELDS])._replace(repetition=_repetition(*item[_SEGMENT_FIELDS:]))


def _repetition(iterations: Any, handle_stride: Any, kept: Any, *stepped: Any) -> Repetition:
    if not 1 <= _number(iterations) <= MAX_ITERATIONS:
        raise CaseError("undecodable_frame", f"a loop of {iterations} iterations; the most is {MAX_ITERATIONS}")
    if any(not 0 <= each <= iterations for each in _numbers(kept, "kept results")):
        raise CaseError("undecodable_frame", f"{shortened(kept)}: a result is kept of 0 to {iterations} iterations")
    if sum(kept) > MAX_STORED:
        raise CaseError("oversized_frame", f"{sum(kept)} results are kept; the most of a loop is {MAX_STORED}")
    steps = [_steps(flat, what) for flat, what in zip(stepped, ("inputs", "scalars", "starts"), strict=True)]
    return Repetition(iterations, _number(handle_stride), kept, *steps)


def _steps(flat: Any, what: str) -> tuple[tuple[int, Steps], ...]:
    """Returns the stepped bindings of a flat list, which has the form that `_flat_steps` returns."""
    _check_length(flat, MAX_STEPPED, f"numbers of stepped {what}")
    _check_scalars(flat)
    found: list[tuple[int, Steps]] = []
    position = 0
    while position < len(flat):
        index, length = _head_of_steps(flat, position, what, least=found[-1][0] + 1 if found else 0)
        values = flat[position + 2 : position + 2 + length]
        if length == 0:
            (difference,) = _numbers(flat[position + 2 : position + 3], what)
            if difference not in _DIFFERENCES:
                raise CaseError("undecodable_frame", f"{what} {index} steps by {difference}, which takes over 64 bits")
            found.append((index, difference))
        else:
            found.append((index, values))
        position += 2 + max(length, 1)
    return tuple(found)


def _head_of_steps(flat: Sequence[Any], position: int, what: str, *, least: int) -> tuple[int, int]:
    """Returns index and number of values of the stepped binding at `position`, whose index is at least `least`."""
    head = _numbers(flat[position : position + 2], what)
    if len(head) < 2 or head[0] < least or head[1] < 0 or max(head[1], 1) > len(flat) - position - 2:
        raise CaseError("undecodable_frame", f"the stepped {what} are not ascending indices, each with its values")
    return head[0], head[1]


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


def _decode_profile(item: tuple[Any, ...]) -> Profile:
    _, fetch, goes_on = item
    if type(goes_on) is not bool:
        raise CaseError("undecodable_frame", f"{shortened(goes_on)} is not whether a profile goes on")
    return Profile(_number(fetch), goes_on)


_DECODERS: dict[int, tuple[EntryKind, int, Any]] = {
    kind.value: (kind, length, decode)
    for kind, length, decode in (
        (EntryKind.SEGMENT, _SEGMENT_FIELDS, _decode_segment),
        (EntryKind.UPLOAD, 5, _decode_upload),
        (EntryKind.FREE, 2, _decode_free),
        (EntryKind.FETCH, 3, _decode_fetch),
        (EntryKind.ABANDON, 2, lambda item: Abandon(_number(item[1]))),
        (EntryKind.CANCEL, 1, lambda item: Cancel()),
        (EntryKind.FORGET, 2, lambda item: Forget(_number(item[1]))),
        (EntryKind.LOOP, 13, _decode_loop),
        (EntryKind.EXPLAIN, 3, lambda item: Explain(_number(item[1]), _number(item[2]))),
        (EntryKind.PROFILE, 3, _decode_profile),
    )
}


def _new_program(item: Any) -> NewProgram:
    if type(item) is not tuple or len(item) != 3:
        raise CaseError("undecodable_frame", "a new program is a list of number, flag and bytes")
    number, is_fragment, raw = item
    if type(is_fragment) is not bool or type(raw) is not bytes:
        raise CaseError("undecodable_frame", "a new program is a list of number, flag and bytes")
    return NewProgram(_number(number), is_fragment, raw)


def _check_length(values: Any, most: int, what: str) -> None:
    """Raises CaseError if a list is too long, before anybody looks at its items."""
    if type(values) is tuple and len(values) > most:
        raise CaseError("oversized_frame", f"{len(values)} {what}; the most is {most}")


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
