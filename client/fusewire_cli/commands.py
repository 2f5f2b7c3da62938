"""The table of commands: for each what can be typed, what it is for, and the function that runs it.

The functions are named and not imported, so that help is fast and is complete in an installation of the client alone.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

HTTP = "127.0.0.1:7424"
GRPC = "127.0.0.1:7423"
_MOST_SESSIONS = 1000  # of a replay; each has a thread
TOKEN_HELP = "If the server requires a token, set FUSEWIRE_TOKEN to it."  # noqa: S105 - a sentence


class Command(NamedTuple):
    """A command of one or two words.

    `add_arguments` adds its arguments to its parser. `runs` is MODULE:FUNCTION; the function takes the parsed arguments
    and returns the exit status: 0 done, 1 failed, 2 wrong arguments or settings.
    """

    words: tuple[str, ...]
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    runs: str
    description: str = ""


class ServerCommand(NamedTuple):
    """A command of the server's package, which adds its arguments itself."""

    name: str
    help: str


# ---- arguments ----


_LONGEST_INTERVAL_S = 1e6  # the system cannot sleep for any number of seconds


def positive(text: str) -> float:
    """Reads a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise argparse.ArgumentTypeError(f"expected a number above 0, not {text!r}")
    return value


def interval(text: str) -> float:
    """Reads a number of seconds above 0."""
    seconds = positive(text)
    if seconds > _LONGEST_INTERVAL_S:
        raise argparse.ArgumentTypeError(f"expected at most {_LONGEST_INTERVAL_S:.0f} seconds, not {text!r}")
    return seconds


def count(text: str) -> int:
    """Reads a whole number, at least 1."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"expected a whole number, at least 1, not {text!r}")
    return int(text)


def _sessions_at_once(text: str) -> int:
    number = count(text)
    if number > _MOST_SESSIONS:
        raise argparse.ArgumentTypeError(f"expected at most {_MOST_SESSIONS:,}, not {text}")
    return number


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a whole number, at least 0, not {text!r}")
    return int(text)


def _json(parser: argparse.ArgumentParser, help: str = "print JSON") -> None:  # noqa: A002 - as argparse names it
    parser.add_argument("--json", action="store_true", help=help)


def _inspected(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--http", default=HTTP, metavar="HOST:PORT", help="address of the server's HTTP inspection (%(default)s)"
    )
    parser.add_argument(
        "--tls-ca",
        default=os.environ.get("FUSEWIRE_TLS_CA") or None,
        metavar="FILE",
        help="use TLS and trust the certificates in FILE; system: those of the system (FUSEWIRE_TLS_CA)",
    )
    _json(parser)
    parser.epilog = TOKEN_HELP


def _one_session(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="id, as `fusewire sessions ls` shows it")
    _inspected(parser)


def _asks(path: str, method: str = "GET", done: str = "") -> Callable[[argparse.ArgumentParser], None]:
    """Returns what adds the arguments of a command that asks a route. Its answer is shown, unless `done` tells it."""

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        (_one_session if "{session}" in path else _inspected)(parser)
        parser.set_defaults(path=path, method=method, done=done)

    return add_arguments


def _log(parser: argparse.ArgumentParser) -> None:
    levels = ("debug", "info", "warning", "error")
    parser.add_argument("level", nargs="?", choices=levels, metavar="LEVEL", help=f"set it to {', '.join(levels)}")
    _inspected(parser)


def _why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="id or name, as `fusewire sessions ls` shows it")
    _inspected(parser)


def _one_program(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("digest", metavar="DIGEST", help="digest or its first digits, as `fusewire programs ls` shows")
    _inspected(parser)


def _top(parser: argparse.ArgumentParser) -> None:
    _inspected(parser)
    parser.add_argument("--every", type=interval, default=1.0, metavar="S", help="seconds between looks (%(default)s)")
    parser.add_argument("--once", action="store_true", help="look for one interval, print, and end")
    parser.add_argument(
        "--sort", default="device_share", metavar="FIGURE", help="sort by this figure, greatest first (%(default)s)"
    )
    parser.add_argument(
        "--filter", action="append", default=[], metavar="FIELD=TEXT", help="only sessions of this, as tenant=lab"
    )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"expected a port, 0 to 65535, not {text!r}")
    return int(text)


def _ui(parser: argparse.ArgumentParser) -> None:
    _inspected(parser)
    parser.add_argument("--port", type=_port, default=0, metavar="PORT", help="port of this machine; 0: any (0)")
    parser.add_argument("--no-browser", action="store_true", help="print the link, and open no browser")


def _doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target", nargs="?", metavar="HOST:PORT", help=f"server, or unix:PATH (FUSEWIRE_TARGET, otherwise {GRPC})"
    )
    parser.add_argument(
        "--http", metavar="HOST:PORT", help="address of its HTTP inspection (port 7424 of the same host)"
    )
    parser.add_argument("--tls-ca", metavar="FILE", help="as for connect; system: the certificates of the system")
    _json(parser)
    parser.epilog = TOKEN_HELP


def _record(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, metavar="FILE", help="file of the recording; a second session gets FILE.2")
    parser.add_argument("--values", action="store_true", help="keep the values of arrays too")
    _json(parser, "tell the files as JSON, on standard error because standard output is COMMAND's")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND …", help="the program to run")


def _replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, metavar="FILE", help="file of the recording")
    parser.add_argument(
        "target",
        nargs="?",
        default=os.environ.get("FUSEWIRE_TARGET") or GRPC,
        metavar="HOST:PORT",
        help=f"server (FUSEWIRE_TARGET, otherwise {GRPC})",
    )
    parser.add_argument("--tls-ca", metavar="FILE", help="as for connect; system: the certificates of the system")
    parser.add_argument(
        "--sessions", type=_sessions_at_once, default=1, metavar="N", help="sessions at once (%(default)s)"
    )
    parser.add_argument("--speed", type=positive, default=1.0, metavar="K", help="K times as fast; inf: at full speed")
    parser.add_argument("--seed", type=_seed, default=0, metavar="N", help="of values that were not kept (%(default)s)")
    _json(parser)
    parser.epilog = TOKEN_HELP


def _bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--backend", choices=("cpu", "cuda"), default="cpu", help="backend of the servers (%(default)s)"
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="figures to measure; all by default")
    parser.add_argument("--strict", action="store_true", help="fail if a figure misses its limit")
    _json(parser)


def _demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clients", type=count, default=8, metavar="N", help="clients at once (%(default)s)")
    parser.add_argument("--backend", choices=("auto", "cpu", "cuda"), default="auto", help="backend of the server")
    parser.add_argument("--epochs", type=count, default=20, metavar="N", help="epochs of training (%(default)s)")
    parser.add_argument(
        "--output", type=Path, default=Path("fusewire-demo.png"), metavar="FILE", help="picture of the loss curves"
    )
    _json(parser)
    parser.add_argument(
        "--torch",
        dest="run",
        action="store_const",
        const="fusewire.examples.torch_demo:run",
        help="train by PyTorch on its CPU and on Fusewire instead; draws nothing, and has no --clients",
    )
    parser.add_argument("--target", metavar="HOST:PORT", help="use this server instead of starting one")
    parser.add_argument(
        "--http", metavar="HOST:PORT", help="address of the inspection of --target; without it, fewer figures"
    )


# ---- the table ----

GROUPS = {
    "sessions": "list, show and end the sessions of a server",
    "programs": "list and show the programs that a server knows",
}

COMMANDS = (
    Command(
        ("demo",),
        "train on handwritten digits: first one client, then several whose work runs together",
        _demo,
        "fusewire.examples.digits:run",
    ),
    Command(("status",), "show what a server is doing", _inspected, "fusewire_cli.status:run"),
    Command(("top",), "watch the sessions of a server", _top, "fusewire_cli.top:run"),
    Command(
        ("ui",),
        "watch a server in the browser",
        _ui,
        "fusewire_cli.ui:run",
        "Serves the page of the server on this machine until it is interrupted, by the token and certificates that the "
        "other commands use, and opens it.",
    ),
    Command(("sessions", "ls"), "list the sessions", _inspected, "fusewire_cli.listings:sessions"),
    Command(("sessions", "show"), "show a session and its arrays", _one_session, "fusewire_cli.sessions:show"),
    Command(
        ("sessions", "ended"), "list sessions that have ended", _asks("/v1/ended_sessions"), "fusewire_cli.answers:run"
    ),
    Command(
        ("sessions", "kill"),
        "end a session",
        _asks("/v1/sessions/{session}", "DELETE", "{session} ends"),
        "fusewire_cli.answers:run",
    ),
    Command(("programs", "ls"), "list the programs", _inspected, "fusewire_cli.listings:programs"),
    Command(
        ("programs", "show"),
        "show a program: its plan, what was fused, its kernels",
        _one_program,
        "fusewire_cli.programs:show",
    ),
    Command(("tenants",), "list the tenants that have sessions", _inspected, "fusewire_cli.listings:tenants"),
    Command(("why",), "say in a line why a session waits, failed or ended", _why, "fusewire_cli.why:run"),
    Command(("queue",), "show the work that waits for the device", _asks("/v1/queue"), "fusewire_cli.answers:run"),
    Command(("slowlog",), "show segments that took long", _asks("/v1/slowlog"), "fusewire_cli.answers:run"),
    Command(("failures",), "show the last failures", _asks("/v1/failures"), "fusewire_cli.answers:run"),
    Command(("pool",), "show the memory of the device", _asks("/v1/pool"), "fusewire_cli.answers:run"),
    Command(
        ("hold",),
        "let the device take no new work",
        _asks("/v1/device/hold", "POST"),
        "fusewire_cli.answers:run",
        "Work that has begun goes on, sessions stay, and the server is not ready until `fusewire release`.",
    ),
    Command(
        ("release",), "let the device take work again", _asks("/v1/device/release", "POST"), "fusewire_cli.answers:run"
    ),
    Command(("log",), "show or set the level of the server's log", _log, "fusewire_cli.answers:log_level"),
    Command(
        ("drain",),
        "let a server's sessions finish their work, and end the server",
        _asks("/v1/drain", "POST", "{http} drains"),
        "fusewire_cli.answers:run",
        "The server takes no more sessions, lets those that there are finish their work for at most limits.drain_s, "
        "and ends. A second drain ends it at once.",
    ),
    Command(
        ("doctor",),
        "find out why a connection fails, and what this machine has",
        _doctor,
        "fusewire_cli.doctor.command:run",
        "Checks one after another: name, port, TLS, token, version, session, inspection, clock; each within 5 s, and "
        "all but the session without a proxy. Then tells what this machine has.",
    ),
    Command(
        ("record",),
        "run a program and keep what its sessions send",
        _record,
        "fusewire_cli.recordings:record",
        "Runs COMMAND with FUSEWIRE_RECORD set, so that each session that it opens is recorded.",
    ),
    Command(
        ("replay",),
        "send again what a session has sent, and compare the answers",
        _replay,
        "fusewire_cli.recordings:replay",
    ),
    Command(("bench",), "measure all figures with limits", _bench, "fusewire_cli.bench:run"),
)

SERVER_MODULE = "fusewire_server.commands"
SERVER_COMMANDS = (
    ServerCommand("serve", "run a server"),
    ServerCommand("warm", "compile the kernels of all single ops ahead"),
    ServerCommand("healthcheck", "exit with 0 if the server of this machine is alive"),
    ServerCommand("token", "make, revoke and list tokens"),
    ServerCommand("config", "show and check the settings"),
)
