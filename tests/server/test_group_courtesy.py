"""Groups of processes that give way to others."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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


grouped = pytest.mark.skipif(group_niceness(os.getpid()) is None, reason="this process is in no group")


@contextmanager
def leader() -> Iterator[int]:
    """A process that leads a session."""
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
        yield process.pid


@grouped
def test_a_group_gives_way_and_gets_its_share_back_and_nobody_else_changes() -> None:
    async def scenario() -> None:
        before = group_niceness(os.getpid())
        with leader() as process:
            courtesy = GroupCourtesy(process, LEAST)
            await until(lambda: group_niceness(process) == LEAST)
            courtesy.change(SMALL)
            await until(lambda: group_niceness(process) == SMALL)
            courtesy.change(LEAST)
            await until(lambda: group_niceness(process) == LEAST)
            courtesy.end()
        assert group_niceness(os.getpid()) == before

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
    return GroupCourtesy(1, LEAST)


def test_what_is_refused_for_now_is_tried_again_with_what_is_wanted_by_then(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> list[str]:
        file = TooOften(3)
        of_file(file, monkeypatch).change(SMALL)
        await until(lambda: bool(file.written))
        return file.written

    assert asyncio.run(scenario()) == [str(SMALL)]


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

    assert asyncio.run(scenario()) == [str(LEAST)]


def test_where_there_are_no_groups_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        of_file(tmp_path / "none" / "autogroup", monkeypatch).change(SMALL)

    asyncio.run(scenario())
    assert not list(tmp_path.iterdir())
