"""Groups of processes that give way to others."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from fusewire_server import group_courtesy
from fusewire_server.group_courtesy import LEAST, SMALL, GroupCourtesy, group_file
from tests.server.world import until


def group_niceness(process: int) -> int | None:
    """Of the group of processes that one is in; None if it is in none."""
    try:
        words = group_file(process).read_text(encoding="ascii").split()
    except OSError:  # the system has no groups
        return None
    return int(words[-1]) if words else None  # the file of a process in no group is there, and empty


def has_niceness(process: int, niceness: int) -> bool:
    return group_niceness(process) == niceness


grouped = pytest.mark.skipif(group_niceness(os.getpid()) is None, reason="this process is in no group")


_STARTS_ANOTHER = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"])
print(child.pid, flush=True)
child.wait()
"""


@contextmanager
def leader() -> Iterator[tuple[int, int]]:
    """A process that leads a session, and one that it has started."""
    command = [sys.executable, "-c", _STARTS_ANOTHER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
        assert process.stdin is not None
        process.stdin.close()


@grouped
def test_a_group_gives_way_and_gets_its_share_back_and_nobody_else_changes() -> None:
    async def scenario() -> None:
        before = group_niceness(os.getpid())
        with leader() as (process, _):
            courtesy = GroupCourtesy(process, LEAST)
            for share in (LEAST, SMALL, LEAST):
                courtesy.change(share)
                await until(partial(has_niceness, process, share.niceness))
            courtesy.end()
        assert group_niceness(os.getpid()) == before

    asyncio.run(scenario())


def test_a_group_with_the_least_share_keeps_to_one_processor_and_with_more_to_none() -> None:
    async def scenario() -> None:
        ours = os.sched_getaffinity(0)
        with leader() as processes:
            courtesy = GroupCourtesy(processes[0], LEAST)
            assert {len(os.sched_getaffinity(process)) for process in processes} == {1}
            courtesy.change(SMALL)
            assert all(os.sched_getaffinity(process) == ours for process in processes)
            courtesy.end()
        assert os.sched_getaffinity(0) == ours

    asyncio.run(scenario())


def test_a_group_that_has_ended_meanwhile_is_left_alone() -> None:
    async def scenario() -> None:
        with leader() as (process, _):
            courtesy = GroupCourtesy(process, LEAST)
        courtesy.change(SMALL)
        courtesy.end()

    asyncio.run(scenario())


class TooOften:
    """A group's file that refuses some writes, as Linux does those of users who change groups too often."""

    def __init__(self, refused: int) -> None:
        self.refused = refused
        self.written: list[str] = []

    def write_text(self, text: str, encoding: str) -> None:
        if self.refused > 0:
            self.refused -= 1
            raise BlockingIOError(encoding)
        self.written.append(text)


def of_file(file: object, monkeypatch: pytest.MonkeyPatch) -> GroupCourtesy:
    monkeypatch.setattr(group_courtesy, "AGAIN_S", 0.0)
    monkeypatch.setattr(group_courtesy, "group_file", lambda process: file)
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, processors: None)
    return GroupCourtesy(os.getpid(), LEAST)


def test_what_is_refused_for_now_is_tried_again_with_what_is_wanted_by_then(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> list[str]:
        file = TooOften(3)
        of_file(file, monkeypatch).change(SMALL)
        await until(lambda: bool(file.written))
        return file.written

    assert asyncio.run(scenario()) == [str(SMALL.niceness)]


def test_no_group_is_touched_once_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> list[str]:
        file = TooOften(1)
        of_file(file, monkeypatch).end()
        for _ in range(10):
            await asyncio.sleep(0)
        return file.written

    assert asyncio.run(scenario()) == []


def test_a_share_that_a_group_has_is_not_set_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> list[str]:
        file = TooOften(0)
        of_file(file, monkeypatch).change(LEAST)
        return file.written

    assert asyncio.run(scenario()) == [str(LEAST.niceness)]


def test_where_there_are_no_groups_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        of_file(tmp_path / "none" / "autogroup", monkeypatch).change(SMALL)

    asyncio.run(scenario())
    assert not list(tmp_path.iterdir())
