"""A compiler's process: its status and words, however much it prints, and its end with all that it has started."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path

import pytest

from fusewire_kernels.compile import compiler_process
from fusewire_kernels.compile.compiler_process import finish, start
from fusewire_kernels.compile.machine_faults import MachineFault
from fusewire_kernels.compile.processes import processes
from fusewire_kernels.compile.watch import USUAL_BOUNDS, Bounds

needs_usage = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux's /proc")

WITHIN_S = 30.0


@pytest.fixture(autouse=True)
def short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_process, "_LOOK_EVERY_S", 0.05)


def shell(script: str) -> compiler_process.Process:
    return start(["/bin/sh", "-c", script])


def test_a_status_and_what_was_printed_are_told() -> None:
    assert finish(shell("echo said >&2; exit 3"), USUAL_BOUNDS) == (3, "said\n")


def test_a_signal_is_told_as_a_negative_status() -> None:
    assert finish(shell("kill -TERM $$"), USUAL_BOUNDS).status == -15


def test_of_very_much_output_the_beginning_is_kept_and_bytes_need_not_be_text() -> None:
    ended = finish(shell("printf 'begin\\377' >&2; head -c 1000000 /dev/zero >&2"), USUAL_BOUNDS)
    assert ended.status == 0
    assert ended.printed.startswith("begin\ufffd\0")
    assert len(ended.printed) == 1 << 16


def test_a_process_that_closes_its_output_is_waited_for() -> None:
    assert finish(shell("exec 2>&-; sleep 0.2; exit 4"), USUAL_BOUNDS).status == 4


def test_a_process_that_leaves_another_one_behind_has_ended_and_the_other_is_killed() -> None:
    process = shell("sleep 600 & exit 5")
    assert finish(process, USUAL_BOUNDS).status == 5
    _wait_until_none_runs(process.pid)


def test_what_a_killed_compiler_had_started_is_killed() -> None:
    process = shell("sleep 600 & kill -KILL $$; wait")
    assert finish(process, USUAL_BOUNDS).status == -9
    _wait_until_none_runs(process.pid)


def test_a_compiler_may_have_a_folder_for_temporary_files(tmp_path: Path) -> None:
    assert finish(start(["/bin/sh", "-c", 'touch "$TMPDIR/file"'], tmp_path), USUAL_BOUNDS).status == 0
    assert (tmp_path / "file").exists()


@pytest.mark.parametrize(
    ("script", "bounds", "words"),
    [
        ("sleep 600", Bounds(wall_s=0.2), "did not end within"),
        ("exec 2>&-; sleep 600", Bounds(wall_s=0.2), "did not end within"),
        pytest.param("sleep 600", Bounds(idle_s=0.2), "neither ran nor waited for a processor", marks=needs_usage),
        pytest.param("while :; do :; done", Bounds(processor_s=0.1), "of processor time", marks=needs_usage),
        pytest.param("yes >&2", Bounds(processor_s=0.1), "of processor time", marks=needs_usage),
    ],
)
def test_a_compiler_beyond_its_bounds_ends_with_all_that_it_has_started(
    script: str, bounds: Bounds, words: str
) -> None:
    process = shell(f"/bin/sh -c {shlex.quote(script)}; exit 1")
    with pytest.raises(MachineFault, match=f"the compiler was ended: it .*{words}"):
        finish(process, bounds)
    assert process.returncode == -9
    _wait_until_none_runs(process.pid)


def _wait_until_none_runs(group: int) -> None:
    ends_at_s = time.monotonic() + WITHIN_S
    while _has_running(group):
        assert time.monotonic() < ends_at_s


def _has_running(group: int) -> bool:
    return any(each.group == group and each.state != b"Z" for each in processes())


def test_a_program_that_is_not_there_cannot_be_started() -> None:
    with pytest.raises(MachineFault, match=r"cannot be started: .*No such file"):
        start(["/no/such/compiler"])
