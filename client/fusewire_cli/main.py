"""Runs the `fusewire` command: reads what was typed, and calls the function of that command.

Every error of a command becomes one line on standard error and an exit status: 1 failed, 2 wrong arguments or settings.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from fusewire_cli.commands import COMMANDS, GROUPS, SERVER_COMMANDS, SERVER_MODULE
from fusewire_protos.errors import ConfigurationError, FusewireError

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

DONE, FAILED, USAGE = 0, 1, 2

_EXTRA_OF_PACKAGE = {"matplotlib": "demo", "rich": "cli"}
_SERVER_NAMES = frozenset(command.name for command in SERVER_COMMANDS)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command that the arguments name. Returns the exit status."""
    typed = sys.argv[1:] if arguments is None else arguments
    is_of_server = typed[:1] != [] and typed[0] in _SERVER_NAMES
    try:
        parsed = command_line(is_of_server=is_of_server).parse_args(typed)
        run: Callable[[argparse.Namespace], int] = _named(parsed.run) if isinstance(parsed.run, str) else parsed.run
        status = run(parsed)
        sys.stdout.flush()
    except ModuleNotFoundError as missing:
        return _tell_extra(missing, is_of_server=is_of_server)
    except FusewireError as error:
        print(f"fusewire: {error}", file=sys.stderr)
        return USAGE if isinstance(error, ConfigurationError) else FAILED
    except KeyboardInterrupt:
        return FAILED
    except BrokenPipeError:  # as by `fusewire … | head`; otherwise Python would complain again when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as reason:
        print(f"fusewire: {reason}", file=sys.stderr)
        return FAILED
    return status


def command_line(*, is_of_server: bool) -> argparse.ArgumentParser:
    """Returns the parser of all commands. The server's commands have their arguments only if `is_of_server`."""
    parser = argparse.ArgumentParser(
        prog="fusewire", description="Runs array code of this machine on the device of a Fusewire server."
    )
    parser.add_argument("--version", action="version", version=f"fusewire {_version()}")
    names = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_server_commands(names, is_of_server=is_of_server)
    groups = {group: _add_group(names, group, text) for group, text in GROUPS.items()}
    for command in COMMANDS:
        *group, name = command.words
        within = groups[group[0]] if group else names
        one = within.add_parser(name, help=command.help, description=command.description or None)
        command.add_arguments(one)
        one.set_defaults(run=command.runs)
    return parser


def _add_group(names: Commands, group: str, text: str) -> Commands:
    return names.add_parser(group, help=text).add_subparsers(required=True, metavar="ACTION")


def _add_server_commands(names: Commands, *, is_of_server: bool) -> None:
    if is_of_server:
        importlib.import_module(SERVER_MODULE).register(names)
        return
    for command in SERVER_COMMANDS:
        names.add_parser(command.name, help=command.help)


def _named(function: str) -> Callable[[argparse.Namespace], int]:
    module, _, name = function.partition(":")
    found: Callable[[argparse.Namespace], int] = getattr(importlib.import_module(module), name)
    return found


def _tell_extra(missing: ModuleNotFoundError, *, is_of_server: bool) -> int:
    package = (missing.name or "").partition(".")[0]
    extra = _EXTRA_OF_PACKAGE.get(package, "server" if is_of_server else None)
    if extra is None or package.startswith("fusewire"):
        raise missing
    print(f"fusewire: {package} is missing: pip install 'fusewire[{extra}]'", file=sys.stderr)
    return FAILED


def _version() -> str:
    try:
        return version("fusewire")
    except PackageNotFoundError:
        return "(from a source tree)"
