"""Loads hashed tokens, and refuses to listen beyond loopback without TLS and tokens.

A line of the file is `<id> <SHA-256 of the token, hex> <tenant> <scope> [<expiry, ISO 8601>]`; empty lines and lines
that begin with `#` are skipped. A token is `<id>.<32 random bytes>`. One round of SHA-256 is enough to store it: slow,
salted hashes protect words that people choose, from being guessed; 256 random bits cannot be guessed at any speed.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import NamedTuple, TextIO

from fusewire_protos.errors import ArgumentError, ConfigurationError, Unauthenticated
from fusewire_server.config.config import Listen

_log = logging.getLogger(__name__)

# How long whoever was let in stays while the file cannot be read: long enough to mend a slip, and no longer, since a
# revocation may be what the server fails to read.
OLD_RECORDS_S = 300.0
FAULT_LOG_EVERY_S = 60.0

_HASH_DIGITS = 64


class Scope(Enum):
    """What a token is for."""

    USE = "use"  # open sessions
    INSPECT = "inspect"  # read statistics, sessions and programs of all tenants
    ADMIN = "admin"  # both, and operate the server


_GRANTS: Mapping[Scope, frozenset[Scope]] = {
    Scope.USE: frozenset({Scope.USE}),
    Scope.INSPECT: frozenset({Scope.INSPECT}),
    Scope.ADMIN: frozenset(Scope),
}


class Principal(NamedTuple):
    """Who is calling, as far as their token says."""

    tenant: str
    token_id: str
    scope: Scope

    def may(self, scope: Scope) -> bool:
        return scope in _GRANTS[self.scope]


@dataclass(frozen=True)
class TokenRecord:
    """A line of the token file."""

    token_id: str
    hash_hex: str = field(repr=False)
    tenant: str
    scope: Scope
    expires: datetime | None

    def line(self) -> str:
        words = [self.token_id, self.hash_hex, self.tenant, self.scope.value]
        if self.expires is not None:
            words.append(self.expires.isoformat())
        return " ".join(words) + "\n"


class _Table(NamedTuple):
    """The records by id, as the file held them when it was last without fault."""

    signature: tuple[int, int, int]  # of the file that was last read
    records: Mapping[str, TokenRecord]
    malformed: str = ""  # what is wrong in the file that was last read


class _Fault(NamedTuple):
    """That the file cannot be read, or is malformed."""

    since: datetime
    is_over_long: bool  # the old records count no longer
    text: str
    logged: datetime


class Authenticator:
    """Checks tokens against a file, which is read again when it changes: a revoked token fails at its next call
    after the server could read that.

    Any thread may call it. `_table` and `_fault` are swapped whole, so that a reader sees one file or the other.
    A file that has become unreadable or malformed lets nobody new in. Whoever was let in stays for OLD_RECORDS_S, by
    the records as they were last read, so that a slip in an edit ends nobody's session; a token that is revoked
    meanwhile is good as long. It is logged when that begins, changes and ends, and every FAULT_LOG_EVERY_S between.
    """

    def __init__(self, path: Path, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Raises ConfigurationError if the file cannot be read or has a malformed line."""
        self._path = path
        self._now = now
        self._table = _Table(_signature(path), _by_id(read_tokens(path)))
        self._fault: _Fault | None = None

    def identify(self, token: str | None) -> Principal:
        """Raises Unauthenticated if the token is missing, unknown, revoked or expired, or the file cannot be read."""
        if self._look():
            raise Unauthenticated("the server cannot read its tokens now, and lets nobody new in")
        return self._principal(token, "the token is unknown here, or revoked")

    def recall(self, token: str | None) -> Principal:
        """As `identify`, for whoever was let in before: by the old records for OLD_RECORDS_S without a good file."""
        fault = self._look()
        if fault is None:
            return self._principal(token, "the token is unknown here, or revoked")
        if fault.is_over_long:
            raise Unauthenticated(f"the server could not read its tokens for {OLD_RECORDS_S:g} s, and lets nobody stay")
        return self._principal(token, "the server cannot read its tokens now, and did not know this one before")

    def _principal(self, token: str | None, unknown: str) -> Principal:
        if token is None:
            raise Unauthenticated("this server asks for a token and none came")
        record = self._table.records.get(token.partition(".")[0])
        # An unknown id takes the same path as a wrong secret, so that the answer's time tells nothing.
        is_equal = hmac.compare_digest(_hash(token), record.hash_hex if record else "0" * _HASH_DIGITS)
        if record is None or not is_equal:
            raise Unauthenticated(unknown)
        if record.expires is not None and record.expires <= self._now():
            raise Unauthenticated(f"the token {record.token_id} expired at {record.expires.isoformat()}")
        return Principal(record.tenant, record.token_id, record.scope)

    def check(self, token: str | None, scope: Scope) -> Principal:
        """As `identify`, and raises Unauthenticated if the token is not for this."""
        return _permitted(self.identify(token), scope)

    def check_again(self, token: str | None, scope: Scope) -> Principal:
        """As `recall`, and raises Unauthenticated if the token is not for this."""
        return _permitted(self.recall(token), scope)

    def _look(self) -> _Fault | None:
        """Reads the file if it has changed, and tells what is wrong with it."""
        reason, before = self._read_if_changed(), self._fault
        fault = self._fault = _next_fault(before, reason, self._now()) if reason else None
        if before and not fault:
            _log.warning("the token file can be read again")
        return fault

    def _read_if_changed(self) -> str:
        """Why the file cannot be read, or an empty text."""
        try:
            signature = _signature(self._path)
            if signature != self._table.signature:
                self._table = _next_table(self._table, signature, _content(self._path), self._path)
        except ConfigurationError as reason:
            # Not kept with the signature: permissions and want of descriptors pass without a change of the file.
            return str(reason)
        return self._table.malformed


def bearer(header: str | None) -> str | None:
    """The token of an `authorization` header or metadata entry (RFC 6750), or None."""
    scheme, _, token = (header or "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def mint(path: Path, *, tenant: str, scope: Scope, expires: datetime | None = None) -> str:
    """Adds a token to the file, which is made if missing, and returns it: the only time it can be seen.

    Raises ArgumentError for a tenant that is no single word, ConfigurationError if the file cannot be written, or holds
    anything but tokens already.
    """
    if not tenant or tenant.split() != [tenant]:
        raise ArgumentError(f"a tenant is one word without spaces, not {tenant!r}")
    token_id = secrets.token_hex(4)
    token = f"{token_id}.{secrets.token_urlsafe(32)}"
    with _rewriting(path) as new_file:
        old_text = ""
        if path.exists():
            read_tokens(path)
            old_text = path.read_text(encoding="utf-8")
        new_file.write(old_text if old_text.endswith("\n") or not old_text else old_text + "\n")
        new_file.write(TokenRecord(token_id, _hash(token), tenant, scope, expires).line())
    return token


def revoke(path: Path, token_id: str) -> None:
    """Removes a token. Raises ArgumentError if the file has no such id, ConfigurationError if it cannot be written."""
    with _rewriting(path) as new_file:
        if token_id not in _by_id(read_tokens(path)):
            raise ArgumentError(f"{path} has no token {token_id}")
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.split()[:1] != [token_id]:
                new_file.write(line)


def read_tokens(path: Path) -> tuple[TokenRecord, ...]:
    """The tokens of a file. Raises ConfigurationError with the number of a malformed line, never its text."""
    return _parsed(_content(path), path)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as reason:
        raise ConfigurationError(f"cannot read the token file {path}: {reason.strerror}") from None


def _parsed(content: bytes, path: Path) -> tuple[TokenRecord, ...]:
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError as reason:
        raise ConfigurationError(f"cannot read the token file {path}: {reason}") from None
    numbered = ((number, line.split()) for number, line in enumerate(lines, 1))
    return tuple(
        _record(words, f"{path}, line {number}") for number, words in numbered if words and not words[0].startswith("#")
    )


def _next_table(before: _Table, signature: tuple[int, int, int], content: bytes, path: Path) -> _Table:
    try:
        return _Table(signature, _by_id(_parsed(content, path)))
    except ConfigurationError as reason:
        return _Table(signature, before.records, str(reason))


def _next_fault(before: _Fault | None, reason: str, now: datetime) -> _Fault:
    """The fault as it is now; logs it if it is another than before, or has not been logged for long."""
    since = before.since if before else now
    end = since + timedelta(seconds=OLD_RECORDS_S)
    stay = "nobody stays" if now >= end else f"open sessions end at {end.isoformat(timespec='seconds')}"
    text = f"nobody new is let in, and {stay}: {reason}"
    if before and text == before.text and now < before.logged + timedelta(seconds=FAULT_LOG_EVERY_S):
        return before
    _log.error("%s", text)
    return _Fault(since, now >= end, text, now)


def _permitted(principal: Principal, scope: Scope) -> Principal:
    if not principal.may(scope):
        raise Unauthenticated(
            f"the token {principal.token_id} has the scope {principal.scope.value}; this needs {scope.value}"
        )
    return principal


def check_protected_mode(listen: Listen) -> None:
    """Raises ConfigurationError if other machines could connect without TLS or without a token."""
    exposed = [address for address in (listen.grpc, listen.http) if not address.is_loopback()]
    missing = []
    if listen.tls_cert is None:
        missing.append("--tls-cert and --tls-key")
    if listen.token_file is None:
        missing.append("--token-file")
    if not exposed or not missing or listen.insecure_allow_remote:
        return
    raise ConfigurationError(
        f"other machines can reach {exposed[0]}: give {' and '.join(missing)}, listen on 127.0.0.1, "
        "or accept the risk with --insecure-allow-remote"
    )


def _record(words: list[str], where: str) -> TokenRecord:
    if not 4 <= len(words) <= 5:
        raise ConfigurationError(f"{where}: expected id, hash, tenant, scope and perhaps an expiry")
    token_id, hash_hex, tenant, scope = words[:4]
    if len(hash_hex) != _HASH_DIGITS or not set(hash_hex) <= set("0123456789abcdef"):
        raise ConfigurationError(f"{where}: the hash is no SHA-256 in lower-case hexadecimal")
    if scope not in {one.value for one in Scope}:
        raise ConfigurationError(f"{where}: the scope is none of {', '.join(one.value for one in Scope)}")
    return TokenRecord(token_id, hash_hex, tenant, Scope(scope), _expiry(words[4:], where))


def _expiry(words: list[str], where: str) -> datetime | None:
    if not words:
        return None
    try:
        expires = datetime.fromisoformat(words[0])
    except ValueError:
        raise ConfigurationError(f"{where}: the expiry is no ISO 8601 date and time") from None
    if expires.tzinfo is None:
        raise ConfigurationError(f"{where}: the expiry has no time zone")
    return expires


def _by_id(records: tuple[TokenRecord, ...]) -> Mapping[str, TokenRecord]:
    return {record.token_id: record for record in records}


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def _signature(path: Path) -> tuple[int, int, int]:
    """Differs whenever the file was replaced or written; the inode tells two writes within one clock tick apart."""
    try:
        status = path.stat()
    except OSError as reason:
        raise ConfigurationError(f"cannot read the token file {path}: {reason.strerror}") from None
    return status.st_mtime_ns, status.st_size, status.st_ino


@contextmanager
def _rewriting(path: Path) -> Iterator[TextIO]:
    """A new file that takes the old one's place at once when all went well, with its owner and permissions.

    Where there is no old one it is for its owner only. Raises ConfigurationError if it cannot be made like the old one:
    the server might be unable to read it. It is also the lock: two commands that edit together could bring a revoked
    token back.
    """
    status = _status(path)
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise ConfigurationError(f"the token file {path} is a folder")
    new_path = path.with_name(path.name + ".new")
    try:
        descriptor = os.open(new_path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise ConfigurationError(
            f"{new_path} exists: another command is editing {path}; if none is, delete it"
        ) from None
    except OSError as reason:
        raise ConfigurationError(f"cannot write {new_path}: {reason.strerror}") from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as new_file:
            _make_like(path, new_path, descriptor)
            yield new_file
        new_path.replace(path)
    except OSError as reason:
        raise ConfigurationError(f"cannot write {path}: {reason.strerror}") from None
    finally:
        new_path.unlink(missing_ok=True)


def _status(path: Path) -> os.stat_result | None:
    """None if there is no such file. Raises ConfigurationError if that cannot be told."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None
    except OSError as reason:
        raise ConfigurationError(f"cannot read the token file {path}: {reason.strerror}") from None


def _make_like(path: Path, new_path: Path, descriptor: int) -> None:
    """Gives the new file the owner, mode and access control list of the old one at `path`, if there is one."""
    old = _status(path)
    if old is None:
        return
    try:
        os.fchown(descriptor, old.st_uid, old.st_gid)
        shutil.copystat(path, new_path)
    except OSError as reason:
        raise ConfigurationError(
            f"cannot keep the owner and permissions of {path}, run this as its owner: {reason.strerror}"
        ) from None
