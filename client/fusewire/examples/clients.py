"""Runs client processes that start together, follows their progress and collects their results."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypeVar

from fusewire._errors import FusewireError
from fusewire.examples.figures import ClientRun, TrainingRun

START = "start\n"

_READY_WITHIN_S = 60.0
_DONE_WITHIN_S = 300.0
_END_WITHIN_S = 10.0

Process = subprocess.Popen[str]
Result = TypeVar("Result")
Advance = Callable[[int], None]  # gets the index of a client that has finished an epoch; any thread may call it


class ClientFailed(FusewireError):
    """A client process failed, or did not finish in time."""


def train_together(target: str, rates: Sequence[float], *, epochs: int, advance: Advance) -> tuple[ClientRun, ...]:
    """Runs one client process for each learning rate, and returns the results of the processes.

    All processes begin to train when the last of them is connected. Raises ClientFailed.
    """
    commands = [_command(target, rate, epochs) for rate in rates]
    with ThreadPoolExecutor(len(rates)) as followers, _running(commands) as processes:
        _results([followers.submit(_await_ready, process) for process in processes], _READY_WITHIN_S)
        for process in processes:
            _begin(process)
        followed = [followers.submit(_follow, process, index, advance) for index, process in enumerate(processes)]
        return _results(followed, _DONE_WITHIN_S)


def _results(futures: Sequence[Future[Result]], within_s: float) -> tuple[Result, ...]:
    """Returns the results of all futures.

    Raises the first failure without waiting for the other futures. Raises ClientFailed if any future is not done
    after `within_s` seconds.
    """
    done, pending = wait(futures, within_s, FIRST_EXCEPTION)
    failures = [failure for future in done if (failure := future.exception()) is not None]
    if failures:
        raise failures[0]
    if pending:
        raise ClientFailed(f"{len(pending)} of {len(futures)} clients were not done after {within_s} s")
    return tuple(future.result() for future in futures)


def _command(target: str, rate: float, epochs: int) -> list[str]:
    worker = [sys.executable, "-m", "fusewire.examples.worker", "--target", target]
    return [*worker, "--learning-rate", repr(rate), "--epochs", str(epochs)]


@contextmanager
def _running(commands: Sequence[list[str]]) -> Iterator[list[Process]]:
    with ExitStack() as processes:
        yield [processes.enter_context(_process(command)) for command in commands]


@contextmanager
def _process(command: list[str]) -> Iterator[Process]:
    """Runs a process. After the block the process must soon end by itself. If the block raises, the process is killed.

    Raises ClientFailed if the process does not end in time, or ends with a failure.
    """
    # The process is in a process group of its own, so that Ctrl-C in a terminal interrupts only this process.
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process
        _await_end(process)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        with suppress(BrokenPipeError):
            process.stdin.close()


def _await_end(process: Process) -> None:
    try:
        status = process.wait(_END_WITHIN_S)
    except subprocess.TimeoutExpired:
        raise ClientFailed(f"a client finished training and was still running {_END_WITHIN_S} s later") from None
    if status != 0:
        raise ClientFailed(f"a client finished training and ended with status {status}; see its message above")


def _await_ready(process: Process) -> None:
    if _next_line(process)["event"] != "ready":
        raise ClientFailed("a client wrote another message before it was ready")


def _begin(process: Process) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(START)
        process.stdin.flush()
    except BrokenPipeError:
        raise ClientFailed("a client ended before it began to train") from None


def _follow(process: Process, index: int, advance: Advance) -> ClientRun:
    """Calls `advance` for each epoch until the client has finished, then returns the client's results."""
    while True:
        event = _next_line(process)
        if event["event"] == "done":
            return _client_run(event)
        advance(index)


def _next_line(process: Process) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise ClientFailed(f"a client ended early, with status {process.wait()}; see its message above")
    event: dict[str, Any] = json.loads(line)
    return event


def _client_run(event: dict[str, Any]) -> ClientRun:
    run = event["run"]
    return ClientRun(
        run=TrainingRun(run["learning_rate"], run["accuracy"], tuple(run["losses"]), run["duration_s"]),
        ops=event["ops"],
        segments=event["segments"],
        fragments=event["fragments"],
        sent_bytes=event["sent_bytes"],
        programs=tuple(event["programs"]),
    )
