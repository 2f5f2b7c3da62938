"""Runs the `fusewire` command. Its subcommands come from the client, and from entry points of other packages.

A subcommand is an argument parser whose default `run` is a function. The function takes the parsed arguments and
returns the exit status: 0 done, 1 failed, 2 wrong arguments or settings. Each subcommand imports its slow modules
itself, so that `fusewire --help` is fast.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from typing import TYPE_CHECKING

from fusewire._transport.inspection import checked_answer, inspect, sessions_text, status_text
from fusewire._transport.token import TOKEN_VARIABLE
from fusewire_protos.errors import ConfigurationError, FusewireError

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

DONE, FAILED, USAGE = 0, 1, 2

ENTRY_POINT_GROUP = "fusewire.commands"

_DEMO_MODULE = "fusewire.examples.digits"
_EXTRA_OF_PACKAGE = {"matplotlib": "demo", "rich": "cli"}


def main(arguments: list[str] | None = None) -> int:
    """Runs the subcommand that the arguments name. Returns the exit status."""
    typed = sys.argv[1:] if arguments is None else arguments
    try:
        parsed = _parser(typed).parse_args(typed)
        status: int = parsed.run(parsed)
    except ModuleNotFoundError as missing:
        return _tell_extra(missing)
    except FusewireError as error:
        print(f"fusewire: {error}", file=sys.stderr)
        return USAGE if isinstance(error, ConfigurationError) else FAILED
    except KeyboardInterrupt:
        return FAILED
    return status


def _parser(typed: list[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fusewire", description="Runs array code of this machine on the device of a Fusewire server."
    )
    parser.add_argument("--version", action="version", version=f"fusewire {_version()}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _register_demo(commands, is_typed=typed[:1] == ["demo"])
    _register_inspection(commands)
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        _register_added(commands, entry_point)
    return parser


def _register_added(commands: Commands, entry_point: EntryPoint) -> None:
    try:
        register = entry_point.load()
    except ModuleNotFoundError as missing:
        # The other commands must work although this entry point does not load.
        print(f"fusewire: the commands of {entry_point.value} are not available: {missing}", file=sys.stderr)
    else:
        register(commands)


def _tell_extra(missing: ModuleNotFoundError) -> int:
    package = (missing.name or "").partition(".")[0]
    if package not in _EXTRA_OF_PACKAGE:
        raise missing
    print(f"fusewire: {package} is missing: pip install 'fusewire[{_EXTRA_OF_PACKAGE[package]}]'", file=sys.stderr)
    return FAILED


def _register_demo(commands: Commands, *, is_typed: bool) -> None:
    demo = commands.add_parser(
        "demo", help="train on handwritten digits: first one client, then several whose work runs together"
    )
    # The demo's module adds the demo's arguments. It is slow to import, so it is imported only for this command.
    if is_typed:
        example = importlib.import_module(_DEMO_MODULE)
        example.add_arguments(demo)
        demo.set_defaults(run=example.run)


def _register_inspection(commands: Commands) -> None:
    status = commands.add_parser("status", help="show what a server is doing")
    status.set_defaults(run=_status)
    drain = commands.add_parser(
        "drain",
        help="let a server's sessions finish their work, and end the server",
        description="The server takes no more sessions, lets those that there are finish their work for at most "
        "limits.drain_s, and ends. A second drain ends it at once.",
    )
    drain.set_defaults(run=_drain)
    sessions = commands.add_parser("sessions", help="inspect the sessions of a server")
    actions = sessions.add_subparsers(required=True, metavar="ACTION")
    listing = actions.add_parser("ls", help="list the sessions")
    listing.set_defaults(run=_list_sessions)
    for parser in (status, drain, listing):
        parser.add_argument(
            "--http",
            default="127.0.0.1:7424",
            metavar="HOST:PORT",
            help="address of the server's HTTP inspection (%(default)s)",
        )
        parser.add_argument(
            "--tls-ca", metavar="FILE", help="use TLS and trust the certificates in FILE; system: those of the system"
        )
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.epilog = f"If the server requires a token, set {TOKEN_VARIABLE} to it."


def _status(parsed: argparse.Namespace) -> int:
    stats = inspect("/v1/stats", parsed.http, parsed.tls_ca)
    with checked_answer(parsed.http):
        text = status_text(stats)
    print(json.dumps(stats, indent=2) if parsed.json else text)
    return DONE


def _drain(parsed: argparse.Namespace) -> int:
    told = inspect("/v1/drain", parsed.http, parsed.tls_ca, method="POST")
    print(json.dumps(told) if parsed.json else f"{parsed.http} drains")
    return DONE


def _list_sessions(parsed: argparse.Namespace) -> int:
    told = inspect("/v1/sessions", parsed.http, parsed.tls_ca)
    with checked_answer(parsed.http):
        text = sessions_text(told["sessions"])
    print(json.dumps(told["sessions"], indent=2) if parsed.json else text)
    return DONE


def _version() -> str:
    try:
        return version("fusewire")
    except PackageNotFoundError:
        return "(from a source tree)"
