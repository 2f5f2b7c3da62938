"""Runs the `fusewire` command: reads what was typed, and calls the function of that command.

Every error of a command becomes one line on standard error and an exit status: 1 failed, 2 wrong arguments or settings.
If FUSEWIRE_TRACEBACK is set, an error that no command expects shows its traceback instead.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from fusewire_cli.commands import COMMANDS, GROUPS, SERVER_COMMANDS, SERVER_MODULE
from fusewire_cli.text import harmless
from fusewire_protos.errors import ConfigurationError, FusewireError

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

DONE, FAILED, USAGE = 0, 1, 2
TRACEBACK_VARIABLE = "FUSEWIRE_TRACEBACK"

_EXTRA_OF_PACKAGE = {"matplotlib": "demo", "rich": "cli", "hdrh": "load", "psutil": "load"}
_SERVER_NAMES = frozenset(command.name for command in SERVER_COMMANDS)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command that the arguments name. Returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for terminals that lack some characters
    try:
        status = _run(sys.argv[1:] if arguments is None else arguments)
    except SystemExit as ended:  # argparse has printed help, the version or what is wrong
        status = int(ended.code or DONE)
    except Exception as defect:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        _tell(f"{defect!r}; this is a defect of Fusewire: {TRACEBACK_VARIABLE}=1 shows where")
        status = FAILED
    return _after_output(status)


def _run(typed: list[str]) -> int:
    is_of_server = typed[:1] != [] and typed[0] in _SERVER_NAMES
    try:
        parsed = command_line(is_of_server=is_of_server).parse_args(typed)
        run: Callable[[argparse.Namespace], int] = _named(parsed.run) if isinstance(parsed.run, str) else parsed.run
        return run(parsed)
    except ModuleNotFoundError as missing:
        return _tell_extra(missing, is_of_server=is_of_server)
    except FusewireError as error:
        _tell(error)
        return USAGE if isinstance(error, ConfigurationError) else FAILED
    except (KeyboardInterrupt, BrokenPipeError):
        return FAILED
    except OSError as reason:
        _tell(reason)
        return FAILED


def _after_output(status: int) -> int:
    """Writes out what was printed, and returns the status. If that fails, returns the status of a failure."""
    try:
        sys.stdout.flush()
    except OSError as reason:
        if not isinstance(reason, BrokenPipeError):  # a pipe breaks as in `fusewire … | head`, which is no fault
            _tell(reason)
        # Python flushes once more when it exits, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return status


def _tell(error: object) -> None:
    print(f"fusewire: {harmless(error)}", file=sys.stderr)


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
    _tell(f"{package} is missing: pip install 'fusewire[{extra}]'")
    return FAILED


def _version() -> str:
    try:
        return version("fusewire")
    except PackageNotFoundError:
        return "(from a source tree)"
