"""The limit of open files: raised at the start, and warned of when it comes near."""

from __future__ import annotations

import logging
import resource
import subprocess
import sys

import pytest

from fusewire_server.host.descriptors import OpenFilesWatch
from tests.patience import HANGS_S


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    code = "from fusewire_server.host.descriptors import raise_open_file_limit; print(raise_open_file_limit())"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 300))

    done = subprocess.run(
        (sys.executable, "-c", code), preexec_fn=limit, capture_output=True, text=True, check=True, timeout=HANGS_S
    )
    assert done.stdout.strip() == "300"


def warnings_of(caplog: pytest.LogCaptureFixture, *looks: tuple[int | None, float]) -> int:
    watch = OpenFilesWatch(100)
    with caplog.at_level(logging.WARNING):
        for open_files, now_s in looks:
            watch.look(open_files, now_s)
    return len(caplog.records)


def test_far_from_the_limit_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings_of(caplog, (79, 1.0), (None, 2.0)) == 0


def test_near_the_limit_a_warning_comes_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings_of(caplog, (80, 1.0), (99, 60.0), (99, 61.0)) == 2
