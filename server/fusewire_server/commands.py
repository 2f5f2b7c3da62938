"""The server's commands: `serve`, `warm`, `healthcheck`, `token` and `config`.

They join the one `fusewire` command as an entry point.

A command is a parser whose `run` takes the parsed arguments and returns the exit status: 0 done, 1 failed, 2 typed or
configured wrongly. The service itself is imported when it is to run, so that help is fast.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from fusewire_protos import grpc_environment
from fusewire_protos.errors import ConfigurationError, FusewireError
from fusewire_server.access.tokens import Scope, check_protected_mode, mint, read_tokens, revoke
from fusewire_server.config.config import SETTINGS, Loaded, flag_of, load, plain_value_of
from fusewire_server.healthcheck import is_alive
from fusewire_server.host.parent import end_with_stdin
from fusewire_server.host.priority import lower_priority
from fusewire_server.host.standard_files import open_missing

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

DONE, FAILED, USAGE = 0, 1, 2
_YIELDING = 19  # the lowest priority there is

_SERVE = "Run a server until SIGTERM or SIGINT. SIGHUP loads settings, tokens and certificate again."
_WARM = """Compile the kernels of all single ops for the device that a server with these settings would run on. They are
kept with the compiled files, and no client then waits for a compiler at its first use of an op."""
_HEALTHCHECK = "Ask the server with these settings on this machine for /livez: exit with 0 if it answers, else with 1."

# The sections whose settings have flags; the others are set in a file or in the environment.
_FLAG_SECTIONS = ("listen.", "device.")


def main(arguments: list[str] | None = None) -> int:
    """Runs a command of the server's own; returns the exit status."""
    parser = argparse.ArgumentParser(prog="fusewire")
    register(parser.add_subparsers(required=True, metavar="COMMAND"))
    parsed = parser.parse_args(arguments)
    try:
        status: int = parsed.run(parsed)
    except FusewireError as error:
        print(f"fusewire: {error}", file=sys.stderr)
        return USAGE if isinstance(error, ConfigurationError) else FAILED
    return status


def register(commands: Commands) -> None:
    """Adds the server's commands to a parser's."""
    serve = commands.add_parser("serve", help="run a server", description=_SERVE)
    _add_settings(serve)
    serve.add_argument("--until-stdin-ends", action="store_true", help="end when standard input does, as well")
    serve.add_argument(
        "--json", action="store_true", help="changes nothing: the line with the addresses is always JSON"
    )
    serve.set_defaults(run=_serve)
    warm = commands.add_parser("warm", help="compile the kernels of all single ops ahead", description=_WARM)
    _add_settings(warm)
    warm.add_argument(
        "--architecture",
        action="append",
        metavar="NAME",
        help="compile for NVIDIA GPUs of this architecture, such as sm_90, with or without one here; may be repeated",
    )
    warm.add_argument(
        "--in-package",
        action="store_true",
        help="keep them in the installed package, for images whose cache is a volume",
    )
    warm.add_argument("--yielding", action="store_true", help="give way to all other processes of the machine")
    warm.add_argument("--json", action="store_true", help="print JSON")
    warm.set_defaults(run=_warm)
    health = commands.add_parser(
        "healthcheck", help="exit with 0 if the server of this machine is alive", description=_HEALTHCHECK
    )
    _add_settings(health)
    health.add_argument("--json", action="store_true", help="print JSON")
    health.set_defaults(run=_check_health)
    _register_token(commands.add_parser("token", help="make, revoke and list tokens"))
    _register_config(commands.add_parser("config", help="show and check the settings"))


def _register_token(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    minting = actions.add_parser("mint", help="make a token; it is shown once, the file keeps its hash")
    minting.add_argument("--tenant", required=True, help="whom the token's sessions belong to")
    minting.add_argument(
        "--scope", choices=[scope.value for scope in Scope], default="use", help="what it is for (%(default)s)"
    )
    minting.add_argument("--days", type=_positive, help="how long it is valid (for ever)")
    minting.set_defaults(run=_mint_token)
    revoking = actions.add_parser(
        "revoke", help="remove a token; a running server refuses it once it has read the file"
    )
    revoking.add_argument("token_id", metavar="ID", help="the part of the token before the dot")
    revoking.set_defaults(run=_revoke_token)
    listing = actions.add_parser("ls", help="list tokens, without their secrets")
    listing.set_defaults(run=_list_tokens)
    for action in (minting, revoking, listing):
        action.add_argument("--config", type=Path, metavar="FILE", help="the server's TOML file")
        action.add_argument("--token-file", dest="listen.token_file", metavar="FILE", help="the file of hashed tokens")
        action.add_argument("--json", action="store_true", help="print JSON")


def _register_config(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    show = actions.add_parser("show", help="print each setting, its value and where that came from")
    show.add_argument("--json", action="store_true", help="print JSON")
    _add_settings(show)
    show.set_defaults(run=_show_config)
    check = actions.add_parser(
        "check", help="exit with 0 if the settings and the files that they name are valid, else with 2"
    )
    check.add_argument("--json", action="store_true", help="print JSON")
    _add_settings(check)
    check.set_defaults(run=_check_config)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file of settings")
    for name, setting in SETTINGS.items():
        if not name.startswith(_FLAG_SECTIONS):
            continue
        if setting.is_switch:
            parser.add_argument(flag_of(name), dest=name, nargs="?", const=True, metavar="BOOL", help=setting.about)
        else:
            parser.add_argument(flag_of(name), dest=name, metavar="VALUE", help=setting.about)


def _loaded(parsed: argparse.Namespace) -> Loaded:
    flags = {name: value for name, value in vars(parsed).items() if name in SETTINGS and value is not None}
    return load(parsed.config, os.environ, flags)


def _serve(parsed: argparse.Namespace) -> int:
    open_missing()
    # Until the server has started and can load its settings again: the signal would end the process.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    loaded = _loaded(parsed)
    if parsed.until_stdin_ends:
        end_with_stdin()
    # The planner is started by fork and exec, where gRPC's own handlers would wait for its threads for ever.
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"
    os.environ.update(grpc_environment.lacking(os.environ))
    try:
        from fusewire_server.app import run  # noqa: PLC0415 - gRPC, FastAPI and the compiler are slow to import
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("fusewire"):
            raise
        print(f"fusewire serve needs {missing.name}: pip install 'fusewire[server]'", file=sys.stderr)
        return FAILED
    status = run(loaded, lambda: _loaded(parsed))
    gc.freeze()  # else the interpreter, as it ends, walks all that the server held, which can take seconds
    return status


def _warm(parsed: argparse.Namespace) -> int:
    from fusewire_kernels.compile.kernel_pack import PACKAGE_FOLDER, pack_roots  # noqa: PLC0415 - slow to import
    from fusewire_kernels.packing import make_c_pack, make_cuda_pack  # noqa: PLC0415 - likewise

    if parsed.yielding:
        lower_priority(_YIELDING)
    roots = [PACKAGE_FOLDER] if parsed.in_package else pack_roots()
    architectures = parsed.architecture or _architectures_here(parsed)
    try:
        made = (
            [make_cuda_pack(roots, name, _show_progress) for name in architectures]
            if architectures
            else [make_c_pack(roots, platform.machine(), _show_progress)]
        )
    except OSError as error:
        raise ConfigurationError(f"the kernels cannot be kept in {roots[-1]}: {error}") from error
    if parsed.json:
        print(json.dumps({"made": [str(folder) for folder in made if folder is not None]}))
        return DONE
    for folder in made:
        print("all kernels were compiled already" if folder is None else f"the kernels are in {folder}")
    return DONE


def _architectures_here(parsed: argparse.Namespace) -> list[str]:
    """Returns the architecture of the GPU that a server here would run on; none if it would run on the processor."""
    from fusewire_server.backends import choose_device  # noqa: PLC0415 - slow to import

    device = choose_device(_loaded(parsed).config.device)
    try:
        return [device.info.architecture] if device.info.is_gpu else []
    finally:
        device.close()


def _show_progress(done: int, of: int) -> None:
    end = "\n" if done == of else "\r"
    print(f"{done:,} of {of:,} kernels", end=end, file=sys.stderr, flush=True)


def _check_health(parsed: argparse.Namespace) -> int:
    listen = _loaded(parsed).config.listen
    alive = is_alive(listen)
    if parsed.json:
        print(json.dumps({"is_alive": alive}))
    elif not alive:
        print(f"fusewire: the server at {listen.http} does not answer /livez", file=sys.stderr)
    return DONE if alive else FAILED


def _mint_token(parsed: argparse.Namespace) -> int:
    expires = None if parsed.days is None else _in_days(parsed.days)
    token = mint(_token_file(parsed), tenant=parsed.tenant, scope=Scope(parsed.scope), expires=expires)
    if parsed.json:
        print(json.dumps({"token": token, "id": token.partition(".")[0], "expires": expires and expires.isoformat()}))
        return DONE
    print(token)
    print("Keep it now: it cannot be shown again. Clients take it from FUSEWIRE_TOKEN.", file=sys.stderr)
    return DONE


def _revoke_token(parsed: argparse.Namespace) -> int:
    revoke(_token_file(parsed), parsed.token_id)
    if parsed.json:
        print(json.dumps({"revoked": parsed.token_id}))
    return DONE


def _list_tokens(parsed: argparse.Namespace) -> int:
    rows = [
        {
            "id": record.token_id,
            "tenant": record.tenant,
            "scope": record.scope.value,
            "expires": record.expires and record.expires.isoformat(),
        }
        for record in read_tokens(_token_file(parsed))
    ]
    if parsed.json:
        print(json.dumps(rows))
        return DONE
    for row in rows:
        print(f"{row['id']:<10} {row['tenant']:<20} {row['scope']:<8} {row['expires'] or 'never expires'}")
    return DONE


def _token_file(parsed: argparse.Namespace) -> Path:
    path = _loaded(parsed).config.listen.token_file
    if path is None:
        raise ConfigurationError("which file? Give --token-file, or set listen.token_file")
    return path


def _show_config(parsed: argparse.Namespace) -> int:
    config, origins = _loaded(parsed)
    values = {name: plain_value_of(config, name) for name in SETTINGS}
    if parsed.json:
        print(json.dumps({name: {"value": values[name], "origin": origins[name]} for name in SETTINGS}, indent=2))
        return DONE
    for name, value in values.items():
        print(f"{name:<32} {'(unset)' if value is None else value!s:<24} {origins[name]}")
    return DONE


def _check_config(parsed: argparse.Namespace) -> int:
    """Reads every file that the settings name, as `serve` does, and leaves the device alone.

    Raises ConfigurationError.
    """
    listen = _loaded(parsed).config.listen
    check_protected_mode(listen)
    if listen.token_file is not None:
        read_tokens(listen.token_file)
    if listen.tls_cert is not None and listen.tls_key is not None:
        from fusewire_server.access.certificates import CertificateFiles  # noqa: PLC0415 - gRPC is slow to import

        CertificateFiles(listen.tls_cert, listen.tls_key)
    print(json.dumps({"is_valid": True}) if parsed.json else "the settings are valid")
    return DONE


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number above 0, not {text!r}")
    return value


def _in_days(days: float) -> datetime:
    try:
        return datetime.now(UTC) + timedelta(days=days)
    except OverflowError:
        raise ConfigurationError(f"--days {days:g}: no date is so far ahead; without --days it is for ever") from None
