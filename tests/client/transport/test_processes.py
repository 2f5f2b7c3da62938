"""Processes that exit or fork while they have sessions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.transport.grpc_server import Server
from tests.patience import HANGS_S

QUIET_FORKS = ("-W", "ignore::DeprecationWarning")  # Python warns of a fork in a process that has threads


def run(program: str, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a Python program to its end."""
    command, environment = [sys.executable, *options, "-c", program], {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False, env=environment)


def test_a_session_that_nobody_closes_does_not_keep_the_process(server: Server) -> None:
    program = (
        "import fusewire as fw, numpy as np, time, atexit\n"
        f"x = fw.connect({server.target!r}).array(np.ones(3))\n"
        "print(float((x + 1).sum().numpy(timeout=600)))\n"
        "y = x * 2\n"
        "start = time.monotonic()\n"
        "atexit.register(lambda: print('exits'))\n"
    )
    ended = run(program)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("6.0\nexits\n", "", 0)


def test_no_thread_of_ours_is_left_when_the_interpreter_is_torn_down(server: Server) -> None:
    program = (
        "import atexit, threading\n"
        "def tell():  # registered first, so that it is called last\n"
        "    print([thread.name for thread in threading.enumerate() if 'fusewire' in thread.name])\n"
        "atexit.register(tell)\n"
        "import fusewire as fw, numpy as np\n"
        f"session = fw.connect({server.target!r})\n"
        "print(float(session.array(np.ones(3)).sum().numpy(timeout=600)))\n"
    )
    ended = run(program)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("3.0\n[]\n", "", 0)


def forking(target: str, *child: str) -> str:
    """A program that forks once it is connected. The child runs the lines `child`, and then the parent computes."""
    return "\n".join(
        [
            "import fusewire as fw, numpy as np, os",
            f"session = fw.connect({target!r})",
            "x = session.array(np.ones(3))",
            "x.numpy(timeout=600)",
            "child = os.fork()",
            "if child == 0:",
            *[f"    {line}" for line in child],
            "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))",
            "print(float((x + 1).sum().numpy(timeout=600)))",
        ]
    )


def test_a_forked_child_ends_quietly_while_the_parent_goes_on(server: Server) -> None:
    child = ("try:", "    x + 1", "except fw.SessionClosed:", "    del x", "    os._exit(7)")
    ended = run(forking(server.target, *child))
    assert (ended.stdout, ended.returncode) == ("7\n6.0\n", 0)
    assert "Traceback" not in ended.stderr


def test_a_child_forked_after_connecting_is_told_to_be_spawned_and_the_parent_goes_on(server: Server) -> None:
    child = (
        "try:",
        f"    fw.connect({server.target!r}, timeout=600)",
        "except fw.SessionClosed as error:",
        "    os._exit(7 if 'spawn' in str(error) else 8)",
    )
    ended = run(forking(server.target, *child), *QUIET_FORKS)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("7\n6.0\n", "", 0)


FORKS_WHILE_CONNECTING = """
import os, signal, threading
import fusewire as fw
from fusewire._transport.stream_transport import StreamTransport
has_begun = threading.Event()
def open_and_wait(self, peer):
    has_begun.set()
    threading.Event().wait(600)
StreamTransport.open = open_and_wait
threading.Thread(target=fw.default_session, daemon=True).start()
assert has_begun.wait(600)
child = os.fork()
if child == 0:
    signal.alarm(600)  # ends a child that hangs
    try:
        fw.zeros(3)
    except fw.SessionClosed as error:
        os._exit(7 if 'spawn' in str(error) else 8)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(0)
"""


def test_a_child_forked_while_a_thread_connects_is_told_to_be_spawned() -> None:
    ended = run(FORKS_WHILE_CONNECTING, *QUIET_FORKS, FUSEWIRE_TARGET="127.0.0.1:1")
    assert (ended.stdout, ended.stderr) == ("7\n", "")


def test_grpc_finds_our_environment_variables_when_it_is_imported() -> None:
    program = (
        "import os, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'grpc':\n"
        "            print(os.environ.get('GRPC_ENABLE_FORK_SUPPORT'))\n"
        "sys.meta_path.insert(0, Finder())\n"
        "import fusewire\n"
    )
    without = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")}
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=HANGS_S, check=False, env=without
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("false\n", "", 0)


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_worker_process_that_exits_ends_its_session_once_its_queues_are_empty(
    server: Server, method: str, tmp_path: Path
) -> None:
    program = tmp_path / "workers.py"
    program.write_text(
        "import multiprocessing, fusewire as fw\n"
        "def work(queue):\n"
        f"    queue.put(fw.connect({server.target!r}, timeout=600).array([1.0, 2.0]) * 2)\n"
        "if __name__ == '__main__':\n"
        f"    context = multiprocessing.get_context({method!r})\n"
        "    queue = context.Queue()\n"
        "    worker = context.Process(target=work, args=(queue,))\n"
        "    worker.start()\n"
        "    worker.join()\n"
        "    print(worker.exitcode)\n"
    )
    command = [sys.executable, *QUIET_FORKS, str(program)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("0\n", "", 0)
    assert server.has_parted.is_set()
