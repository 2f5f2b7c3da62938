"""Runs a server in a process of its own, for tests, demonstrations and measurements."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from fusewire._errors import FusewireError, WaitTimeout

# Only a server that hangs takes so long; on a busy machine the start alone may take minutes.
_START_TIMEOUT_S = 600.0
_STOP_TIMEOUT_S = 15.0
_QUIET_LOG = {"FUSEWIRE_LOG__LEVEL": "warning", "FUSEWIRE_LOG__AUDIT": "false"}


@dataclass(frozen=True)
class ServerProcess:
    """A server that runs on free ports of 127.0.0.1."""

    grpc: str  # host:port for `connect`
    http: str  # host:port of the server's inspection pages
    backend: str
    detail: str  # names the device, and says why the server chose this backend
    pid: int


@contextmanager
def serve_subprocess(
    backend: str = "auto", *, environment: Mapping[str, str] | None = None, arguments: tuple[str, ...] = ()
) -> Iterator[ServerProcess]:
    """Runs `fusewire serve` and yields its addresses. Stops the server when the block or this process ends.

    `environment` is added to the environment of this process. The server logs warnings only, and not who gets a
    session, unless FUSEWIRE_LOG__LEVEL and FUSEWIRE_LOG__AUDIT are set. `arguments` are added to the command. If the
    server does not start, it writes the reason to standard error, and this function raises FusewireError. If the server
    is not ready within ten minutes, this function raises WaitTimeout.
    """
    command = [sys.executable, "-m", "fusewire_server", "serve", "--backend", backend, "--until-stdin-ends"]
    command += ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", *arguments]
    environment = {**_QUIET_LOG, **os.environ, **(environment or {})}
    # The server's standard input is a pipe. It closes when this process ends, even if this process is killed.
    # The server is in a process group of its own, so that Ctrl-C in a terminal interrupts only this process.
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, process_group=0
    )
    try:
        yield _ready(process)
    finally:
        _stop(process)


def _ready(process: subprocess.Popen[str]) -> ServerProcess:
    """Waits for the first line of the server's output, which holds the server's addresses."""
    assert process.stdout is not None
    timer = threading.Timer(_START_TIMEOUT_S, process.kill)
    timer.start()
    try:
        line = process.stdout.readline()
        is_late = not timer.is_alive()
    finally:
        timer.cancel()  # also after Ctrl-C, because the timer's thread would keep this process from ending
    if is_late:
        raise WaitTimeout(f"the server was not ready within {_START_TIMEOUT_S} s")
    if not line:
        raise FusewireError(f"the server ended with status {process.wait()} before it was ready; see its messages")
    answer = json.loads(line)
    return ServerProcess(answer["grpc"], answer["http"], answer["backend"], answer["detail"], process.pid)


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
