"""Planners verify their plans where a folder is named for what fails, and a test run names one for its servers."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from fusewire_kernels.compile.binary_cache import CACHE_VARIABLE, Compiled
from fusewire_kernels.compile.c_compiler import find_compiler
from fusewire_kernels.compile.machine_faults import MachineFault
from fusewire_kernels.plan.plan import KernelSource
from fusewire_protos.errors import ConfigurationError, ServerFault
from fusewire_protos.programs.codec import digest, encode
from fusewire_protos.programs.program import Program
from fusewire_server.planning.planner import NICENESS, Planned, Planner, PlannerRefusal, PlannerSettings
from fusewire_server.planning.worker import PROGRAM_SUFFIX, VERIFY_VARIABLE, WORDS_SUFFIX, _answer, _is_asked, _warm_up
from tests.server.parts import chain, session
from tests.shell_programs import shell_program

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")

DEADLINE_S = 30.0
MEMORY_BYTES = 2 << 30
ROOT = Path(__file__).parents[2]
SOUND = (sys.executable, "-m", "fusewire_server.planning.worker")

# The worker itself, with another end of the pass that makes launches.
SPOILED = """
import sys
from fusewire_kernels import build
from fusewire_server.planning import worker as planner_worker
def spoil(launches):
    {spoil}
schedule = build.schedule
build.schedule = lambda fusion, instances: spoil(schedule(fusion, instances))
sys.exit(planner_worker.main(sys.argv[1:]))
"""
FORGETS_A_LAUNCH = "return launches[:-1]"

# A test that asks such a worker for a plan, and does not look at it.
CARELESS_TEST = """
import subprocess
def test_of_something_else():
    subprocess.run({command!r}, input={request!r}, capture_output=True, timeout=60, check=True)
"""


@pytest.fixture(autouse=True)
def faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that workers are told of, which is not there yet."""
    folder = tmp_path / "faults"
    monkeypatch.setenv(VERIFY_VARIABLE, str(folder))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr("fusewire_server.host.process_group.GONE_WITHIN_S", DEADLINE_S)  # as in test_planner
    return folder


def spoiled(spoil: str) -> tuple[str, ...]:
    return (sys.executable, "-c", SPOILED.format(spoil=spoil))


def plan(command: tuple[str, ...], raw: bytes) -> Planned:
    """Raises PlannerRefusal."""

    async def ask() -> Planned:
        planner = Planner(PlannerSettings("c", "", DEADLINE_S, MEMORY_BYTES, command))
        planner.start()
        try:
            return await asyncio.wait_for(planner.request(raw, session("a"), is_urgent=False).answer, 4 * DEADLINE_S)
        finally:
            await planner.stop()

    return asyncio.run(ask())


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def names_of(program: Program) -> list[str]:
    name = digest(encode(program)).hex()
    return sorted([name + WORDS_SUFFIX, name + PROGRAM_SUFFIX])


def test_a_plan_that_breaks_a_rule_is_refused_and_leaves_its_words_and_its_program(faults: Path) -> None:
    program = chain(("negative", "tanh"))
    with pytest.raises(PlannerRefusal, match=r"does not run exactly once \(pass: launches\)"):
        plan(spoiled(FORGETS_A_LAUNCH), encode(program))
    assert left_in(faults) == names_of(program)
    words, raw = (next(faults.glob(f"*{suffix}")) for suffix in (WORDS_SUFFIX, PROGRAM_SUFFIX))
    assert "does not run exactly once (pass: launches)" in words.read_text(encoding="utf-8")
    assert raw.read_bytes() == encode(program)


def test_a_pass_that_fails_leaves_its_words_too(faults: Path) -> None:
    with pytest.raises(PlannerRefusal, match="KeyError") as refused:
        plan(spoiled("return {}[launches[0].groups]"), encode(chain()))
    assert not refused.value.is_passing
    assert left_in(faults) == names_of(chain())
    assert "KeyError" in next(faults.glob(f"*{WORDS_SUFFIX}")).read_text(encoding="utf-8")


def test_a_sound_plan_leaves_nothing(faults: Path) -> None:
    assert plan(SOUND, encode(chain())).plan.launches
    assert left_in(faults) == []


@pytest.mark.parametrize(
    ("command", "raw", "words"),
    [(SOUND, b"no program", "undecodable_frame"), (spoiled("raise MemoryError"), encode(chain()), "memory_bytes")],
    ids=["no program", "a want of memory"],
)
def test_what_a_client_may_bring_about_leaves_nothing(
    command: tuple[str, ...], raw: bytes, words: str, faults: Path
) -> None:
    with pytest.raises(PlannerRefusal, match=words):
        plan(command, raw)
    assert left_in(faults) == []


class FailingCompiler(NamedTuple):
    """A compiler that raises an error."""

    error: Exception

    def compile(self, sources: Sequence[KernelSource]) -> Compiled:
        raise self.error

    def find(self, sources: Sequence[KernelSource]) -> None:
        raise self.error

    def warm_up(self, sources: Sequence[KernelSource]) -> None:
        raise self.error


class CountingCompiler:
    """A compiler that counts the sources it is warmed up with."""

    warmed_up = 0

    def compile(self, sources: Sequence[KernelSource]) -> Compiled:
        raise AssertionError("nothing was asked for")

    def find(self, sources: Sequence[KernelSource]) -> None:
        raise AssertionError("nothing was looked for")

    def warm_up(self, sources: Sequence[KernelSource]) -> None:
        self.warmed_up += len(sources)


@pytest.mark.parametrize("dialect", ["c", "cuda"])
def test_a_worker_warms_its_compiler_up_with_the_kernels_of_an_example(dialect: str) -> None:
    compiler = CountingCompiler()
    _warm_up(dialect, compiler)
    assert compiler.warmed_up > 0


def test_a_compiler_that_fails_at_first_does_not_end_the_worker() -> None:
    _warm_up("c", FailingCompiler(ServerFault("the compiler ended with 1")))


@pytest.mark.parametrize(
    ("error", "is_passing"),
    [
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE)), True),
        (ConfigurationError("the folder cannot be used"), True),
        (MachineFault("the compiler ended with -9"), True),
        (ServerFault("the compiler ended with 1"), False),
        (KeyError("a defect"), False),
        (MemoryError(), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_fault_of_the_machine_refuses_a_program_for_a_while_and_any_other_for_good(
    error: Exception, is_passing: bool
) -> None:
    text, is_temporary = _answer(encode(chain()), "c", 1, FailingCompiler(error), None)
    assert str(error) in text
    assert is_temporary is is_passing


FAILS_ONCE = """\
[ "$1" = -v ] && exec {compiler} "$@"
[ -e {marker} ] && exec {compiler} "$@"
: > {marker}
kill -KILL $$
"""


def test_a_program_whose_compiler_was_killed_gets_its_plan_when_it_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain = find_compiler()
    assert toolchain is not None
    script = FAILS_ONCE.format(compiler=toolchain.compiler, marker=tmp_path / "marker")
    monkeypatch.setenv("CC", str(shell_program(tmp_path / "cc", script)))
    with pytest.raises(PlannerRefusal, match="the compiler ended with -9") as refused:
        plan(SOUND, encode(chain()))
    assert refused.value.is_passing
    assert plan(SOUND, encode(chain())).compiled == 1


@pytest.mark.parametrize("is_urgent", [True, False])
def test_only_what_no_row_waits_for_is_made_at_a_lower_priority(is_urgent: bool) -> None:
    async def niceness() -> int:
        planner = Planner(PlannerSettings("c", "", DEADLINE_S, MEMORY_BYTES))
        planner.start()
        try:
            request = planner.request(encode(chain()), session("a"), is_urgent=is_urgent)
            await asyncio.wait_for(request.answer, 4 * DEADLINE_S)
            pool = planner._urgent if is_urgent else planner._usual
            process = pool._workers[0]._process
            assert process is not None
            return os.getpriority(os.PRIO_PROCESS, process.pid)
        finally:
            await planner.stop()

    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert asyncio.run(niceness()) == (own if is_urgent else min(own + NICENESS, 19))


@pytest.mark.parametrize("folder", [None, ""])
def test_where_no_folder_is_named_nothing_is_verified(
    folder: str | None, faults: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VERIFY_VARIABLE)
    if folder is not None:
        monkeypatch.setenv(VERIFY_VARIABLE, folder)
    assert plan(spoiled(FORGETS_A_LAUNCH), encode(chain())).plan.launches == ()
    assert left_in(faults) == []
    assert not list(tmp_path.glob(f"*{WORDS_SUFFIX}"))


@pytest.mark.parametrize(
    ("command", "processes", "status"),
    [(SOUND, (), 0), (spoiled(FORGETS_A_LAUNCH), (), 1), (spoiled(FORGETS_A_LAUNCH), ("-n", "1"), 1)],
    ids=["sound", "broken", "broken under xdist"],
)
def test_a_run_fails_in_which_a_plan_breaks_a_rule_that_no_test_looks_at(
    command: tuple[str, ...], processes: tuple[str, ...], status: int, tmp_path: Path
) -> None:
    raw = encode(chain())
    request = len(raw).to_bytes(4, "little") + raw
    whole_command = (*command, "c", "", str(MEMORY_BYTES), str(DEADLINE_S), "1", "0")
    (tmp_path / "test_careless.py").write_text(CARELESS_TEST.format(command=whole_command, request=request))
    pytest_command = (sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", *processes)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "TMPDIR": str(tmp_path)}
    ended = subprocess.run(
        pytest_command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert "1 passed" in ended.stdout
    assert ended.returncode == status, ended.stdout
    assert ("does not run exactly once (pass: launches)" in ended.stdout) == (status == 1)
    assert bool(list(tmp_path.glob(f"fusewire-faults-*/*{PROGRAM_SUFFIX}"))) == (status == 1)


def test_a_worker_that_is_asked_before_it_is_ready_answers_first() -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as requests, os.fdopen(writer, "wb") as server:
        assert not _is_asked(requests)
        server.write(b"a request")
        server.flush()
        assert _is_asked(requests)
