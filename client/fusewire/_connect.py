"""Opens sessions, and finds the default session, which functions without an array operand use.

The default session is the one that was connected last, whether it is open or not, so that no array comes to be in
another session unnoticed. If none was ever connected, a session is connected to the address in FUSEWIRE_TARGET with the
token in FUSEWIRE_TOKEN, and by TLS if FUSEWIRE_TLS_CA is set.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from fusewire._errors import ConfigurationError, FusewireError
from fusewire._recording import default_session as _default_session
from fusewire._recording.recorded_ops import forget_default_tapes
from fusewire._replay.recording_transport import RecordingTransport
from fusewire._replay.records import OWNERS_MODE, Header, Recording, RecordWriter
from fusewire._replay.replay import Replay, Replayed
from fusewire._session import RECONNECT_S, Session, end_all
from fusewire._stream.frames import NO_WISH, Wish
from fusewire._transport.credentials import system_roots, tls_credentials
from fusewire._transport.inspection import SYSTEM_ROOTS
from fusewire._transport.interface import Transport
from fusewire._transport.stream_transport import StreamTransport
from fusewire._transport.token import UNIX_PREFIX, refuse_in_clear, token_of
from fusewire_protos.address import read_address
from fusewire_protos.session_name import check_labels, check_name

if TYPE_CHECKING:
    import grpc  # imported at run time by the transport alone, after it has set gRPC's environment variables

TARGET_VARIABLE = "FUSEWIRE_TARGET"
TLS_CA_VARIABLE = "FUSEWIRE_TLS_CA"
DEBUG_VARIABLE = "FUSEWIRE_DEBUG"
RECORD_VARIABLE = "FUSEWIRE_RECORD"
RECORD_VALUES_VARIABLE = "FUSEWIRE_RECORD_VALUES"
CONNECT_TIMEOUT_S = 20.0
REPLAY_TIMEOUT_S = 3600.0
_MOST_DEVICES = 64
_AFTER_QUEUES = -100  # among the finalisers of multiprocessing: a queue may still read an array that was put into it

_connected_last: list[Session] = []  # holds one entry once a session has been connected
_connecting: dict[int, threading.RLock] = {}  # by process id: in a forked child the parent's lock may stay locked


def connect(  # noqa: PLR0913 - all but the first are options, passed by name
    target: str | None = None,
    *,
    token: str | None = None,
    tls_ca: str | Path | None = None,
    credentials: grpc.ChannelCredentials | None = None,
    insecure_token: bool = False,
    debug: bool = False,
    record: str | Path | None = None,
    record_values: bool = False,
    timeout: float = CONNECT_TIMEOUT_S,
    reconnect_s: float = RECONNECT_S,
    local: bool = True,
    device: int | None = None,
    name: str = "",
    labels: Mapping[str, str] | None = None,
) -> Session:
    """Opens a session on the server at `target`, by default the value of FUSEWIRE_TARGET.

    `target` is host:port, with an IPv6 host in brackets ([::1]:7423), or unix:path for a Unix socket.
    `token` is by default the value of FUSEWIRE_TOKEN.
    `tls_ca` is a PEM file of certificates to trust, or "system" for those that the system trusts. With it the
    connection uses TLS. It is by default the value of FUSEWIRE_TLS_CA.
    `credentials`, from `grpc.ssl_channel_credentials`, set up TLS in any other way. Pass only one of `tls_ca` and
    `credentials`.
    `insecure_token` lets the token travel unencrypted to another machine. Without it a token is sent in clear only to
    this machine: to a loopback address or a Unix socket.
    `debug` raises IndexError, at the next read, for an index on the server that is out of range. Recording gets slower.
    FUSEWIRE_DEBUG=1 sets it for all sessions.
    `record` is a file that keeps what the session sends, for `fusewire.replay`. Scalars are always kept. The values of
    arrays that are uploaded or read are kept only with `record_values`; otherwise a replay draws uploads at random. It
    is by default the value of FUSEWIRE_RECORD, with a number added if there is such a file already.
    `reconnect_s` is how long a lost connection is made again, in seconds; 0 ends the session with its connection. What
    waits goes on once it is made again. A server keeps the session for its own limits.resume_grace_s.
    `local` lets the session go on over a Unix socket, which is faster, if the server is on this machine.
    `device` is the number of a device, if the server has several; without it the server chooses one. All arrays of the
    session are on it.
    `name` and `labels` say what the session is, such as name="ppo-worker-7" and labels={"run": "42"}. The server's
    inspection and logs show them. A name, and the name and value of each of at most 8 labels, has at most 64 letters,
    digits and `_./:@+-`.

    Raises SessionLost if the server cannot be reached, Unauthenticated if the server refuses the token,
    ConfigurationError for a wrong argument or a device that the server does not have, and WaitTimeout after `timeout`
    seconds. Raises SessionClosed in a process that was forked after its parent had connected; start such a process by
    the spawn method instead.
    """
    if not reconnect_s >= 0:
        raise ConfigurationError(f"reconnect_s = {reconnect_s!r}: expected a number of seconds, 0 or more")
    if device is not None and device not in range(_MOST_DEVICES):
        raise ConfigurationError(f"device = {device!r}: expected a number from 0 to {_MOST_DEVICES - 1}")
    try:
        check_name(name)
        check_labels(labels or {})
    except ValueError as reason:
        raise ConfigurationError(str(reason)) from None
    transport: Transport = transport_to(target, token, tls_ca, credentials, insecure_token=insecure_token, local=local)
    path, keeps_values = (Path(record), record_values) if record is not None else _recording_of_environment()
    if path is not None:
        transport = RecordingTransport(transport, RecordWriter(path, Header(_CLIENT, keeps_values)))
    is_debug = debug or _is_set(DEBUG_VARIABLE)
    wish = Wish(device, name=name, labels=labels or {})
    return open_session(transport, debug=is_debug, timeout=timeout, reconnect_s=reconnect_s, wish=wish)


def replay(  # noqa: PLR0913 - all but the first two are options, passed by name
    recording: str | Path,
    target: str | None = None,
    *,
    token: str | None = None,
    tls_ca: str | Path | None = None,
    insecure_token: bool = False,
    speed: float = 1.0,
    seed: int = 0,
    timeout: float = REPLAY_TIMEOUT_S,
) -> Replayed:
    """Opens a session, sends in it what a recorded session sent, and compares the answers with the recorded answers.

    `target`, `token`, `tls_ca` and `insecure_token` are those of `connect`. If `speed` is 2, frames are sent twice as
    fast as they were recorded; if it is `float("inf")`, as fast as the server completes the work. Uploaded values that
    were not recorded are drawn at random, seeded by `seed`: floats normally distributed, integers from 0 to 7.

    Raises ConfigurationError if the file is no recording, was cut short or has another version; WaitTimeout after
    `timeout` seconds; and SessionLost and Unauthenticated as `connect` does.
    """
    if not speed > 0:
        raise ConfigurationError(f"speed = {speed!r}: expected a number above 0")
    if seed < 0:
        raise ConfigurationError(f"seed = {seed!r}: expected 0 or more")
    with Recording(Path(recording)) as opened:
        opened.check()  # before anything is sent, because the recording may have been cut short
        transport = transport_to(target, token, tls_ca, None, insecure_token=insecure_token)
        return Replay(transport, opened, speed=speed, seed=seed, client=_CLIENT).run(timeout)


def transport_to(
    target: str | None,
    token: str | None,
    tls_ca: str | Path | None,
    credentials: grpc.ChannelCredentials | None,
    *,
    insecure_token: bool = False,
    local: bool = True,
) -> StreamTransport:
    """Makes a transport to a server. The arguments and errors are those of `connect`."""
    if tls_ca is not None and credentials is not None:
        raise ConfigurationError("tls_ca and credentials both set up TLS; pass one of them")
    if credentials is None and (trusted := tls_ca or os.environ.get(TLS_CA_VARIABLE)):
        credentials = tls_credentials(system_roots() if trusted == SYSTEM_ROOTS else Path(trusted))
    address = _target(target)
    if token_of(token) and credentials is None and not insecure_token:
        refuse_in_clear(address, f"pass tls_ca or set {TLS_CA_VARIABLE}; insecure_token=True sends it nevertheless")
    return StreamTransport(address, find_token=lambda: token_of(token), credentials=credentials, local=local)


def open_session(
    transport: Transport,
    *,
    debug: bool = False,
    timeout: float = CONNECT_TIMEOUT_S,
    reconnect_s: float = RECONNECT_S,
    wish: Wish = NO_WISH,
) -> Session:
    """Opens a session over any transport; errors and times are those of `connect`."""
    programs = _connected_last[0].newest_programs() if _connected_last else ()
    wish = wish._replace(programs=programs)
    session = Session(transport, debug=debug, client=_CLIENT, reconnect_s=reconnect_s, wish=wish)
    session.open(timeout)
    if not _connected_last:
        _end_with_worker()
    _connected_last[:] = [session]
    forget_default_tapes()
    return session


def _end_with_worker() -> None:
    """Has a process of multiprocessing end its sessions before it exits: a forked one runs no handlers of atexit."""
    processes = sys.modules.get("multiprocessing")  # which such a process has imported
    if processes is not None and processes.parent_process() is not None:
        processes.util.Finalize(None, end_all, exitpriority=_AFTER_QUEUES)


def default_session() -> Session:
    """Returns the session that was connected last. If none ever was, connects one to FUSEWIRE_TARGET.

    Raises the reason why the session has ended, if it has.
    """
    if not _connected_last:
        with _connecting.setdefault(os.getpid(), threading.RLock()):  # one thread connects; the others use its session
            return _connected_last[0] if _connected_last else connect()
    (session,) = _connected_last
    try:
        session.check_open()
    except FusewireError as reason:
        raise type(reason)(
            f"functions without an array use the session that is connected last, and the last one has ended: {reason}"
        ) from None
    return session


def _target(given: object) -> str:
    """Returns the address to connect to. Raises ConfigurationError for an address that gRPC could misunderstand."""
    name, target = ("target", given) if given else (TARGET_VARIABLE, os.environ.get(TARGET_VARIABLE))
    if not target:
        raise ConfigurationError(f"no target: pass one to connect, or set {TARGET_VARIABLE}")
    if isinstance(target, str) and target.startswith(UNIX_PREFIX) and target != UNIX_PREFIX:
        return target
    try:
        return str(read_address(target, least_port=1))
    except ValueError as reason:
        raise ConfigurationError(f"{name} = {target!r}: {reason}; or unix:PATH") from None


def _recording_of_environment() -> tuple[Path | None, bool]:
    """Returns a new file by the name in FUSEWIRE_RECORD, or None if that is not set, and whether values are kept."""
    named = os.environ.get(RECORD_VARIABLE)
    if not named:
        return None, False
    return _new_file(named), _is_set(RECORD_VALUES_VARIABLE)


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "0") not in {"", "0"}


def _new_file(named: str) -> Path:
    """Creates the first of NAME, NAME.2, NAME.3, … that is not there yet: other processes may record as well."""
    for number in count(1):
        path = Path(named if number == 1 else f"{named}.{number}")
        try:
            path.touch(OWNERS_MODE, exist_ok=False)
        except FileExistsError:
            continue
        except OSError as reason:
            raise ConfigurationError(f"{RECORD_VARIABLE} = {named}: {reason.strerror}") from None
        return path
    raise AssertionError("numbers do not end")


def _version() -> str:
    try:
        return version("fusewire")
    except PackageNotFoundError:  # imported from a source tree that is not installed
        return "0"


__version__ = _version()
_CLIENT = f"fusewire-python {__version__}"

_default_session.set_provider(default_session)
atexit.register(end_all)
