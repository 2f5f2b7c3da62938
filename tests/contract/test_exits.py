"""Through a real server: a process that exits with work in flight exits at once, and prints nothing of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.contract.service import Service
from tests.patience import HANGS_S

_BEGIN = "import sys, threading, atexit, asyncio\n{early}\nimport fusewire as fw; s = fw.connect(sys.argv[1])\n"
_WORK = "x = fw.ones((300, 300))\nfor _ in range(200): x = x @ x * 0.001\n"
_DAEMON = "began = threading.Event()\nthreading.Thread(target=run, daemon=True).start()\nbegan.wait()\n"
_QUIET = {
    "a callback of a future": _WORK + "x.future().add_done_callback(lambda f: print(f.result()))\n",
    "a callback of a future that debugs": (
        "s = fw.connect(sys.argv[1], debug=True)\nx = s.array([1.0] * 9)[s.array([1])]\n"
        "for _ in range(9): x = x + 1\nx.future().add_done_callback(lambda f: print(f.result()))\n"
    ),
    "a daemon thread that reads": _WORK + "def run(): began.set(); x.numpy()\n" + _DAEMON,
    "a daemon thread that waits for a future": _WORK + "def run(): began.set(); x.future().result()\n" + _DAEMON,
    "a daemon thread that awaits": (
        _WORK + "async def wait(): return await x\ndef run(): began.set(); asyncio.run(wait())\n" + _DAEMON
    ),
    "a daemon thread that records": "def run():\n  x = fw.ones(3); began.set()\n  while True: x = x + 1\n" + _DAEMON,
    "a finaliser": "class Kept:\n  def __del__(self): self.x + 1\nit = Kept()\nit.it, it.x = it, fw.ones(3)\n",
}


def run(service: Service, program: str, *, early: str = "") -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own. `early` is run before Fusewire is imported."""
    command = [sys.executable, "-c", _BEGIN.format(early=early) + program, service.target]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)


@pytest.mark.parametrize("program", _QUIET.values(), ids=_QUIET.keys())
def test_what_waits_for_a_value_ends_without_a_word(service: Service, program: str) -> None:
    done = run(service, program)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_handler_that_reads_has_its_value(service: Service) -> None:
    done = run(service, "x = fw.ones(3) + 1\natexit.register(lambda: print(x.numpy()))\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "[2. 2. 2.]\n", "")


def test_a_handler_that_runs_after_the_sessions_have_ended_is_told_so(service: Service) -> None:
    done = run(service, "x = fw.ones(3) + 1\n", early="atexit.register(lambda: x.numpy())")
    assert "SessionClosed: the session is closed" in done.stderr


def test_an_exception_is_shown_and_gives_the_status(service: Service) -> None:
    done = run(service, _WORK + "raise ValueError('of the user')\n")
    assert done.returncode == 1
    assert "ValueError: of the user" in done.stderr
