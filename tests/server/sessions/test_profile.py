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
    decoded = decode_profiled(profile.take(77))
    assert (decoded.now_ns, decoded.lost, [each.base for each in decoded.runs]) == (77, 0, [0, 1, 2])
    assert decode_profiled(profile.take(78)) == (78, 0, ())


def test_the_newest_runs_are_kept_and_the_others_counted() -> None:
    profile = Profile()
    for number in range(MOST_RUNS + 5):
        profile.add(_run(number))
    decoded = decode_profiled(profile.take(0))
    assert (decoded.lost, len(decoded.runs), decoded.runs[0].base) == (5, MOST_RUNS, 5)
    assert decode_profiled(profile.take(0)).lost == 0
