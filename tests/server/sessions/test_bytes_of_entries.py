"""Whatever entries a client sends, a byte of them takes few bytes of host memory, live values apart."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fusewire_protos.errors import CaseError
from fusewire_protos.frames import (
    MAX_FREED,
    NO_REPETITION,
    Abandon,
    Cancel,
    Entry,
    Fetch,
    Forget,
    Free,
    Segment,
    Upload,
    decode_entries,
    encode_entries,
)
from fusewire_server.sessions.entries.frame import Arrival
from fusewire_server.sessions.host_bytes import VALUE_BYTES
from fusewire_server.sessions.intake import Intake
from fusewire_server.sessions.session import Session
from tests.segments import loop_of
from tests.server.parts import chain, new, upload, upload_beside
from tests.server.tables import ADD, NEGATE, PAIR, World

A_BYTE, BASIS_BYTES = 64, 1 << 20
WIDE, WIDE_OPS = 30, 2000
_TIMES = 300  # how often each drawn entry is sent, with other handles

HANDLES = st.sampled_from([10, 11, 999, 998, 20, 21]) | st.integers(100, 300)
COUNTS = st.integers(1, 1024)


def _kept(iterations: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.integers(0, iterations), max_size=3).map(tuple)


@st.composite
def segments(draw: st.DrawFn) -> Segment:
    program = draw(st.sampled_from([NEGATE, ADD, PAIR, WIDE]))
    inputs = tuple(draw(st.lists(HANDLES, max_size=3)))
    return Segment(program, 0, inputs, draw(st.sampled_from([(), (1.0,)])), (), ())


@st.composite
def loops(draw: st.DrawFn) -> Segment:
    iterations = draw(COUNTS)
    stride = draw(st.sampled_from([0, 1, 3, WIDE_OPS]))
    return loop_of(draw(segments()), iterations, stride, draw(_kept(iterations)))


ENTRIES: st.SearchStrategy[Entry] = st.one_of(
    segments(),
    loops(),
    st.builds(upload, HANDLES),
    st.builds(upload_beside, HANDLES),
    st.builds(Fetch, st.just(0), HANDLES),
    st.builds(Abandon, st.integers(0, 300)),
    st.just(Cancel()),
    st.just(Forget(77)),
    st.lists(st.integers(0, 2**40), min_size=1, max_size=64).map(lambda handles: Free(tuple(handles[:MAX_FREED]))),
)


def moved(entry: Entry, number: int) -> Entry:
    """The entry with handles and numbers of its own, so that it may be sent again."""
    base = 10**6 * (number + 1)
    match entry:
        case Segment():
            return entry._replace(base=base if entry.repetition is NO_REPETITION else base * 4)
        case Fetch():
            return entry._replace(fetch=base)
        case Upload():
            return entry._replace(handle=base - 1)
    return entry


def take(intake: Intake, one: Session, raw: bytes) -> None:
    """Applies entries to their end, or until they end the session."""
    left: list[Any] = [*decode_entries(raw)]
    following = iter(left)
    applied = intake.take(one, following, Arrival((bytes(16),), 0))
    while applied.left is not None:
        applied = intake.take(one, [applied.left], Arrival((bytes(16),), 0))
        if applied.left is None and applied.error is None:
            applied = intake.take(one, following, Arrival((bytes(16),), 0))


@given(st.lists(ENTRIES, min_size=1, max_size=4))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_byte_of_entries_takes_few_bytes_but_for_live_values(entries: list[Entry]) -> None:
    world = World()
    one = world.session()
    world.take(one, new(WIDE, chain(("negative",) * WIDE_OPS, range(WIDE_OPS))))
    frames = [encode_entries([moved(entry, number) for entry in entries]) for number in range(_TIMES)]
    before = len(one.values)
    gc.collect()
    tracemalloc.start()
    try:
        for raw in frames:
            take(world.intake, one, raw)
            one.complete(one.in_flight)
    except CaseError:
        pass  # two uploads of a frame that have one handle, for instance, end the session
    finally:
        gc.collect()
        taken_bytes, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    live_bytes = VALUE_BYTES * max(len(one.values) - before, 0)
    assert taken_bytes <= A_BYTE * sum(map(len, frames)) + BASIS_BYTES + live_bytes
