"""The runs of a profiled session are kept in a bounded ring until its client asks."""

from __future__ import annotations

from fusewire_protos.profiled import MOST_RUNS, Run, decode_profiled
from fusewire_server.sessions.profile import Profile


def _run(number: int) -> Run:
    return Run(number, 0, 0, 0, 0, 0, number, 0, 1, 1, 1, 0)


def test_runs_are_told_once_in_order() -> None:
    profile = Profile()
    for number in range(3):
        profile.add(_run(number))
    told = decode_profiled(profile.take(77))
    assert (told.now_ns, told.lost, [each.base for each in told.runs]) == (77, 0, [0, 1, 2])
    assert decode_profiled(profile.take(78)) == (78, 0, ())


def test_the_newest_runs_are_kept_and_the_others_counted() -> None:
    profile = Profile()
    for number in range(MOST_RUNS + 5):
        profile.add(_run(number))
    told = decode_profiled(profile.take(0))
    assert (told.lost, len(told.runs), told.runs[0].base) == (5, MOST_RUNS, 5)
    assert decode_profiled(profile.take(0)).lost == 0
