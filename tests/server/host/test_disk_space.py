"""The room of a disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

from fusewire_server.host.disk_space import free_bytes


def test_the_room_is_that_of_the_disk_although_the_folder_is_not_there_yet(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "not" / "yet"):
        found = free_bytes(folder)
        assert found is not None
        assert abs(found - shutil.disk_usage(tmp_path).free) < 1 << 30


def test_of_a_disk_that_does_not_answer_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_path: object) -> NoReturn:
        raise OSError("gone")

    monkeypatch.setattr(os, "statvfs", fail)
    assert free_bytes(tmp_path) is None
