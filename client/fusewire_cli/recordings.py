"""`fusewire record` and `fusewire replay`: keeps what the sessions of a program send, and sends it again."""

from __future__ import annotations

import argparse
import glob
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import fusewire
from fusewire_cli.text import duration, harmless, properties
from fusewire_protos.errors import ConfigurationError

_MOST_DIFFERENCES = 20  # that are told in words


def record(parsed: argparse.Namespace) -> int:
    """Runs a program whose sessions are recorded, and says which files they gave. Returns the program's exit status.

    Raises ConfigurationError if there is no such program, or if the file exists already.
    """
    command = parsed.command[1:] if parsed.command[:1] == ["--"] else parsed.command
    if not command:
        raise ConfigurationError("which program? fusewire record FILE -- python program.py")
    if parsed.command[0].startswith("-") and parsed.command[0] != "--":
        raise ConfigurationError(f"{parsed.command[0]} after FILE: options of `fusewire record` go before FILE")
    path = parsed.path.absolute()
    if path.exists():
        raise ConfigurationError(f"{parsed.path} exists already: remove it, or name another file")
    older = _recordings_at(path)
    variables = {"FUSEWIRE_RECORD": str(path), "FUSEWIRE_RECORD_VALUES": str(int(parsed.values))}
    status = _status_of(command, {**os.environ, **variables})
    recorded = _recordings_at(path)
    files = [str(recorded[number]) for number in sorted(recorded.keys() - older.keys())]
    text = f"fusewire: recorded {harmless(', '.join(files)) or 'nothing: no session was opened'}"
    print(json.dumps({"files": files, "status": status}) if parsed.json else text, file=sys.stderr)
    return status


def _status_of(command: list[str], environment: dict[str, str]) -> int:
    """Runs a program; returns its exit status, or 128 and the number of the signal that ended it, as shells do."""
    with _ctrl_c_left_to_the_program():
        try:
            status = subprocess.Popen(command, env=environment).wait()
        except OSError as reason:
            raise ConfigurationError(f"cannot run {command[0]}: {reason.strerror}") from None
    return status if status >= 0 else 128 - status


@contextmanager
def _ctrl_c_left_to_the_program() -> Iterator[None]:
    """Lets Ctrl-C, which the program gets too, do nothing here: the program needs a moment to end its recording.

    A KeyboardInterrupt would not do: raised just after the system told the program's status, it would lose the status.
    """
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN:  # the program is to ignore it as well
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: None)  # unlike SIG_IGN, the program does not inherit it
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _recordings_at(path: Path) -> dict[int, Path]:
    """Returns the recordings of this name that exist, by number. The first has no number in its name."""
    numbered = {
        int(each.suffix[1:]): each
        for each in path.parent.glob(f"{glob.escape(path.name)}.*")
        if each.suffix[1:].isdecimal()
    }
    return numbered | ({1: path} if path.exists() else {})


def replay(parsed: argparse.Namespace) -> int:
    """Replays a recording; returns 1 if an answer differs from a kept one. Raises FusewireError."""
    replayed = summary(_replayed(parsed))
    print(json.dumps(replayed, indent=2) if parsed.json else _text(replayed))
    return 1 if replayed["differing"] else 0


def _replayed(parsed: argparse.Namespace) -> list[fusewire.Replayed]:
    """Replays in all sessions at once. Raises the first error, without waiting for the other sessions."""
    outcomes: SimpleQueue[fusewire.Replayed | Exception] = SimpleQueue()

    def one(seed: int) -> None:
        try:
            outcomes.put(
                fusewire.replay(parsed.path, parsed.target, tls_ca=parsed.tls_ca, speed=parsed.speed, seed=seed)
            )
        except Exception as error:  # noqa: BLE001 - the thread that waits raises it
            outcomes.put(error)

    for number in range(parsed.sessions):
        Thread(target=one, args=(parsed.seed + number,), daemon=True).start()
    replayed = []
    for _ in range(parsed.sessions):
        outcome = outcomes.get()
        if isinstance(outcome, Exception):
            raise outcome
        replayed.append(outcome)
    return replayed


def summary(replayed: list[fusewire.Replayed]) -> dict[str, Any]:
    """Returns the sums over all sessions, the quantiles of the latencies, and the first differences."""
    latencies_s = sorted((came_ns - sent_ns) / 1e9 for each in replayed for sent_ns, came_ns in each.answered)
    differences = [text for each in replayed for text in each.differences]
    return {
        "sessions": len(replayed),
        "segments": sum(each.segments for each in replayed),
        "ops": sum(each.ops for each in replayed),
        "duration_s": max(each.duration_s for each in replayed),
        "fetches": len(latencies_s),
        "p50_s": _quantile(latencies_s, 0.5),
        "p99_s": _quantile(latencies_s, 0.99),
        "compared": sum(each.compared for each in replayed),
        "differing": len(differences),
        "differences": differences[:_MOST_DIFFERENCES],
    }


def _quantile(ascending: list[float], share: float) -> float | None:
    return ascending[min(int(share * len(ascending)), len(ascending) - 1)] if ascending else None


def _text(fields: dict[str, Any]) -> str:
    latency = "none"
    if fields["p50_s"] is not None:
        latency = f"p50 {duration(fields['p50_s'])}, p99 {duration(fields['p99_s'])} of {fields['fetches']:,} fetches"
    lines = properties(
        (
            ("work", f"{fields['ops']:,} ops in {fields['segments']:,} segments, {fields['sessions']} sessions"),
            ("time", duration(fields["duration_s"])),
            ("latency", latency),
            ("compared", f"{fields['compared']:,} values, {fields['differing']:,} differ"),
        )
    )
    return "\n".join((lines, *fields["differences"]))
