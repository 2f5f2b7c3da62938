"""The catalogue of costly frames: for each kind of entry of the wire, and of frame, a generator of any size.

A kind's `sent` returns the frames of a round: legal ones, refused ones, or both. Rounds follow one another in a
session, so a round uses handles and programs of its own. `before` returns what a session sends once, before its rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fusewire_protos.frames import (
    FIRST_UPLOAD,
    INLINE_BYTES,
    MAX_ENTRIES,
    MAX_FREED,
    MAX_ITERATIONS,
    MAX_STORED,
    PROTOCOL_VERSION,
    Abandon,
    Cancel,
    Entry,
    Explain,
    Fetch,
    Forget,
    Free,
    NewProgram,
    Profile,
    Segment,
    Upload,
)
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import MAX_RANK, Spec
from fusewire_protos.programs.limits import MOST_LIVE, MOST_STARTS
from fusewire_protos.v1 import fusewire_pb2 as pb
from tests.segments import loop_of
from tests.server.costs import collisions, costly_programs
from tests.server.costs.draft import Draft, drafted, listed

_FRAME_BYTES = 4 << 20  # limits.message_bytes
_OPS, _OPERANDS = 8192, 32768  # limits.program_ops, limits.program_operands
_PROGRAMS = 256  # half of limits.programs, because a round is sent before that before it is forgotten
_ROOM = 1 << 17  # handles between two rounds: more than a round takes
_HELD, _WAITED = FIRST_UPLOAD, FIRST_UPLOAD + 1  # handles of a value that is there, and of one that never comes
_UNKNOWN, _FAILED = FIRST_UPLOAD + 2, FIRST_UPLOAD + 3
_VECTOR, _BYTES = Spec(dtypes.float32, (4,)), bytes(16)
_ROWS_IN_FLIGHT = 32  # of MOST_LIVE ops, for which there is credit
_GOOD, _OTHER = 0, 1  # numbers of programs

Sent = Callable[[int, int], Sequence[Draft]]


class Kind(NamedTuple):
    """A kind of frames. A round of it has a size from 1 to `most`.

    `rounds` is after how many rounds a session makes room for another, because it holds too much. `ends` says that the
    server ends the session in each round. `opens` says that each frame is the first of a stream.
    """

    name: str
    most: int
    sent: Sent
    before: Callable[[int], Sequence[Draft]] = lambda _size: ()
    rounds: int = 64
    ends: bool = False
    opens: bool = False

    def size(self, part: float) -> int:
        """The size of a round, from 1 at 0.0 to the largest at 1.0."""
        return round(math.pow(self.most, part))


def _base(turn: int) -> int:
    """The first handle of a round. Those below are of the values that are there before."""
    return (1 + turn) * _ROOM


def _use(base: int, *inputs: int, program: int = _GOOD, **bindings: tuple[Any, ...]) -> Segment:
    parts: dict[str, tuple[Any, ...]] = {"scalars": (), "starts": (), "dying": ()} | bindings
    return Segment(program, base, inputs, parts["scalars"], parts["starts"], parts["dying"])


def _values() -> tuple[Entry, ...]:
    """A value that is there, one that never comes, and one that has failed."""
    bad = Upload(_FAILED, Spec(dtypes.float32, (5,)), 0)
    return Upload(_HELD, _VECTOR, 0), Upload(_WAITED, _VECTOR, None), bad


def _setting_up(program: Callable[[int, int], bytes]) -> Callable[[int], Sequence[Draft]]:
    """Numbers a program of the kind's size, and makes values."""
    return lambda size: [drafted(*_values(), programs=[NewProgram(_GOOD, False, program(size, 0))], tensors=[_BYTES])]


def _all_live(count: int, _version: int) -> bytes:
    return costly_programs.equal_ops(count, 0, range(count))


def _last_live(count: int, _version: int) -> bytes:
    return costly_programs.equal_ops(count, 0)


def _short(_count: int, _version: int) -> bytes:
    return costly_programs.equal_ops(1, 0)


_SHORT = _setting_up(_short)


# ---- programs ----


def _one_program(name: str, most: int, raw: Callable[[int, int], bytes]) -> Kind:
    """A round sends a program that the server does not know, and forgets it."""

    def sent(size: int, turn: int) -> Sequence[Draft]:
        return [drafted(Forget(turn), programs=[NewProgram(turn, False, raw(size, turn))])]

    return Kind(f"program: {name}", most, sent)


def _many_programs(name: str, raw: Callable[[int, int], bytes], *, ends: bool = False) -> Kind:
    """A round sends many programs. `raw` gets the number of the program, and of the round."""

    def sent(size: int, turn: int) -> Sequence[Draft]:
        numbers = range(turn * _PROGRAMS, turn * _PROGRAMS + size)
        new = [NewProgram(number, False, raw(index, turn)) for index, number in enumerate(numbers)]
        return [drafted(*map(Forget, numbers), programs=new)]

    return Kind(f"programs: {name}", _PROGRAMS, sent, ends=ends)


_PROGRAM_KINDS = (
    _one_program("distinct ops", _OPS, costly_programs.distinct_ops),
    _one_program("distinct ops, the last one unknown", _OPS, costly_programs.distinct_ops_and_an_unknown_one),
    _one_program("distinct ops, too large", _OPS, costly_programs.too_large_ops),
    _one_program("equal ops", _OPS, costly_programs.equal_ops),
    _one_program("equal ops, all live", _OPS, lambda size, turn: costly_programs.equal_ops(size, turn, range(size))),
    _one_program("distinct inputs", 14_000, costly_programs.distinct_inputs),
    _one_program("one op of many operands", _OPERANDS, costly_programs.one_op_of_many_operands),
    _one_program("a long attribute", 200_000, costly_programs.one_long_attribute),
    _one_program("an attribute of empty lists", 200_000, costly_programs.attribute_of_empty_lists),
    _one_program("a deep attribute", 500, costly_programs.deep_attribute),
    _one_program("specs of one hash", 15_000, costly_programs.colliding_specs),
    _one_program("signatures of one hash", 8192, costly_programs.colliding_signatures),
    _one_program("many carried inputs", 30_000, costly_programs.many_carried),
    _many_programs("short, all new", lambda index, turn: costly_programs.equal_ops(1, 1 + turn * _PROGRAMS + index)),
    _many_programs("short, all the same", lambda _index, _turn: costly_programs.equal_ops(1, 0)),
    _many_programs("no program", lambda index, turn: b"%d %d" % (index, turn), ends=True),
)


# ---- segments ----


def _segments(
    name: str, most: int, program: Callable[[int, int], bytes], entries: Callable[[int, int], Sequence[Entry]]
) -> Kind:
    """A round uses a program of the kind's size. `entries` gets the size, and the first handle of the round."""
    return Kind(
        f"segment: {name}",
        most,
        lambda size, turn: [drafted(*entries(size, _base(turn)))],
        _setting_up(program),
    )


def _freeing(size: int, base: int) -> Free:
    return Free(tuple(range(base, base + size)))


def _held_back(size: int, base: int) -> Sequence[Entry]:
    """Rows that wait for a value that never comes, and are given up."""
    rows = [_use(base + index * MOST_LIVE, _WAITED) for index in range(_ROWS_IN_FLIGHT)]
    return *rows, Cancel(), *[_freeing(size, row.base) for row in rows]


def _broken_program(size: int, _version: int) -> bytes:
    """All results are live, and what they are is unknown."""
    raw = costly_programs.equal_ops(size, 0, range(size))
    return raw[:-1] + bytes((raw[-1] ^ 1,)) if size > 1 else raw


_SEGMENT_KINDS = (
    Kind(
        "segment: unknown handle",
        MAX_ENTRIES,
        lambda size, turn: [drafted(*[_use(_base(turn) + index, _UNKNOWN) for index in range(size)])],
        _SHORT,
    ),
    _segments("unknown handle, last of many ops", _OPS, _last_live, lambda _, base: [_use(base, _UNKNOWN)]),
    _segments(
        "unknown handle, all of many results",
        MOST_LIVE,
        _all_live,
        lambda size, base: [_use(base, _UNKNOWN), _freeing(size, base)],
    ),
    _segments(
        "no input, all of many results", MOST_LIVE, _all_live, lambda size, base: [_use(base), _freeing(size, base)]
    ),
    _segments(
        "failed input, all of many results",
        MOST_LIVE,
        _all_live,
        lambda size, base: [_use(base, _FAILED), _freeing(size, base)],
    ),
    _segments("many kept results", MOST_LIVE, _all_live, lambda size, base: [_use(base, _HELD), _freeing(size, base)]),
    _segments("rows held back, then cancelled", MOST_LIVE, _all_live, _held_back),
    _segments(
        "program refused, many results",
        _OPS,
        _broken_program,
        lambda size, base: [_use(base, _HELD), _freeing(size, base)],
    ),
    _segments(
        "many inputs",
        _OPERANDS,
        costly_programs.many_inputs,
        lambda size, base: [_use(base, *[_HELD] * size), Free((base,))],
    ),
    _segments(
        "many unknown inputs",
        _OPERANDS,
        costly_programs.many_inputs,
        lambda size, base: [_use(base, *[0] * size), Free((base,))],
    ),
    _segments(
        "many dying inputs",
        _OPERANDS,
        costly_programs.many_inputs,
        lambda size, base: [_use(base, *[0] * size, dying=tuple(range(size))), Free((base,))],
    ),
    _segments(
        "many scalars from one",
        _OPERANDS - 1,
        costly_programs.many_scalars,
        lambda _, base: [_use(base, scalars=(1.0,)), Free((base,))],
    ),
    _segments(
        "many starts from one, out of range",
        MOST_STARTS // MAX_RANK,
        costly_programs.many_starts,
        lambda _, base: [_use(base, _HELD, starts=(0,)), Free((base,))],
    ),
    _segments(
        "many starts of strided views from one",
        MOST_STARTS,
        costly_programs.many_strided,
        lambda _, base: [_use(base, _HELD, starts=(0,)), Free((base,))],
    ),
    Kind(
        "segment: legal and short",
        32,
        lambda size, turn: [
            drafted(
                *[_use(_base(turn) + index, _HELD) for index in range(size)],
                _freeing(size, _base(turn)),
            )
        ],
        _SHORT,
    ),
    Kind("segment: unknown program", 1, lambda _, turn: [drafted(_use(_base(turn), program=99))], ends=True),
    Kind(
        "segment: dying positions in one chain",
        1 << 15,
        lambda size, turn: [drafted(_use(_base(turn), _HELD, dying=tuple(collisions.chain(size))))],
        _SHORT,
        ends=True,
    ),
)


# ---- loops ----


def _loop(base: int, inputs: Sequence[int], iterations: int, kept: int, *stepped: tuple[int, Any]) -> Segment:
    """A use of a program with one result. `stepped` are inputs."""
    first = Segment(_GOOD, base, tuple(inputs), (), (), ())
    return loop_of(first, iterations, 1, (kept,), stepped)


def _stepped(size: int) -> tuple[tuple[int, Any], ...]:
    return tuple((index, (1,)) for index in range(size))


_LOOP_KINDS = (
    Kind(
        "loop: refused program, kept of many iterations",
        1 << 16,
        lambda size, turn: [drafted(_loop(_base(turn), [], MAX_ITERATIONS - 1, size))],
        lambda _size: [
            drafted(programs=[NewProgram(_GOOD, False, costly_programs.too_large_ops(2, 0))]),
        ],
        rounds=8,
    ),
    Kind(
        "loop: many results kept",
        MAX_STORED,
        lambda size, turn: [
            drafted(_loop(_base(turn), [_HELD], size, size), _freeing(size, _base(turn))),
        ],
        _SHORT,
    ),
    Kind(
        "loop: unknown handle, many iterations",
        MAX_STORED,
        lambda size, turn: [
            drafted(_loop(_base(turn), [_UNKNOWN], MAX_ITERATIONS - 1 - MAX_STORED, size)),
        ],
        _SHORT,
        rounds=8,
    ),
    Kind(
        "loop: many stepped inputs, of which there are none",
        16_000,
        lambda size, turn: [drafted(_loop(_base(turn), [_HELD], 2, 1, *_stepped(size)), Free((_base(turn) + 1,)))],
        _SHORT,
    ),
    Kind(
        "loop: many stepped inputs",
        10_000,
        lambda size, turn: [drafted(_loop(_base(turn), [1] * size, 2, 1, *_stepped(size)), Free((_base(turn) + 1,)))],
        _setting_up(costly_programs.many_inputs),
    ),
    Kind(
        "loop: an input of many handles",
        _OPERANDS,
        lambda size, turn: [
            drafted(
                _loop(_base(turn), [_HELD], _OPERANDS, 1, (0, (_HELD,) * size)),
                Free((_base(turn) + _OPERANDS - 1,)),
            )
        ],
        _SHORT,
    ),
    Kind(
        "loop: many carried inputs",
        30_000,
        lambda size, turn: [drafted(_loop(_base(turn), [1] * size, 2, 1), Free((_base(turn) + 1,)))],
        _setting_up(costly_programs.many_carried),
    ),
    Kind("loop: no iterations", 1, lambda _, turn: [drafted(_loop(_base(turn), [_HELD], 0, 1))], _SHORT, ends=True),
)


# ---- fetches, frees and others ----


def _each(name: str, most: int, entry: Callable[[int], Entry], **rest: Any) -> Kind:
    """A round of entries that differ in a number."""
    return Kind(
        name,
        most,
        lambda size, turn: [drafted(*map(entry, range(_base(turn), _base(turn) + size)), tensors=[_BYTES])],
        **{"before": _SHORT} | rest,
    )


def _uploads(entry: Callable[[int], Upload], tensor: bytes = _BYTES) -> Sent:
    """A round of uploads, which are freed."""

    def sent(size: int, turn: int) -> Sequence[Draft]:
        handles = range(FIRST_UPLOAD + _base(turn), FIRST_UPLOAD + _base(turn) + size)
        return [drafted(*map(entry, handles), Free(tuple(handles)), tensors=[tensor])]

    return sent


_FLAGS = Spec(dtypes.bool_, (INLINE_BYTES,))
_HUGE = Spec(dtypes.float32, (1 << 29,))
_CHAINED = 20_000  # a dictionary of so many keys is two thirds full


def _chained(size: int) -> Sequence[Draft]:
    """Failed uploads whose handles fill one chain of places."""
    handles, refused = collisions.chain(size), Spec(dtypes.float32, (5,))
    step = MAX_ENTRIES // 2
    return [
        drafted(*[Upload(handle, refused, 0) for handle in handles[first : first + step]], tensors=[_BYTES])
        for first in range(0, size, step)
    ]


_OTHER_KINDS = (
    _each("fetch: unknown handle", MAX_ENTRIES, lambda number: Fetch(number, _UNKNOWN)),
    _each("fetch: failed value", MAX_ENTRIES, lambda number: Fetch(number, _FAILED)),
    _each("fetch: many of one value", MAX_ENTRIES, lambda number: Fetch(number, _HELD)),
    _each("fetch: one fetch again and again", MAX_ENTRIES, lambda _number: Fetch(1, _WAITED)),
    Kind(
        "fetch: waits, and is abandoned",
        MAX_ENTRIES // 2,
        lambda size, turn: [
            drafted(
                *[Fetch(number, _WAITED) for number in range(_base(turn), _base(turn) + size)],
                *[Abandon(number) for number in range(_base(turn), _base(turn) + size)],
            )
        ],
        _SHORT,
    ),
    _each("abandon: unknown fetch", MAX_ENTRIES, Abandon),
    Kind(
        "explain: one long program",
        MAX_ENTRIES,
        lambda size, turn: [drafted(*[Explain(_base(turn) + number, _GOOD) for number in range(size)])],
        lambda _size: _setting_up(_last_live)(_OPS),
    ),
    Kind(
        "profile: many questions",
        MAX_ENTRIES,
        lambda size, turn: [drafted(*[Profile(_base(turn) + number, number % 2 == 0) for number in range(size)])],
    ),
    Kind("explain: unknown program", 1, lambda _size, _turn: [drafted(Explain(1, 7))], ends=True),
    Kind("free: unknown handles", MAX_FREED, lambda size, _turn: [drafted(Free(tuple(range(9, 9 + size))))]),
    Kind("free: one unknown handle again", MAX_FREED, lambda size, _turn: [drafted(Free((9,) * size))]),
    _each("free: entries of one handle", MAX_ENTRIES, lambda number: Free((number,))),
    Kind(
        "free: unknown handles in a chain",
        64,
        lambda size, _turn: [drafted(Free(tuple(collisions.missing(_CHAINED, size))))],
        lambda _size: _chained(_CHAINED),
    ),
    Kind(
        "fetch: numbers in a chain",
        64,
        lambda size, _turn: [drafted(*[Fetch(number, _WAITED) for number in collisions.missing(_CHAINED, size)])],
        lambda _size: [
            *_SHORT(1),
            drafted(*[Fetch(number, _WAITED) for number in collisions.chain(_CHAINED)]),
        ],
    ),
    Kind("upload: tiny", 4096, _uploads(lambda handle: Upload(handle, _VECTOR, 0)), _SHORT),
    Kind(
        "upload: declared large and never sent",
        MAX_ENTRIES // 2,
        _uploads(lambda handle: Upload(handle, _VECTOR, None)),
        rounds=4,
    ),
    Kind("upload: larger than an array may be", MAX_ENTRIES // 2, _uploads(lambda handle: Upload(handle, _HUGE, None))),
    Kind(
        "upload: flags that are none",
        MAX_ENTRIES // 2,
        _uploads(lambda handle: Upload(handle, _FLAGS, 0), bytes(INLINE_BYTES - 1) + b"\x02"),
        rounds=8,
    ),
    _each("cancel", MAX_ENTRIES, lambda _number: Cancel()),
    Kind("forget: unknown program", 1, lambda _size, _turn: [drafted(Forget(7))], ends=True),
)


# ---- frames ----


def _hello(versions: Sequence[int]) -> bytes:
    return pb.ClientFrame(hello=pb.Hello(versions=versions, client="test")).SerializeToString()


def _undecodable_at_the_end(size: int, _turn: int) -> Sequence[Draft]:
    return [listed([[5]] * size + [[99]])]


_FRAME_KINDS = (
    Kind("frame: empty, numbered", 4096, lambda size, _turn: [Draft()] * size),
    Kind("frame: empty, without a number", 4096, lambda size, _turn: [Draft(is_numbered=False)] * size),
    Kind("frame: sent again", 64, lambda size, _turn: [Draft(), *[Draft(is_sent_again=True)] * size]),
    Kind(
        "frame: long, sent again",
        _FRAME_BYTES - 64,
        lambda size, _turn: [Draft(), Draft(tensors=[bytes(size)], is_sent_again=True)],
    ),
    Kind("frame: unused tensors", 1 << 20, lambda size, _turn: [Draft(tensors=[b""] * size)]),
    Kind("frame: one long unused tensor", _FRAME_BYTES - 64, lambda size, _turn: [Draft(tensors=[bytes(size)])]),
    Kind("frame: unknown fields", 1 << 20, lambda size, _turn: [Draft(further=b"\x78\x01" * size)]),
    Kind(
        "frame: goodbyes that are joined",
        1 << 20,
        lambda size, _turn: [Draft(further=b"\x3a\x00" * size)],
        ends=True,
    ),
    Kind(
        "frame: a second hello of many versions",
        1 << 20,
        lambda size, _turn: [Draft(further=_hello([2] * size))],
        ends=True,
    ),
    Kind(
        "hello: many versions, of which none is spoken",
        1 << 20,
        lambda size, _turn: [Draft(further=_hello([2] * size), is_numbered=False)],
        opens=True,
    ),
    Kind(
        "hello: a session that is left at once",
        64,
        lambda size, _turn: [Draft(further=_hello([PROTOCOL_VERSION]), is_numbered=False)] * size,
        opens=True,
    ),
    Kind("frame: cancels in a short frame", 8000, lambda size, _turn: [listed([[5]] * size)]),
    Kind("frame: undecodable at the end", MAX_ENTRIES - 1, _undecodable_at_the_end, ends=True),
    Kind(
        "frame: a list that is said to be long",
        1,
        lambda _size, _turn: [Draft(bindings=b"\xdd\xff\xff\xff\xff")],
        ends=True,
    ),
    Kind(
        "frame: entries beyond the most",
        1 << 20,
        lambda size, _turn: [
            Draft(bindings=b"\xdd" + (MAX_ENTRIES + size).to_bytes(4, "big") + b"\x91\x05" * (MAX_ENTRIES + size))
        ],
        ends=True,
    ),
)

KINDS: tuple[Kind, ...] = (*_PROGRAM_KINDS, *_SEGMENT_KINDS, *_LOOP_KINDS, *_OTHER_KINDS, *_FRAME_KINDS)
BY_NAME = {kind.name: kind for kind in KINDS}
