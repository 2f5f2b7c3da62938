"""C compilers in trouble and busy machines: programs give right values all the same, and get their plans afterwards."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire.testing import ServerProcess
from fusewire_kernels.compile.binary_cache import CACHE_VARIABLE
from tests.bounds import Bounded
from tests.faults.busy_machine import busy_processes, idle_s
from tests.faults.server import DEADLINE_S, PLANNED_WITHIN_S, Inspector, serving, until
from tests.shell_programs import shell_program

pytestmark = pytest.mark.faults

_READ_WITHIN_S = 120.0  # bounds a wait that takes much less on a quiet machine
_OFTEN = 10  # uses of a program

# What the compiler does, by a word in a file. To vanish is to have no compiler in the folder at all.
_TROUBLES = {
    "sleeps": "sleep 200",
    "fails": "echo 'it is broken' >&2; exit 1",
    "is killed": "kill -KILL $$",
    "babbles": 'head -c 1000000 /dev/urandom >&2; while [ "$1" != -o ] && [ $# -gt 0 ]; do shift; done; '
    '[ $# -gt 1 ] && head -c 1000 /dev/urandom > "$2"; exit 0',
}
_VANISHES = "vanishes"
_WORKS = "works"
_COMPILER = """\
PATH={path}
export PATH
case "$(cat {trouble})" in
{cases}
esac
exec {compiler} "$@"
"""


class Compiler:
    """The only C compiler that a server finds, in trouble or not. The server's cache of kernels is empty."""

    def __init__(self, parent: Path) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("needs a C compiler")
        self._trouble, folder, cache = parent / "trouble", parent / "bin", parent / "cache"
        folder.mkdir()
        cache.mkdir(mode=0o700)
        cases = "\n".join([f"'{name}') {act};;" for name, act in _TROUBLES.items()])
        text = _COMPILER.format(path=os.environ["PATH"], trouble=self._trouble, cases=cases, compiler=compiler)
        self._path = shell_program(folder / "cc", text)
        self.environment = {CACHE_VARIABLE: str(cache), "CC": "", "PATH": str(folder)}
        self.be(_WORKS)

    def be(self, trouble: str) -> None:
        self._path.chmod(0o600 if trouble == _VANISHES else 0o700)
        self._trouble.write_text(trouble, encoding="utf-8")


@pytest.fixture
def compiler(tmp_path: Path) -> Compiler:
    return Compiler(tmp_path)


class Program:
    """A client's program: a few ops, and a loop whose body has several."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self._x = random.normal(size=(24, 24)).astype(np.float32)

    def run(self, session: fw.Session) -> None:
        """Fails if a value is wrong or does not come in time."""
        x = session.array(self._x)
        exponents = np.exp(self._x - self._x.max(axis=1, keepdims=True))
        expected = {
            "max": (fw.max(x, axis=0), self._x.max(axis=0)),
            "softmax": (fw.softmax(x, axis=1), exponents / exponents.sum(axis=1, keepdims=True)),
            "matmul": (x @ x, self._x @ self._x),
            "loop": (self._loop(x), self._loop_of_numpy()),
        }
        for name, (found, value) in expected.items():
            read = found.numpy(timeout=_READ_WITHIN_S)
            np.testing.assert_allclose(read, value, rtol=1e-4, atol=1e-4, err_msg=name)

    def _loop(self, x: fw.Array) -> fw.Array:
        y = x
        for _ in range(20):
            y = fw.tanh(y * 0.5 + x) - 0.25
        return y

    def _loop_of_numpy(self) -> Any:
        y = self._x
        for _ in range(20):
            y = np.tanh(y * np.float32(0.5) + self._x) - np.float32(0.25)
        return y


@contextmanager
def connected(server: ServerProcess, token: str) -> Iterator[fw.Session]:
    with fw.connect(server.grpc, token=token, timeout=_READ_WITHIN_S) as session:
        yield session


def _wait_for_plans(session: fw.Session, program: Program, inspector: Inspector, bounded: Bounded) -> None:
    """Runs a program until all that is used again and again runs by plans.

    On a busy machine the client cuts its ops at other places now and then, which makes programs of few uses. Plans may
    be late only while others use the processors: what is bounded is the time in which processors had nothing to do.
    """

    def has_plans() -> bool:
        program.run(session)
        used = [each for each in _programs(inspector) if each["rows"] >= _OFTEN]
        return bool(used) and all(each["tier"] >= 1 for each in used)

    began_s = idle_s()
    until(lambda: has_plans() or idle_s() - began_s > PLANNED_WITHIN_S, _READ_WITHIN_S)
    bounded("idle time until programs have plans", idle_s() - began_s, PLANNED_WITHIN_S, "s")


def _programs(inspector: Inspector) -> list[dict[str, Any]]:
    programs: list[dict[str, Any]] = inspector.ask("/v1/programs")["programs"]
    return programs


def _trouble(inspector: Inspector) -> str:
    trouble: str = inspector.ask("/readyz?verbose")["trouble"]
    return trouble


@pytest.mark.parametrize("trouble", [*_TROUBLES, _VANISHES])
def test_a_server_starts_whose_compiler_does_not_work(
    trouble: str, token: str, token_file: Path, compiler: Compiler
) -> None:
    compiler.be(trouble)
    with serving(token_file, environment=compiler.environment) as server, connected(server, token) as session:
        assert "no C compiler found" in server.detail
        assert "op by op" in server.detail
        Program().run(session)


@pytest.mark.parametrize("trouble", [*_TROUBLES, _VANISHES])
def test_a_compiler_that_breaks_after_the_start_fails_no_program(
    trouble: str, token: str, inspecting: str, token_file: Path, compiler: Compiler, bounded: Bounded
) -> None:
    """Until it works again, programs run by the kernels that there are, or wait."""
    with (
        serving(token_file, environment=compiler.environment) as server,
        connected(server, token) as session,
        ThreadPoolExecutor(1) as threads,
    ):
        inspector, program = Inspector(server, inspecting), Program()
        compiler.be(trouble)
        running = threads.submit(program.run, session)
        try:
            until(lambda: bool(_trouble(inspector)) or running.done(), DEADLINE_S)
        finally:
            compiler.be(_WORKS)
        running.result(PLANNED_WITHIN_S)
        _wait_for_plans(session, program, inspector, bounded)
        until(lambda: _trouble(inspector) == "", DEADLINE_S)


@pytest.mark.parametrize("planted", ["", "low_priority"], ids=["of the server's priority", "of a higher priority"])
def test_a_busy_machine_makes_plans_late_and_fails_no_program(
    planted: str, token: str, inspecting: str, token_file: Path, compiler: Compiler, bounded: Bounded
) -> None:
    with serving(token_file, planted, compiler.environment) as server, connected(server, token) as session:
        program = Program()
        with busy_processes():
            program.run(session)
        _wait_for_plans(session, program, Inspector(server, inspecting), bounded)
