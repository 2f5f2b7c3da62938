"""The alignment of two clocks is within the error that it states."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fusewire._profile.clocks import WINDOW_NS, Message, aligned

_DELAYS = st.integers(0, 10**6)
_TIMES = st.integers(0, 3 * WINDOW_NS)


@given(
    st.integers(-(10**12), 10**12),
    st.lists(st.tuples(_TIMES, _DELAYS), min_size=1),
    st.lists(st.tuples(_TIMES, _DELAYS)),
)
def test_a_clock_that_is_ahead_is_found_within_the_error(
    ahead_ns: int, sent: list[tuple[int, int]], came: list[tuple[int, int]]
) -> None:
    to_server = [Message(at_ns, at_ns + delay_ns + ahead_ns) for at_ns, delay_ns in sent]
    from_server = [Message(at_ns + delay_ns, at_ns + ahead_ns) for at_ns, delay_ns in came]
    found = aligned(to_server, from_server)
    for at_ns, _ in sent:
        if found.error_ns is not None:
            assert abs(found.to_client(at_ns + ahead_ns) - at_ns) <= found.error_ns + 1


@given(_DELAYS, _DELAYS)
def test_the_error_is_half_of_the_shortest_round_trip(there_ns: int, back_ns: int) -> None:
    found = aligned([Message(100, 100 + there_ns)], [Message(100 + there_ns + back_ns, 100 + there_ns)])
    assert found.error_ns == (there_ns + back_ns + 1) // 2


def test_more_messages_tighten_the_bounds() -> None:
    loose = aligned([Message(0, 900)], [Message(1800, 900)])
    tight = aligned([Message(0, 900), Message(2000, 2010)], [Message(1800, 900), Message(3010, 3000)])
    assert (loose.error_ns, tight.error_ns) == (900, 10)


def test_clocks_that_drift_apart_are_followed() -> None:
    def ahead_ns(at_ns: int) -> int:
        return at_ns // 10_000  # 100 µs a second

    times = range(0, 6 * WINDOW_NS, WINDOW_NS // 10)
    found = aligned(
        [Message(at_ns, at_ns + ahead_ns(at_ns) + 1000) for at_ns in times],
        [Message(at_ns + 1000, at_ns + ahead_ns(at_ns)) for at_ns in times],
    )
    middle_ns = 3 * WINDOW_NS
    assert abs(found.to_client(middle_ns + ahead_ns(middle_ns)) - middle_ns) <= 200_000
    assert found.error_ns is not None
    assert found.error_ns >= 200_000  # the drift within a window is part of it


def test_without_messages_of_both_ways_no_error_is_stated() -> None:
    assert aligned([], []).to_client(5) == 5
    one = aligned([Message(10, 110)], [])
    assert (one.to_client(110), one.error_ns) == (10, None)
