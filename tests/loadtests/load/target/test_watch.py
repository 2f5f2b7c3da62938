"""The memory of processes over time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from loadtests.load.target.watch import MemoryWatch, growth_bytes_per_s


def test_a_leak_of_a_mebibyte_a_second_is_its_slope() -> None:
    leak = [(at / 4, 50_000_000 + (at << 18)) for at in range(40)]
    assert growth_bytes_per_s(leak) == pytest.approx(1 << 20)


def test_a_single_jump_is_no_growth() -> None:
    assert growth_bytes_per_s([(float(at), 1000 if at < 9 else 9000) for at in range(30)]) == 0


def test_one_sample_has_no_slope() -> None:
    assert growth_bytes_per_s([(0.0, 1)]) is None


def test_a_process_that_has_ended_counts_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        watch = MemoryWatch(process.pid, [os.getpid()])
        assert watch.sample(0.0).server_bytes != 0
        process.kill()
    ended = watch.sample(1.0)
    assert (ended.at_s, ended.server_bytes) == (1.0, 0)
    assert ended.clients_bytes > 1 << 20
