"""Puts what was noted of sessions, and what their servers told, on one timeline. Pure.

All times are nanoseconds since the block began. A segment is one use of a program: your code records its ops, then it
is cut, travels in a frame, waits in the server's queue, and runs on the device in one submission or several.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from fusewire._profile.clocks import Alignment
from fusewire._profile.events import NO_LINE, Sealed, SessionEvents, Waited
from fusewire._profile.labels import label_of, line_text, lines_label
from fusewire._profile.runs import Busy, alignment_of, base_of, begun_ns, busy_of, parts_of_wait, runs_by_base
from fusewire_protos.profiled import Run

NO_SEGMENT = -1
_MOST_LANES = 8  # of blocks that overlap


class Segment(NamedTuple):
    """A segment: what it is called, your line that recorded most of it, and what it is made of."""

    label: str
    line: str
    ops: int
    iterations: int
    why_cut: str
    names: tuple[str, ...]  # of the first ops of an iteration


class Block(NamedTuple):
    """Something that lasted. Blocks of one track do not overlap.

    `kind` is "code" (your code, and recording), "cut", "read", "credit" (waiting for it), "frame" or "submission".
    `segment` is the place of the segment that it is of, or NO_SEGMENT.
    """

    track: int
    kind: str
    began_ns: int
    ended_ns: int
    label: str
    segment: int = NO_SEGMENT
    line: str = ""
    facts: tuple[tuple[str, int], ...] = ()


class Series(NamedTuple):
    """A figure over time: each value holds from its time on."""

    name: str
    unit: str
    points: tuple[tuple[int, int], ...]


class Timeline(NamedTuple):
    """What happened in the block.

    `tracks` are the names of threads, of ways to the server ("frames") and of devices. `error_ns` is by how much times
    on a server may be wrong beside those of this process; None if that is not known.
    """

    length_ns: int
    tracks: tuple[str, ...]
    blocks: tuple[Block, ...]
    segments: tuple[Segment, ...]
    series: tuple[Series, ...]
    counts: Mapping[str, int]  # of "sessions", "threads", "ops", "segments", "frames", "frame_bytes", "submissions", …
    error_ns: int | None
    notes: tuple[str, ...]


def timeline_of(began_ns: int, ended_ns: int, sessions: Sequence[SessionEvents]) -> Timeline:
    """Returns the timeline of a block that ran from `began_ns` to `ended_ns`, on the clock of the process."""
    made = _Assembly(began_ns)
    for events in sessions:
        made.add(events, f" of {events.name}" if len(sessions) > 1 else "")
    blocks = sorted(made.blocks, key=lambda each: (each.track, each.began_ns, each.ended_ns))
    last_ns = max([ended_ns - began_ns, *[each.ended_ns for each in blocks]])
    on_device = {"submissions": len(made.submissions), "device_ns": sum(made.submissions.values())}
    counts = {"sessions": len(sessions), "threads": len(made.user_threads), **on_device, **made.counts}
    errors = made.errors
    error_ns = None if None in errors else max([each for each in errors if each is not None], default=0)
    series = (*made.series,)
    tracks, notes = (*made.tracks,), tuple(dict.fromkeys(made.notes))
    return Timeline(last_ns, tracks, tuple(blocks), tuple(made.segments), series, counts, error_ns, notes)


class _Assembly:
    """The timeline that is being made."""

    def __init__(self, began_ns: int) -> None:
        self._began_ns = began_ns
        self.tracks: list[str] = []
        self.blocks: list[Block] = []
        self.segments: list[Segment] = []
        self.series: list[Series] = []
        self.counts: Counter[str] = Counter()
        self.errors: list[int | None] = []
        self.notes: list[str] = []
        self.user_threads: set[int] = set()
        # The device's time of each submission, by its number and end: its rows may be of several sessions.
        self.submissions: dict[tuple[int, int], int] = {}
        self._track_of_thread: dict[int, int] = {}

    def add(self, events: SessionEvents, of: str) -> None:
        """Adds a session. `of` is behind the names of its own tracks."""
        runs = runs_by_base([run for asked in events.asked for run in asked.answer.runs])
        self.submissions |= {(run.submission, run.ended_ns): run.device_ns for each in runs.values() for run in each}
        alignment = alignment_of(events, runs)
        self.errors.append(alignment.error_ns)
        place_of = {each.base: len(self.segments) + place for place, each in enumerate(events.sealed)}
        self.segments += segments_of(events)
        here = {base: [self._on_clock(run, alignment) for run in each] for base, each in runs.items()}
        self._add_threads(events, place_of, here)
        self._add_frames(events, place_of, here, of)
        self._add_submissions(place_of, here, of)
        self._count(events, here)

    def _on_clock(self, run: Run, alignment: Alignment) -> Run:
        times = [alignment.to_client(each) - self._began_ns for each in (run.queued_ns, run.ordered_ns, run.ended_ns)]
        return run._replace(queued_ns=times[0], ordered_ns=times[1], ended_ns=times[2])

    def _add_threads(self, events: SessionEvents, place_of: Mapping[int, int], runs: Mapping[int, list[Run]]) -> None:
        bases, busy_ns = sorted(place_of), busy_of([run for each in runs.values() for run in each])
        handle_of = {each.fetch: each.handle for each in events.fetched}
        by_thread: dict[int, list[Block]] = defaultdict(list)
        for cut in events.sealed:
            began_ns, ended_ns = cut.began_ns - self._began_ns, cut.ended_ns - self._began_ns
            place = place_of[cut.base]
            block = Block(0, "cut", began_ns, ended_ns, "cutting", place, self.segments[place].line)
            by_thread[cut.thread].append(block)
        for wait in events.waited:
            base = base_of(bases, handle_of.get(wait.fetch, -1))
            block = self._wait_block(wait, runs.get(base, []), busy_ns)
            by_thread[wait.thread].append(block._replace(segment=place_of.get(base, NO_SEGMENT)))
        recording = {each.recorded_by for each in events.sealed if each.recorded_by}
        self.user_threads |= recording | {each.thread for each in events.waited}
        for thread in sorted(by_thread.keys() | recording, key=lambda each: (each not in self.user_threads, each)):
            track = self._thread_track(thread, events.threads)
            cuts = [each for each in events.sealed if each.recorded_by == thread]
            busy = without_overlaps(by_thread.get(thread, []))
            self.blocks += [Block(track, *each[1:]) for each in (*busy, *self._code_blocks(cuts, busy, place_of))]

    def _wait_block(self, wait: Waited, runs: Sequence[Run], busy: Busy) -> Block:
        began_ns, ended_ns = wait.began_ns - self._began_ns, wait.ended_ns - self._began_ns
        facts = tuple(parts_of_wait(began_ns, ended_ns, runs, busy).items()) if wait.kind == "read" else ()
        label = "waiting for a value" if wait.kind == "read" else "waiting for the device to catch up"
        return Block(0, wait.kind, began_ns, ended_ns, label, NO_SEGMENT, line_text(wait.line), facts)

    def _code_blocks(
        self, cuts: Sequence[Sealed], busy: Sequence[Block], place_of: Mapping[int, int]
    ) -> Iterable[Block]:
        """Yields the stretches in which code recorded the ops of each segment, between what else the thread did."""
        ends = [each.ended_ns for each in busy]
        begun_ns = 0
        for cut in cuts:
            ended_ns = cut.began_ns - self._began_ns
            before = bisect_right(ends, ended_ns)
            began_ns = max(begun_ns, ends[before - 1] if before else 0)
            begun_ns = max(begun_ns, ended_ns)
            if began_ns < ended_ns:
                place = place_of[cut.base]
                segment = self.segments[place]
                yield Block(0, "code", began_ns, ended_ns, segment.line or segment.label, place, segment.line)

    def _add_frames(
        self, events: SessionEvents, place_of: Mapping[int, int], runs: Mapping[int, list[Run]], of: str
    ) -> None:
        blocks = []
        for frame in events.framed:
            at_ns = frame.at_ns - self._began_ns
            came = [runs[base][0].queued_ns for base in frame.bases if base in runs]
            place = next((place_of[base] for base in frame.bases if base in place_of), NO_SEGMENT)
            facts = (("size_bytes", frame.size_bytes), ("segments", len(frame.bases)))
            ended_ns = max([at_ns, *came[:1]])
            blocks.append(Block(0, "frame", at_ns, ended_ns, f"frame {frame.number}", place, facts=facts))
        self._add_lanes(f"frames{of}", blocks)

    def _add_submissions(self, place_of: Mapping[int, int], runs: Mapping[int, list[Run]], of: str) -> None:
        blocks = []
        for base, run in [(base, run) for base, each in runs.items() for run in each]:
            place = place_of.get(base, NO_SEGMENT)
            label = self.segments[place].label if place != NO_SEGMENT else "recorded before the block"
            facts = (
                ("queue_ns", max(run.ordered_ns - run.queued_ns, 0)),
                ("device_ns", run.device_ns),
                ("iterations", run.iterations),
                ("rows", run.rows),
                ("submission", run.submission),
                ("tier", run.tier),
                ("failed", run.failed),
            )
            blocks.append(Block(0, "submission", begun_ns(run), run.ended_ns, label, place, facts=facts))
        self._add_lanes(f"device{of}", blocks)
        all_runs = [run for each in runs.values() for run in each]
        steps = sorted([(run.queued_ns, 1) for run in all_runs] + [(run.ordered_ns, -1) for run in all_runs])
        depths = accumulate([step for _, step in steps])
        queue = {at_ns: depth for (at_ns, _), depth in zip(steps, depths, strict=True)}
        memory = {run.ended_ns: run.live_bytes for run in sorted(all_runs, key=lambda run: run.ended_ns)}
        self.series.append(Series(f"queue{of}", "segments", tuple(queue.items())))
        self.series.append(Series(f"memory{of}", "bytes", tuple(memory.items())))

    def _add_lanes(self, name: str, blocks: Sequence[Block]) -> None:
        """Adds blocks, on as many tracks as overlap. A block that overlaps its predecessor a little is cut."""
        ends_ns: list[int] = []
        first = len(self.tracks)
        for block in sorted(blocks, key=lambda each: (each.began_ns, each.ended_ns)):
            middle_ns = (block.began_ns + block.ended_ns) // 2
            lane = next((lane for lane, end_ns in enumerate(ends_ns) if end_ns <= middle_ns), len(ends_ns))
            if lane == len(ends_ns):
                if lane == _MOST_LANES:
                    lane = min(range(lane), key=lambda each: ends_ns[each])
                else:
                    ends_ns.append(block.began_ns)
                    self.tracks.append(name if lane == 0 else f"{name} ({lane + 1})")
            began_ns = max(block.began_ns, ends_ns[lane])
            ends_ns[lane] = max(block.ended_ns, began_ns)
            self.blocks.append(Block(first + lane, block.kind, began_ns, ends_ns[lane], *block[4:]))

    def _thread_track(self, thread: int, names: Mapping[int, str]) -> int:
        if thread not in self._track_of_thread:
            self._track_of_thread[thread] = len(self.tracks)
            name = names.get(thread, str(thread))
            self.tracks.append("main thread" if name == "MainThread" else f"thread {name}")
        return self._track_of_thread[thread]

    def _count(self, events: SessionEvents, runs: Mapping[int, list[Run]]) -> None:
        self.counts.update(
            ops=sum(each.ops for each in events.sealed),
            segments=len(events.sealed),
            frames=len(events.framed),
            frame_bytes=sum(each.size_bytes for each in events.framed),
            reads=len(events.fetched),
            uploads=len(events.uploaded),
            upload_bytes=sum(each.size_bytes for each in events.uploaded),
        )
        most = max([run.live_bytes for each in runs.values() for run in each], default=0)
        self.counts["memory_bytes"] = max(self.counts["memory_bytes"], most)
        lost = sum(asked.answer.lost for asked in events.asked)
        if lost:
            self.notes.append(f"{lost} submissions were too many to be kept")
        if events.left_out:
            self.notes.append(f"{events.left_out} events were too many to be kept")
        unknown = sum(each.base not in runs for each in events.sealed)
        if unknown and not lost:
            self.notes.append(f"of {unknown} segments it is not known how they ran")
        self.notes += events.notes


def without_overlaps(blocks: Iterable[Block]) -> list[Block]:
    """Returns blocks in order, each from the end of the one before at the earliest."""
    found: list[Block] = []
    for block in sorted(blocks, key=lambda each: (each.began_ns, each.ended_ns)):
        began_ns = max([block.began_ns, *[each.ended_ns for each in found[-1:]]])
        if began_ns <= block.ended_ns:
            found.append(Block(block.track, block.kind, began_ns, *block[3:]))
    return found


def segments_of(events: SessionEvents) -> list[Segment]:
    """Returns what is told of each segment."""
    known = {
        number: (label_of(facts.names), lines_label(facts.lines), facts.names)
        for number, facts in events.programs.items()
    }
    found = []
    for cut in events.sealed:
        label, line, names = known.get(cut.program, ("", "", ()))
        line = line or line_text(events.lines.get(cut.place, NO_LINE))
        found.append(Segment(label or "ops", line, cut.ops, cut.iterations, cut.trigger, names))
    return found
