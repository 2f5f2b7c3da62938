"""What frames of any kind and size cost: no step is long, its session is charged, and memory stays in proportion.

Times are processor time, and are compared with a piece of work that is timed beside them. Where a time is too long,
it is measured again, because other work on the processor makes times longer, and never shorter.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from hypothesis import given, target
from hypothesis import strategies as st

from fusewire_server.sessions.session import Value, ValueState
from tests.effort import of_a_hundred
from tests.server.costs.kinds import BY_NAME, KINDS, Kind
from tests.server.costs.measuring import Cost, cost_of, memory_of
from tests.server.parts import VECTOR

_TRIES = 8
_UNIT_VALUES = 1000  # the unit of times is that of making so many values of a session: 0.8 ms on a processor of 2023
_MOST_UNITS = 25.0
# How long the steps are of kinds whose steps are longer. Whoever shortens one of them takes its line away.
_LONGER_UNITS = {
    "segment: unknown handle": 30.0,
    "segment: unknown handle, last of many ops": 37.0,
    "segment: unknown handle, all of many results": 45.0,
    "segment: failed input, all of many results": 60.0,
    "segment: many kept results": 45.0,
    "segment: rows held back, then cancelled": 60.0,
    "segment: many starts from one, out of range": 52.0,
    "fetch: many of one value": 52.0,
    "upload: declared large and never sent": 60.0,
    "upload: larger than an array may be": 37.0,
    "upload: flags that are none": 30.0,
}
_MOST_UNCHARGED_UNITS = 4.0  # beside half of the time
# Kinds of which the time is not charged, because it passes before or after a frame is applied.
_UNCHARGED = frozenset(
    {
        "segment: legal and short",
        "segment: many inputs",
        "segment: many kept results",
        "loop: many results kept",
        "loop: an input of many handles",
        "fetch: many of one value",
        "frame: empty, numbered",
        "frame: empty, without a number",
        "frame: entries beyond the most",
        "frame: unused tensors",
        "frame: unknown fields",
        "frame: goodbyes that are joined",
        "frame: a second hello of many versions",
        "hello: many versions, of which none is spoken",
        "hello: a session that is left at once",
    }
)
_MOST_MEMORY_BYTES, _BYTES_A_BYTE = 48 << 20, 40
_SIZES = st.floats(0, 1)


def test_kinds_that_are_excepted_are_in_the_catalogue() -> None:
    assert BY_NAME.keys() >= {*_LONGER_UNITS, *_UNCHARGED}


@of_a_hundred(25)
@given(st.sampled_from(KINDS), _SIZES)
def test_no_step_of_the_engine_thread_is_long(kind: Kind, part: float) -> None:
    most_units = _LONGER_UNITS.get(kind.name, _MOST_UNITS)
    units = _least(kind, kind.size(part), lambda cost, unit_ns: cost.longest.time_ns / unit_ns, most_units)
    target(units / most_units, label="the longest step")
    assert units <= most_units


@of_a_hundred(25)
@given(st.sampled_from([kind for kind in KINDS if kind.name not in _UNCHARGED]), _SIZES)
def test_half_of_the_time_of_the_engine_thread_is_charged_to_its_session(kind: Kind, part: float) -> None:
    units = _least(kind, kind.size(part), _uncharged_units, _MOST_UNCHARGED_UNITS)
    target(units, label="what is not charged")
    assert units <= _MOST_UNCHARGED_UNITS


@of_a_hundred(15)
@given(st.sampled_from(KINDS), st.floats(0, 0.8))  # noting each allocation makes the largest sizes take minutes
def test_a_frame_takes_memory_in_proportion_to_its_bytes(kind: Kind, part: float) -> None:
    memory = memory_of(kind, kind.size(part))
    bound_bytes = _MOST_MEMORY_BYTES + _BYTES_A_BYTE * memory.frame_bytes
    target(memory.peak_bytes / bound_bytes, label="the most memory")
    assert memory.peak_bytes <= bound_bytes


def _uncharged_units(cost: Cost, unit_ns: int) -> float:
    """What is not charged beyond half of the time."""
    return (cost.loop_ns / 2 - cost.charged_ns) / unit_ns


def _least(kind: Kind, size: int, figure: Callable[[Cost, int], float], enough: float) -> float:
    """Measures until a figure is small enough, and returns the least."""
    least = math.inf
    for _ in range(_TRIES):
        if least > enough:
            least = min(least, figure(cost_of(kind, size), _unit_ns()))
    return least


def _unit_ns() -> int:
    return min(_making_values_ns() for _ in range(5))


def _making_values_ns() -> int:
    began_ns = time.thread_time_ns()
    for handle in range(_UNIT_VALUES):
        Value(handle, VECTOR, ValueState.READY)
    return time.thread_time_ns() - began_ns
