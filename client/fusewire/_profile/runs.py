"""Joins what a server told of a session's segments with what was noted of them here: clocks, runs and waits. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from fusewire._profile.clocks import Alignment, Message, aligned
from fusewire._profile.events import SessionEvents
from fusewire_protos.frames import FIRST_UPLOAD, HANDLES_PER_RECORDER
from fusewire_protos.profiled import Run


def runs_by_base(runs: Iterable[Run]) -> dict[int, list[Run]]:
    """Returns the runs of each segment by its base, in the order in which they ended.

    A later slice of a loop waits in the queue from the time on at which the one before was ordered.
    """
    found: dict[int, list[Run]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.ended_ns):
        before = found[run.base]
        queued_ns = min(before[-1].ordered_ns, run.ordered_ns) if before else run.queued_ns
        before.append(run._replace(queued_ns=queued_ns))
    return dict(found)


def alignment_of(events: SessionEvents, runs: Mapping[int, Sequence[Run]]) -> Alignment:
    """Aligns the clocks by questions and answers, frames and their arrivals, and runs and the values that they gave."""
    to_server = [Message(each.posted_ns, each.answer.now_ns) for each in events.asked]
    from_server = [Message(each.answered_ns, each.answer.now_ns) for each in events.asked]
    for frame in events.framed:
        firsts = [runs[base][0] for base in frame.bases if base in runs]
        to_server += [Message(frame.at_ns, run.queued_ns) for run in firsts if not run.first_iteration]
    bases = sorted(each.base for each in events.sealed)
    for fetched in events.fetched:
        ran, answered_ns = runs.get(base_of(bases, fetched.handle)), events.answered.get(fetched.fetch)
        if ran and answered_ns is not None:
            from_server.append(Message(answered_ns, ran[0].ended_ns))
    return aligned(to_server, from_server)


def base_of(bases: Sequence[int], handle: int) -> int:
    """Returns the last of the ascending bases of a handle's recorder that is not above the handle.

    If there is none, or the handle is that of an upload, returns −1.
    """
    place = bisect_right(bases, handle)
    base = bases[place - 1] if place else -1
    is_result = handle % HANDLES_PER_RECORDER < FIRST_UPLOAD
    return base if is_result and handle // HANDLES_PER_RECORDER == base // HANDLES_PER_RECORDER else -1


class Busy(NamedTuple):
    """When the device worked for a session: intervals that do not overlap, and the time in those before each."""

    began_ns: tuple[int, ...]
    ended_ns: tuple[int, ...]
    before_ns: tuple[int, ...]

    def until(self, at_ns: int) -> int:
        """Returns for how long it worked before a time."""
        place = bisect_right(self.began_ns, at_ns) - 1
        return self.before_ns[place] + min(at_ns, self.ended_ns[place]) - self.began_ns[place] if place >= 0 else 0


def busy_of(runs: Iterable[Run]) -> Busy:
    """Returns when the device worked for these runs."""
    merged: list[list[int]] = []
    for began_ns, ended_ns in sorted((begun_ns(run), run.ended_ns) for run in runs):
        if merged and began_ns <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], ended_ns)
        else:
            merged.append([began_ns, ended_ns])
    before = accumulate([end - begin for begin, end in merged], initial=0)
    return Busy(tuple([each[0] for each in merged]), tuple([each[1] for each in merged]), tuple(before)[:-1])


def parts_of_wait(began_ns: int, ended_ns: int, runs: Sequence[Run], busy: Busy) -> dict[str, int]:
    """Returns for how long of a wait the device worked for the session, and its segment was on its way or in the queue.

    `runs` are those of the segment that made the value. Without them, as the value was there already, all of the wait
    is a way there and back. The device worked for the session also while it computed earlier segments, so that what is
    left for the queue is others' work and the server's own.
    """
    if not runs:
        return {"way_ns": ended_ns - began_ns, "queue_ns": 0, "run_ns": 0}
    came_ns = min(max(runs[0].queued_ns, began_ns), ended_ns)
    done_ns = min(max(runs[-1].ended_ns, came_ns), ended_ns)
    run_ns = busy.until(done_ns) - busy.until(came_ns)
    there_ns = done_ns - came_ns
    return {"way_ns": ended_ns - began_ns - there_ns, "queue_ns": there_ns - run_ns, "run_ns": run_ns}


def begun_ns(run: Run) -> int:
    """Returns when the device began a run. The server learns of its end a little later."""
    return max(run.ordered_ns, run.ended_ns - run.device_ns)
