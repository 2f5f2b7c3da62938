"""Defines the configuration of a server process: five sections of settings, and the origin of each value.

Later sources win: defaults < TOML file < environment (`FUSEWIRE_SECTION__KEY`) < flags. A key that no section has is an
error in every source, so that a misspelt limit is never taken for a set one.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from fusewire_protos.address import Address
from fusewire_protos.errors import ConfigurationError
from fusewire_protos.programs.limits import ProgramLimits
from fusewire_server.config.settings import (
    GIB,
    KIB,
    MIB,
    Bytes,
    Count,
    Endpoint,
    Flag,
    OptionalBytes,
    OptionalDevices,
    OptionalFew,
    OptionalFile,
    OptionalFraction,
    Seconds,
    Setting,
    check_section,
    read,
    read_one_of,
    settings_of,
)

ENVIRONMENT_PREFIX = "FUSEWIRE_"

Backend = Annotated[str, read_one_of("auto", "cpu", "cuda", "null")]
LogLevel = Annotated[str, read_one_of("debug", "info", "warning", "error")]
LogStyle = Annotated[str, read_one_of("auto", "json", "console")]

_MOST_BUSY_POLL_S = 0.01  # clients poll no longer

# The size of a frame without the bytes of its chunk or program.
_FRAME_OVERHEAD_BYTES = KIB


_TENANT_RESERVE = 1 / 8  # with tokens, unless it is set
_MOST_MESSAGE_BYTES = 2 * GIB - 2 * MIB  # gRPC takes the number, and a little more, as 32 bits with a sign


@dataclass(frozen=True)
class Listen:
    """The addresses that the server listens on, and the access to them."""

    grpc: Annotated[Endpoint, "HOST:PORT for sessions"] = field(default=Address("127.0.0.1", 7423))
    http: Annotated[Endpoint, "HOST:PORT for inspection"] = field(default=Address("127.0.0.1", 7424))
    tls_cert: Annotated[OptionalFile, "certificate chain, PEM"] = None
    tls_key: Annotated[OptionalFile, "private key of the certificate, PEM"] = None
    token_file: Annotated[OptionalFile, "file of hashed tokens; if set, every call needs a token"] = None
    adaptive_windows: Annotated[
        Flag, "let flow-control windows grow, for fast networks with long delays; strangers can then fill more memory"
    ] = False
    local: Annotated[Flag, "let clients on this machine go on over a Unix socket, which is faster"] = True
    front_ends: Annotated[
        OptionalFew, "processes that speak gRPC with clients; 0: the server itself does; unset: a quarter of the cores"
    ] = None
    busy_poll_s: Annotated[
        OptionalFraction,
        "how long both ends of a local call look for news before they sleep, in seconds, at most 0.01;"
        " unset: 0.0002, below four cores 0",
    ] = None
    insecure_allow_remote: Annotated[Flag, "let other machines connect without TLS or tokens"] = False

    def __post_init__(self) -> None:
        check_section("listen", self)
        if (self.busy_poll_s or 0.0) > _MOST_BUSY_POLL_S:
            raise ConfigurationError(f"listen.busy_poll_s = {self.busy_poll_s} is more than {_MOST_BUSY_POLL_S}")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigurationError("set both listen.tls_cert and listen.tls_key, or neither")
        if self.grpc == self.http and self.grpc.port:
            raise ConfigurationError(f"listen.grpc and listen.http are both {self.grpc}: give each a port of its own")


@dataclass(frozen=True)
class Device:
    """The device that programs run on."""

    backend: Annotated[Backend, "auto, cpu, cuda or null"] = "auto"
    devices: Annotated[
        OptionalDevices,
        "numbers of devices, such as 0,2, or all: a process for each; unset: the first, in this process",
    ] = None
    arena_bytes: Annotated[Bytes, "memory reserved for intermediate values of a submission"] = 256 * MIB
    memory_bytes: Annotated[OptionalBytes, "most memory of all values; unset: the memory of the device"] = None
    most_rows: Annotated[Count, "most rows of a submission: sessions that run one program together"] = 64
    submission_s: Annotated[Seconds, "intended longest device time of a submission"] = 0.005
    stall_s: Annotated[Seconds, "the process ends if the device takes so long for the oldest work"] = 120.0
    donation: Annotated[Flag, "write results over inputs that are no longer needed"] = True

    def __post_init__(self) -> None:
        check_section("device", self)


@dataclass(frozen=True)
class Limits:
    """The limits of one session, and on the number of sessions."""

    sessions: Annotated[Count, "sessions at once, detached ones included"] = 256
    tenant_sessions: Annotated[Count, "sessions of one tenant at once"] = 192
    message_bytes: Annotated[Bytes, "longest frame"] = 4 * MIB
    chunk_bytes: Annotated[Bytes, "longest piece of a large upload or download"] = MIB
    array_bytes: Annotated[Bytes, "largest array"] = GIB
    handles: Annotated[Count, "live handles of a session"] = 1 << 20
    live_bytes: Annotated[Bytes, "live buffers of a session"] = 4 * GIB
    programs: Annotated[Count, "programs a session may number"] = 512
    held_program_bytes: Annotated[Bytes, "memory of the programs that a session has numbered"] = 256 * MIB
    program_ops: Annotated[Count, "ops of a program"] = 8192
    program_operands: Annotated[Count, "operands of all ops of a program, and its inputs and scalars"] = 32768
    program_bytes: Annotated[Bytes, "encoded length of a program"] = 256 * KIB
    credit_ops: Annotated[Count, "ops of a session in flight"] = 1 << 16
    credit_bytes: Annotated[Bytes, "results and inline uploads of a session in flight"] = 256 * MIB
    credit_segments: Annotated[Count, "segments of a session in flight"] = 64
    tenant_host_bytes: Annotated[
        Bytes,
        "host memory that the sessions of one tenant hold: handles, rows, failures, answers, uploads, programs, plans",
    ] = 2 * GIB
    tenant_reserve: Annotated[
        OptionalFraction,
        "part of the device's memory that is kept for tenants that hold little; unset: 1/8 with tokens, else none",
    ] = None
    unread_bytes: Annotated[Bytes, "results of a session that wait to be read"] = 64 * MIB
    # Longer than it takes to notice that a connection is broken: who is cut off is no slow reader.
    unread_s: Annotated[Seconds, "longest time that results may wait unread"] = 20.0
    upload_stall_s: Annotated[Seconds, "longest time that an upload may bring no bytes"] = 10.0
    drain_s: Annotated[Seconds, "longest time that sessions may finish their work after the server is told to end"] = (
        10.0
    )
    resume_grace_s: Annotated[Seconds, "time that a session outlives its connection"] = 30.0

    def __post_init__(self) -> None:
        check_section("limits", self)
        if self.message_bytes > _MOST_MESSAGE_BYTES:
            text = f"limits.message_bytes = {self.message_bytes}; the most is {_MOST_MESSAGE_BYTES}"
            raise ConfigurationError(text)
        self._check_order("array_bytes", "live_bytes")
        self._check_order("chunk_bytes", "message_bytes", margin_bytes=_FRAME_OVERHEAD_BYTES)
        self._check_order("program_bytes", "message_bytes", margin_bytes=_FRAME_OVERHEAD_BYTES)

    def program_limits(self) -> ProgramLimits:
        """The limits that bound a program by itself."""
        return ProgramLimits(self.program_ops, self.program_operands, self.program_bytes, self.array_bytes)

    def _check_order(self, smaller: str, larger: str, *, margin_bytes: int = 0) -> None:
        low, high = getattr(self, smaller), getattr(self, larger)
        if low + margin_bytes > high:
            beside = f" and {margin_bytes} bytes beside it" if margin_bytes else ""
            raise ConfigurationError(f"limits.{smaller} = {low}{beside} exceed limits.{larger} = {high}")


@dataclass(frozen=True)
class Planner:
    """The worker processes that turn programs into plans."""

    deadline_s: Annotated[
        Seconds, "most processor time to plan and compile a program; a compiler may take four fifths of it"
    ] = 30.0
    memory_bytes: Annotated[
        Bytes, "most memory of each process of a worker; on NVIDIA GPUs up to eight of them compile at a time"
    ] = 2 * GIB
    cached_plans: Annotated[
        Count, "programs kept, with their plans, that no session has numbered; the least recently used goes first"
    ] = 1024
    cached_bytes: Annotated[
        Bytes, "memory of all programs, numbered ones included; the sessions of one tenant may hold half of it"
    ] = 2 * GIB
    promote_fragment_after: Annotated[Count, "uses of a fragment before it is planned"] = 2

    def __post_init__(self) -> None:
        check_section("planner", self)


@dataclass(frozen=True)
class Log:
    """The records that the server writes to standard error."""

    level: Annotated[LogLevel, "debug, info, warning or error"] = "info"
    style: Annotated[LogStyle, "json, console, or auto: console on a terminal, else json"] = "auto"
    audit: Annotated[Flag, "tell who gets a session and what is refused, whatever the level is"] = True

    def __post_init__(self) -> None:
        check_section("log", self)


@dataclass(frozen=True)
class Config:
    """All settings of a server process."""

    listen: Listen = Listen()
    device: Device = Device()
    limits: Limits = Limits()
    planner: Planner = Planner()
    log: Log = Log()

    @property
    def tenant_reserve(self) -> float:
        """The part of the device's memory that is kept for tenants that hold little. Without tokens there is one."""
        if self.limits.tenant_reserve is not None:
            return self.limits.tenant_reserve
        return _TENANT_RESERVE if self.listen.token_file is not None else 0.0


class Loaded(NamedTuple):
    """A configuration, and the origin of each value by `section.key`."""

    config: Config
    origins: Mapping[str, str]


class _Given(NamedTuple):
    """A raw value from one source, with its name and origin."""

    name: str
    raw: object
    origin: str


SECTIONS: Mapping[str, type[Any]] = {
    "listen": Listen,
    "device": Device,
    "limits": Limits,
    "planner": Planner,
    "log": Log,
}
SETTINGS: Mapping[str, Setting] = {
    f"{section}.{key}": setting for section, kind in SECTIONS.items() for key, setting in settings_of(kind).items()
}


def load(file: Path | None, environment: Mapping[str, str], flags: Mapping[str, object]) -> Loaded:
    """Returns the configuration from all sources; `flags` maps `section.key` to the text typed.

    Raises ConfigurationError for an unreadable file, an unknown key and an invalid value.
    """
    values: dict[str, dict[str, object]] = {section: {} for section in SECTIONS}
    origins = dict.fromkeys(SETTINGS, "default")
    for given in (*_from_file(file), *_from_environment(environment), *_from_flags(flags)):
        section, _, key = given.name.partition(".")
        values[section][key] = read(given.name, _setting(given), given.raw, given.origin)
        origins[given.name] = given.origin
    return Loaded(Config(**{section: kind(**values[section]) for section, kind in SECTIONS.items()}), origins)


def value_of(config: Config, name: str) -> object:
    """Returns the value of `section.key`."""
    section, _, key = name.partition(".")
    value: object = getattr(getattr(config, section), key)
    return value


def plain_value_of(config: Config, name: str) -> str | int | float | bool | None:
    """Returns the value of `section.key` as JSON has it."""
    value = value_of(config, name)
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _setting(given: _Given) -> Setting:
    setting = SETTINGS.get(given.name)
    if setting is None:
        raise ConfigurationError(f"there is no setting {given.name} ({given.origin}){_hint(given.name)}")
    return setting


def _hint(name: str) -> str:
    """Suggests a setting for an unknown name."""
    section, dot, key = name.partition(".")
    if name in SECTIONS:
        return f": {name} is a section, a table of settings"
    if section in SECTIONS:
        near = [f"{section}.{one}" for one in difflib.get_close_matches(key, settings_of(SECTIONS[section]), n=1)]
    else:
        near = difflib.get_close_matches(name, SETTINGS if dot else (*SETTINGS, *SECTIONS), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _from_file(path: Path | None) -> Iterator[_Given]:
    if path is None:
        return
    origin = f"file {path}"
    for section, table in _parse(path).items():
        if isinstance(table, dict) and section in SECTIONS:
            yield from (_Given(f"{section}.{key}", raw, origin) for key, raw in table.items())
        else:
            yield _Given(section, table, origin)


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as reason:
        raise ConfigurationError(f"cannot read {path}: {reason.strerror}") from None
    except ValueError as reason:
        raise ConfigurationError(f"{path} is not valid TOML: {reason}") from None
    except RecursionError:
        raise ConfigurationError(f"cannot read {path}: it is nested too deeply") from None


def _from_environment(environment: Mapping[str, str]) -> Iterator[_Given]:
    for variable, raw in environment.items():
        section, separator, key = variable.removeprefix(ENVIRONMENT_PREFIX).partition("__")
        if variable.startswith(ENVIRONMENT_PREFIX) and separator:
            yield _Given(f"{section}.{key}".lower(), raw, f"environment {variable}")


def _from_flags(flags: Mapping[str, object]) -> Iterator[_Given]:
    for name, raw in flags.items():
        yield _Given(name, raw, f"flag {flag_of(name)}")


def flag_of(name: str) -> str:
    """Returns the flag of `serve` that sets `section.key`."""
    return "--" + name.partition(".")[2].replace("_", "-")
