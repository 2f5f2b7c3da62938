"""What counts against a test's patience."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.patience import HANGS_S, Look, Patience, ThreadTime, counted_s, threads_of_tree


def looks(passed_s: float, *threads: tuple[float, float]) -> tuple[Look, Look]:
    """Two looks, between which each of the threads ran and waited so long."""
    before = {number: ThreadTime(5.0, 7.0) for number in range(len(threads))}
    after = {number: ThreadTime(5.0 + ran_s, 7.0 + waited_s) for number, (ran_s, waited_s) in enumerate(threads)}
    return Look(100.0, before), Look(100.0 + passed_s, after)


@pytest.mark.parametrize(
    ("threads", "counted"),
    [
        ((), 4.0),  # the system does not tell
        (((0.0, 0.0), (0.0, 0.0)), 4.0),  # nobody wants to run: a hang
        (((4.0, 0.0),), 4.0),  # it has a processor
        (((3.5, 0.0), (3.0, 0.0)), 4.0),  # and more than one
        (((0.5, 3.5),), 0.5),  # others have it
        (((0.5, 3.5), (0.5, 3.5), (0.0, 0.0)), 1.0),
        (((0.0, 1.0),), 3.0),  # it waits for a processor at first, and then for something else
    ],
)
def test_time_counts_unless_other_processes_had_the_processors(
    threads: tuple[tuple[float, float], ...], counted: float
) -> None:
    assert counted_s(*looks(4.0, *threads)) == pytest.approx(counted)


def test_a_thread_that_has_begun_meanwhile_counts_from_its_beginning() -> None:
    before, after = Look(0.0, {}), Look(4.0, {1: ThreadTime(1.0, 3.0)})
    assert counted_s(before, after) == pytest.approx(1.0)


def test_patience_is_exhausted_by_the_time_that_counts() -> None:
    times_s = [0.0, 4.0, 4.5, 8.0, 17.0, 19.0]
    halves = iter([ThreadTime(at_s / 2, at_s / 2) for at_s in times_s if at_s not in (0.0, 4.5)])
    clock = iter(times_s)
    patience = Patience(9.0, threads=lambda: {1: next(halves)}, clock=lambda: next(clock))
    assert [patience.is_exhausted() for _ in times_s[1:]] == [False, False, False, False, True]


def test_a_short_wait_does_not_look_at_threads() -> None:
    clock = iter([0.0, 0.3, 0.6, 0.9])
    patience = Patience(0.5, threads=lambda: pytest.fail("it looked"), clock=lambda: next(clock))
    assert not any(patience.is_exhausted() for _ in range(3))


def test_this_process_and_its_descendants_are_seen() -> None:
    spins = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    with subprocess.Popen([sys.executable, "-c", spins], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()  # of the grandchild
        threads = threads_of_tree()
        child.communicate(b"\n", HANGS_S)
    assert len(threads) >= 3
    assert sum(each.ran_s for each in threads.values()) > 0
