"""One client process of the demo: `python -m fusewire.examples.worker --target HOST:PORT --learning-rate RATE …`.

The process writes one JSON object a line on standard output: `ready` when it is connected, `epoch` after each epoch,
and `done` with the results. It begins to train when it reads `start` on standard input. If standard input ends before
`start`, the process ends without training.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

import fusewire
from fusewire import FusewireError, SessionStats
from fusewire.examples.clients import START
from fusewire.examples.figures import ClientRun, TrainingRun
from fusewire.examples.training.timing import train_once

DONE, FAILED = 0, 1


def main(arguments: list[str] | None = None) -> int:
    """Runs the process; returns the exit status."""
    parsed = _parser().parse_args(arguments)
    try:
        return _work(parsed.target, parsed.learning_rate, parsed.epochs)
    except FusewireError as error:
        print(f"client with learning rate {parsed.learning_rate:g}: {error}", file=sys.stderr)
        return FAILED


def _work(target: str, learning_rate: float, epochs: int) -> int:
    with fusewire.connect(target) as session:
        _tell({"event": "ready"})
        if sys.stdin.readline() != START:
            return FAILED
        run = train_once(fusewire, learning_rate, epochs, lambda: _tell({"event": "epoch"}))
        client = _client_run(run, session.stats)
    _tell({"event": "done", **asdict(client)})
    return DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="One client process of the demo.")
    parser.add_argument("--target", required=True, metavar="HOST:PORT")
    parser.add_argument("--learning-rate", required=True, type=float)
    parser.add_argument("--epochs", required=True, type=int)
    return parser


def _client_run(run: TrainingRun, stats: SessionStats) -> ClientRun:
    return ClientRun(
        run=run,
        ops=stats.ops_recorded,
        segments=stats.segments,
        fragments=stats.fragments,
        sent_bytes=stats.sent_bytes,
        programs=stats.programs,
    )


def _tell(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
