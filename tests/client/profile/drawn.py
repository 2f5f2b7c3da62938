"""Draws what might be noted of a session, with a true difference of the clocks."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

from fusewire._profile.events import Asked, Fetched, Framed, Line, ProgramFacts, Sealed, SessionEvents, Waited
from fusewire._profile.timeline import Timeline, timeline_of
from fusewire_protos.profiled import Profiled, Run

BEGAN_NS = 5_000_000
PROGRAMS = (
    ProgramFacts(
        3, ("matmul", "add", "tanh"), (Line("/a/train.py", 3), Line("/a/train.py", 5), Line("/a/train.py", 4))
    ),
    ProgramFacts(1, ("exp</script>",), (Line("/a/<b>&.py", 9),)),
)


class Drawn(NamedTuple):
    """Notes, and by how much the server's clock is ahead."""

    events: SessionEvents
    ahead_ns: int
    ended_ns: int

    @property
    def timeline(self) -> Timeline:
        return timeline_of(BEGAN_NS, self.ended_ns, [self.events])


@st.composite
def sessions(draw: st.DrawFn) -> Drawn:
    """A thread that records, cuts, and mostly reads; each segment is a frame, and runs once or in slices."""
    ahead_ns = draw(st.integers(-(10**9), 10**12))
    delays = st.integers(0, 300_000)
    now_ns, free_ns = BEGAN_NS, 0
    sealed, framed, waited, fetched = [], [], [], []
    runs: list[Run] = []
    answered: dict[int, int] = {}
    for number in range(draw(st.integers(0, 12))):
        base, program = 1 + 1000 * number, draw(st.integers(0, 1))
        began_ns = now_ns + draw(delays)
        now_ns = began_ns + draw(delays)
        iterations = draw(st.integers(1, 3))
        ops = iterations * PROGRAMS[program].op_count
        sealed.append(Sealed(7, 7, began_ns, now_ns, base, ops, iterations, program, program + 1, "demand"))
        framed.append(Framed(now_ns, number + 1, 100 + number, (base,)))
        came_ns = now_ns + draw(delays)
        for first in range(iterations if draw(st.booleans()) else 1):
            ordered_ns = max(came_ns, free_ns) + draw(delays)
            device_ns = draw(delays)
            free_ns = ordered_ns + device_ns + draw(delays)
            came, ordered, ended = (each + ahead_ns + 10**9 for each in (came_ns, ordered_ns, free_ns))
            runs.append(Run(base, came, ordered, ended, device_ns, 64 * number, len(runs) + 1, first, 1, 1, 1, 0))
        if draw(st.booleans()):
            answered[number + 1] = free_ns + draw(delays)
            fetched.append(Fetched(now_ns, number + 1, base + ops - 1, Line("/a/train.py", 8)))
            waited.append(Waited(7, "read", now_ns, answered[number + 1], Line("/a/train.py", 8), number + 1))
            now_ns = answered[number + 1]
    ended_ns = max(now_ns, free_ns) + draw(delays)
    told_ns = ended_ns + draw(delays)
    asked = [Asked(ended_ns, told_ns + draw(delays), Profiled(told_ns + ahead_ns + 10**9, 0, tuple(runs)))]
    events = SessionEvents(
        "0123456789ab",
        {7: "MainThread"},
        sealed,
        framed,
        waited,
        fetched,
        answered,
        programs=dict(enumerate(PROGRAMS)),
        asked=asked,
    )
    return Drawn(events, ahead_ns + 10**9, ended_ns)
