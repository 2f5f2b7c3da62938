"""Runs the planner's worker process: reads a program's bytes, writes its plan and the paths of the compiled files.

A process that plans whole programs runs at a lower priority than the server, so that planning does not slow programs
that have their plans. One that makes what rows wait for keeps the server's priority, because these rows are the
server's work. The memory of the process is bounded. A program is refused if planning it exceeds the bound, or if the
compiler rejects its kernels. A refusal tells whether the machine is to blame.

For developers: if the environment variable FUSEWIRE_VERIFY_PLANS names a folder, `verify` checks each pass of each
plan. When planning fails, the worker writes the program's bytes and the traceback to that folder. Tests set the
variable for every server that they start; in service the variable is unset.
"""

from __future__ import annotations

import gc
import os
import resource
import secrets
import select
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgpack

from fusewire_kernels import build
from fusewire_kernels.build import build_plan
from fusewire_kernels.compile.binary_cache import default_cache_folder, most_cached_bytes
from fusewire_kernels.compile.cache_eviction import WORKER_PREFIX, hold, tidy
from fusewire_kernels.compile.dialect_compilers import DialectCompiler, compiler_of
from fusewire_kernels.compile.forked_calls import end_with_parent
from fusewire_kernels.compile.machine_faults import MachineFault
from fusewire_kernels.plan.plan_codec import encode_plan
from fusewire_kernels.verify import verify_pass
from fusewire_protos.errors import ConfigurationError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs import program
from fusewire_protos.programs.codec import decode, digest
from fusewire_protos.programs.limits import ProgramLimits
from fusewire_protos.programs.program import ProgramOp
from fusewire_server.host.malloc import keep_freed_memory
from fusewire_server.host.priority import lower_priority
from fusewire_server.host.process_group import guard_group
from fusewire_server.planning.planner import LENGTH_BYTES, worker_bounds

VERIFY_VARIABLE = "FUSEWIRE_VERIFY_PLANS"
WORDS_SUFFIX, PROGRAM_SUFFIX = ".txt", ".program"  # files of a failed program; its digest is their name
# The share of a worker's bounds that each compiler may take. If a compiler takes more, the worker ends the compiler and
# removes its files; that is better than if the planner killed the worker.
_COMPILING_SHARE = 0.8


def main(arguments: Sequence[str]) -> int:
    """Serves requests on the standard streams until standard input ends or no process reads the answers any more."""
    dialect, architecture, memory_bytes, deadline_s, most_rows, niceness = arguments
    if os.getpgrp() == os.getpid():
        end_with_parent()
        if _has_no_writer(sys.stdin.buffer):  # the server ended before the line above
            return 0
        temporary = default_cache_folder() / f"{WORKER_PREFIX}{secrets.token_hex(8)}"
        guard_group(temporary)  # before there is a folder, which nobody would remove if this process ended now
        _use_temporary_folder(temporary)
    if int(niceness) > 0:
        lower_priority(int(niceness))
    keep_freed_memory()
    resource.setrlimit(resource.RLIMIT_AS, (int(memory_bytes), int(memory_bytes)))
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # so that a stray print does not look like an answer
    compiler = compiler_of(dialect, architecture, worker_bounds(float(deadline_s)).times(_COMPILING_SHARE))
    faults = _folder_of_faults()
    if faults is not None:
        build.after_pass = verify_pass
    _tidy_cache()
    if not _is_asked(requests):
        _warm_up(dialect, compiler)
    gc.freeze()
    gc.disable()  # planning makes no cycles; collecting between requests frees other cycles
    while (raw := _read(requests)) is not None:
        answer = msgpack.packb(_answer(raw, dialect, int(most_rows), compiler, faults))
        try:
            answers.write(len(answer).to_bytes(LENGTH_BYTES, "little") + answer)
            answers.flush()
        except BrokenPipeError:  # the server was killed
            _forget_unsent(answers)
            return 0
        gc.collect(1)  # not what has survived before: caches grow, and walking them takes longer than planning
    return 0


def _forget_unsent(stream: BinaryIO) -> None:
    """Points a stream at the null device, because the interpreter flushes the stream at exit, which would fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _tidy_cache() -> None:
    """Tidies the cache, because killed processes leave files behind."""
    folder = default_cache_folder()
    if folder.is_dir():
        tidy(folder, most_cached_bytes(), time.time())


def _has_no_writer(requests: BinaryIO) -> bool:
    """Returns whether the server, which writes the requests, has ended."""
    poll = select.poll()
    poll.register(requests, 0)  # an end that hangs up is told without being asked for
    return any(events & select.POLLHUP for _, events in poll.poll(0))


def _is_asked(requests: BinaryIO) -> bool:
    """Returns whether a request waits already, before the first has been read."""
    readable, _, _ = select.select([requests], [], [], 0)
    return bool(readable)


def _warm_up(dialect: str, compiler: DialectCompiler) -> None:
    """Makes the plan of an example once, so that no client waits for what is slow the first time only.

    The example is a product, a bias and a tanh, whose kernel needs most of what CUDA's compiler can do.
    """
    inputs = [Spec(dtypes.float32, shape) for shape in ((1, 256), (256, 256), (256,))]
    ops = [_op("matmul", 0, 1), _op("add", 3, 2), _op("tanh", 4)]
    with suppress(Exception):  # each request tells its own faults
        compiler.warm_up(build_plan(program.build(inputs, [], ops, [2]), dialect).kernels)


def _op(name: str, *operands: int) -> ProgramOp:
    return ProgramOp(BY_NAME[name], operands, ())


def _use_temporary_folder(folder: Path) -> None:
    """Makes a folder in the cache for the files that compilers write, unless the cache cannot be used now."""
    with suppress(OSError):
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.mkdir(mode=0o700)
        os.environ["TMPDIR"] = str(folder)
        hold(folder)


def _folder_of_faults() -> Path | None:
    named = os.environ.get(VERIFY_VARIABLE)
    return Path(named) if named else None


def _answer(
    raw: bytes, dialect: str, most_rows: int, compiler: DialectCompiler, faults: Path | None
) -> tuple[Any, ...]:
    """Returns (plan, binaries, planning ns, compiling ns, kernels compiled), or (text of a refusal, is it passing).

    The planning time is processor time of this thread, because at this low priority clock time would include the time
    of other processes.
    """
    began_ns = time.thread_time_ns()
    try:
        decoded = decode(raw, _UNLIMITED)
        with _kept(faults, raw):
            plan = build_plan(decoded, dialect, most_rows)
        planned_ns = time.thread_time_ns() - began_ns
        compiling_ns = time.perf_counter_ns()
        binaries, compiled = compiler.compile(plan.kernels)
    except MemoryError:
        return ("planning needs more than planner.memory_bytes", True)
    except Exception as error:  # noqa: BLE001 - a defect that a program brings about refuses this program alone
        return (f"{type(error).__name__}: {error}", _is_passing(error))
    return (encode_plan(plan), binaries, planned_ns, time.perf_counter_ns() - compiling_ns, compiled)


def _is_passing(error: Exception) -> bool:
    """Returns whether the machine is to blame, such as a full disk, and not the program."""
    return isinstance(error, ConfigurationError | MachineFault | OSError)


@contextmanager
def _kept(faults: Path | None, raw: bytes) -> Iterator[None]:
    """If the `with` body raises and there is a folder, writes the traceback and the program to the folder.

    A traceback is worth keeping, because no program should raise an exception in planning.
    """
    try:
        yield
    except MemoryError:  # not written to the folder, because a correct program may need too much memory
        raise
    except Exception:
        if faults is not None:
            _keep(faults / digest(raw).hex(), raw)
        raise


def _keep(path: Path, raw: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(WORDS_SUFFIX).write_text(traceback.format_exc(), encoding="utf-8")
    path.with_suffix(PROGRAM_SUFFIX).write_bytes(raw)


def _read(stream: BinaryIO) -> bytes | None:
    head = stream.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        return None
    return stream.read(int.from_bytes(head, "little"))


# The worker checks no limits, because the server has checked the program against its limits before it asks.
_UNLIMITED = ProgramLimits(*(sys.maxsize for _ in ProgramLimits._fields))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
