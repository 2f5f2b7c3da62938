"""Worker processes, each of which answers commands over a pipe, one by one."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, NamedTuple, Self

from fusewire import FusewireError
from loadtests.measuring.errors import LoadFailed, NotAnswered, NotMeasured

_SPAWN = multiprocessing.get_context("spawn")
ANSWER_DEADLINE_S = 120.0
_END_DEADLINE_S = 5.0


class Failed(NamedTuple):
    """The error that a command raised; an error that cannot be pickled is replaced by one with its text."""

    error: Exception


class Worker:
    """A process that runs `serve(connection, *arguments)`. The process ends at the end of the `with` block."""

    def __init__(self, serve: Callable[..., None], *arguments: object) -> None:
        self._connection, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=serve, args=(theirs, *arguments))
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        self._process.join(_END_DEADLINE_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def tell(self, *command: object) -> None:
        """Sends a command. Its answer must be taken before the next command."""
        try:
            self._connection.send(command)
        except BrokenPipeError:
            raise self._death() from None

    def answer(self, deadline_s: float = ANSWER_DEADLINE_S) -> Any:
        """Waits for the answer to the last command. Raises what the command raised, or NotAnswered at the deadline."""
        if not self._connection.poll(deadline_s):
            raise NotAnswered(f"a worker process did not answer within {deadline_s} s")
        try:
            answered = self._connection.recv()
        except (EOFError, ConnectionResetError):
            raise self._death() from None
        if isinstance(answered, Failed):
            raise answered.error
        return answered

    def ask(self, *command: object) -> Any:
        self.tell(*command)
        return self.answer()

    def kill(self) -> None:
        """Ends the process at once, even if a signal has stopped it."""
        self._process.kill()
        self._process.join()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def _death(self) -> LoadFailed:
        self._process.join(_END_DEADLINE_S)
        return LoadFailed(f"a worker process died with exit status {self._process.exitcode}")


class Workers:
    """Several workers, each with a function and its arguments. They end at the end of the `with` block."""

    def __init__(self, served: Sequence[tuple[Callable[..., None], tuple[object, ...]]]) -> None:
        self._served = served
        self._workers: list[Worker] = []
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            self._workers = [opening.enter_context(Worker(serve, *given)) for serve, given in self._served]
            self._open = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()


class Fleet(Workers):
    """Several workers that get the same commands at the same time."""

    def __init__(self, serve: Callable[..., None], arguments: Sequence[tuple[object, ...]]) -> None:
        super().__init__([(serve, given) for given in arguments])

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(worker.pid for worker in self._workers)

    def kill(self) -> None:
        """Ends all processes at once."""
        for worker in self._workers:
            worker.kill()

    def tell(self, *command: object) -> None:
        for worker in self._workers:
            worker.tell(*command)

    def answers(self, deadline_s: float = ANSWER_DEADLINE_S) -> list[Any]:
        return [worker.answer(deadline_s) for worker in self._workers]

    def ask(self, *command: object) -> list[Any]:
        self.tell(*command)
        return self.answers()


def answer_commands(connection: Connection, commands: dict[str, Callable[..., object]]) -> None:
    """Reads commands in a loop, each a name with arguments, and sends the result of each. Runs in a worker process.

    Returns when the other end of the pipe is closed.
    """
    with suppress(EOFError, ConnectionError):
        while True:
            name, *arguments = connection.recv()
            connection.send(_attempt(commands[name], arguments))


def _attempt(command: Callable[..., object], arguments: Sequence[object]) -> object:
    try:
        return command(*arguments)
    except (NotMeasured, FusewireError) as error:
        return Failed(_picklable(error))
    except Exception as error:  # noqa: BLE001 - it is raised in the process that sent the command
        traceback.print_exc()
        return Failed(_picklable(error))


def _picklable(error: Exception) -> Exception:
    """Returns the error itself, or an error with its text if unpickling could fail.

    Unpickling fails if the class of the error takes other arguments than the text.
    """
    is_plain = type(error).__module__ == "builtins" or isinstance(error, NotMeasured)
    return error if is_plain else LoadFailed(f"{type(error).__name__}: {error}")
