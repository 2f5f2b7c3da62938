"""What stays in the folder of compiled files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fusewire_kernels.compile.cache_eviction import WORKER_PREFIX, hold, is_due, tidy

NOW_S = 1_000_000.0
LONG_AGO_S = NOW_S - 10_000


def _file(folder: Path, name: str, used_s: float, size_bytes: int = 100) -> Path:
    path = folder / name
    path.write_bytes(bytes(size_bytes))
    os.utime(path, (used_s, used_s))
    return path


def _unit(folder: Path, name: str, used_s: float) -> Path:
    """A compiled file of 100 bytes with a link to it."""
    (folder / f"kernel-{name}.so").symlink_to(f"unit-{name}.so")
    return _file(folder, f"unit-{name}.so", used_s)


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_files_used_longest_ago_go_until_the_rest_fit_and_their_links_with_them(tmp_path: Path) -> None:
    for age_s, name in enumerate("abcd"):
        _unit(tmp_path, name, LONG_AGO_S - age_s)
    tidy(tmp_path, 250, NOW_S)
    assert _names(tmp_path) == {"unit-a.so", "kernel-a.so", "unit-b.so", "kernel-b.so"}


def test_what_fits_stays_however_old(tmp_path: Path) -> None:
    _unit(tmp_path, "a", 0)
    tidy(tmp_path, 100, NOW_S)
    assert _names(tmp_path) == {"unit-a.so", "kernel-a.so"}


def test_what_was_used_a_moment_ago_stays_whatever_the_bound(tmp_path: Path) -> None:
    _unit(tmp_path, "a", NOW_S - 5)
    _unit(tmp_path, "b", LONG_AGO_S)
    tidy(tmp_path, 0, NOW_S)
    assert _names(tmp_path) == {"unit-a.so", "kernel-a.so"}


@pytest.mark.parametrize(("age_s", "stays"), [(10_000, False), (30, True)])
def test_what_an_interrupted_compiler_left_goes_after_a_while(age_s: float, stays: bool, tmp_path: Path) -> None:
    part = _file(tmp_path, "part-abc.c", NOW_S - age_s)
    tidy(tmp_path, 1 << 30, NOW_S)
    assert part.exists() == stays


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    other = _file(tmp_path, "notes.txt", 0)
    tidy(tmp_path, 0, NOW_S)
    assert other.exists()


def test_the_folder_is_gone_through_once_in_a_while(tmp_path: Path) -> None:
    assert is_due(tmp_path, NOW_S)
    os.utime(tmp_path / "tidied", (NOW_S, NOW_S))
    assert not is_due(tmp_path, NOW_S + 30)
    assert is_due(tmp_path, NOW_S + 100)


def test_the_folder_of_a_worker_goes_once_nobody_holds_it(tmp_path: Path) -> None:
    folder = tmp_path / f"{WORKER_PREFIX}1"
    folder.mkdir()
    _file(folder, "part-abc.c", 0)
    lock = hold(folder)
    tidy(tmp_path, 1 << 30, NOW_S)
    assert folder.exists()
    os.close(lock)
    tidy(tmp_path, 1 << 30, NOW_S)
    assert not folder.exists()
