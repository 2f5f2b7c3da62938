"""Loads hashed tokens, and refuses to listen beyond loopback without TLS and tokens.

A line of the file is `<id> <SHA-256 of the token, hex> <tenant> <scope> [<expiry, ISO 8601>]`; empty lines and lines
that begin with `#` are skipped. A token is `<id>.<32 random bytes>`. One round of SHA-256 is enough to store a token:
slow, salted hashes protect passwords from being guessed, but 256 random bits cannot be guessed at any speed.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import NamedTuple, TextIO

from fusewire_protos.errors import ArgumentError, ConfigurationError, Unauthenticated
from fusewire_protos.file_rights import EVERY_USER, others_who_may_write
from fusewire_server.config.config import Listen

_log = logging.getLogger(__name__)

# Known tokens stay valid for this time while the file cannot be read: long enough to mend a mistake, and no longer,
# because the change that the server cannot read may be a revocation.
OLD_RECORDS_S = 300.0
FAULT_LOG_EVERY_S = 60.0
# A file that is written in place, and not replaced, may be half written. So what it lacks stays valid until the file
# has not changed for this time.
SETTLES_S = 1.0

_HASH_DIGITS = 64
_ENCODING = "utf-8-sig"  # with or without the byte-order mark that some editors write first
_UNREAD = (-1, -1, -1)  # the signature of no file
_INODE = 2  # its place in a signature


class Scope(Enum):
    """The permission of a token."""

    USE = "use"  # open sessions
    INSPECT = "inspect"  # read statistics, sessions and programs of all tenants
    ADMIN = "admin"  # both, and operate the server


_GRANTS: Mapping[Scope, frozenset[Scope]] = {
    Scope.USE: frozenset({Scope.USE}),
    Scope.INSPECT: frozenset({Scope.INSPECT}),
    Scope.ADMIN: frozenset(Scope),
}


class Principal(NamedTuple):
    """The caller that a token identifies."""

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
    """The records by id, from the last version of the file without a fault."""

    signature: tuple[int, int, int]  # of the version that was read last
    records: Mapping[str, TokenRecord]
    malformed: str = ""  # the fault in the version that was read last


class _Unsettled(NamedTuple):
    """A version of the file that lacks records and may be half written."""

    signature: tuple[int, int, int]
    since_s: float  # on the monotonic clock


class _Fault(NamedTuple):
    """The file cannot be read, or is malformed."""

    began_s: float  # on the monotonic clock
    end: str  # the time of day at which the old records are no longer used, for people
    is_over_long: bool  # whether the old records are no longer used
    text: str
    logged_s: float  # on the monotonic clock


class Authenticator:
    """Checks tokens against a file, which is read again when it changes. A revoked token fails at its next call.

    If the file was written in place and not replaced, as `revoke` does, the token fails SETTLES_S later; so it may if
    the file was replaced twice between two looks, because the system gives a number of a file again. So call `look`
    often. Any thread may call this object. `_table`, `_fault` and `_unsettled` are replaced as a whole, so that a
    reader sees one version of the file. While the file is unreadable or malformed, no new caller is accepted. Callers
    accepted before stay for OLD_RECORDS_S, by the last good records, so that a mistake in an edit ends no session; a
    token revoked meanwhile stays valid for that long. The fault is logged when it begins, changes and ends, and every
    FAULT_LOG_EVERY_S in between. The time of day decides when a token expires, and nothing else.
    """

    def __init__(
        self,
        path: Path,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises ConfigurationError if the file cannot be read or has a malformed line."""
        self._path = path
        self._now = now
        self._monotonic_s = monotonic_s
        self._table = _Table(_signature(path), _by_id(read_tokens(path)))
        self._fault: _Fault | None = None
        self._unsettled: _Unsettled | None = None

    def identify(self, token: str | None) -> Principal:
        """Raises Unauthenticated if the token is missing, unknown, revoked or expired, or the file cannot be read."""
        if self.look():
            raise Unauthenticated("the server cannot read its token file now, and accepts no new callers")
        return self._principal(token, "the token is unknown here, or revoked")

    def recall(self, token: str | None) -> Principal:
        """Does as `identify` for a caller accepted before: without a good file it uses the old records for
        OLD_RECORDS_S.
        """
        fault = self.look()
        if fault is None:
            return self._principal(token, "the token is unknown here, or revoked")
        if fault.is_over_long:
            raise Unauthenticated(f"the server could not read its token file for {OLD_RECORDS_S:g} s")
        return self._principal(token, "the server cannot read its token file now, and did not know this token before")

    def _principal(self, token: str | None, unknown: str) -> Principal:
        if token is None:
            raise Unauthenticated("this server needs a token, and the call has none")
        record = self._table.records.get(token.partition(".")[0])
        # An unknown id takes the same path as a wrong secret, so that the time of the answer does not tell them apart.
        is_equal = hmac.compare_digest(_hash(token), record.hash_hex if record else "0" * _HASH_DIGITS)
        if record is None or not is_equal:
            raise Unauthenticated(unknown)
        if record.expires is not None and record.expires <= self._now():
            raise Unauthenticated(f"the token {record.token_id} expired at {record.expires.isoformat()}")
        return Principal(record.tenant, record.token_id, record.scope)

    def check(self, token: str | None, scope: Scope) -> Principal:
        """Does as `identify`, and raises Unauthenticated if the token lacks the scope."""
        return _permitted(self.identify(token), scope)

    def check_again(self, token: str | None, scope: Scope) -> Principal:
        """Does as `recall`, and raises Unauthenticated if the token lacks the scope."""
        return _permitted(self.recall(token), scope)

    def read_again(self) -> None:
        """Reads the file now, even if it looks unchanged. If it has a fault, the log tells."""
        self._table = self._table._replace(signature=_UNREAD)
        self.look()

    def look(self) -> _Fault | None:
        """Reads the file if it has changed. Returns the file's fault, or None."""
        now_s = self._monotonic_s()
        reason, before = self._read_if_changed(now_s), self._fault
        fault = self._fault = _next_fault(before, reason, now_s, self._now()) if reason else None
        if before and not fault:
            _log.warning("the token file can be read again")
        return fault

    def _read_if_changed(self, now_s: float) -> str:
        """Returns why the file cannot be read, or an empty text."""
        try:
            signature = _signature(self._path)
            if signature != self._table.signature:
                table = _next_table(self._table, signature, _content(self._path), self._path)
                unsettled = self._unsettled = _next_unsettled(self._unsettled, self._table, table, now_s)
                if unsettled is None or now_s - unsettled.since_s >= SETTLES_S:
                    self._table = table
        except ConfigurationError as reason:
            # Not stored with the signature: a lack of permissions or descriptors may end without a change of the file.
            return str(reason)
        return self._table.malformed


def bearer(header: str | None) -> str | None:
    """Returns the token of an `authorization` header or metadata entry (RFC 6750), or None."""
    scheme, _, token = (header or "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def mint(path: Path, *, tenant: str, scope: Scope, expires: datetime | None = None) -> str:
    """Adds a token to the file, which is created if missing. Returns the token, which cannot be read back later.

    Raises ArgumentError for a tenant that is not one printable word, ConfigurationError if the file cannot be written,
    holds anything but tokens, or may be written by every user.
    """
    if tenant.split() != [tenant] or not tenant.isprintable():
        raise ArgumentError(f"a tenant is one word of printable characters without spaces, not {tenant!r}")
    token_id = secrets.token_hex(4)
    token = f"{token_id}.{secrets.token_urlsafe(32)}"
    with _rewriting(path) as new_file:
        old_text = ""
        if path.exists():
            read_tokens(path)
            old_text = path.read_text(_ENCODING)
        new_file.write(old_text if old_text.endswith("\n") or not old_text else old_text + "\n")
        new_file.write(TokenRecord(token_id, _hash(token), tenant, scope, expires).line())
    return token


def revoke(path: Path, token_id: str) -> None:
    """Removes a token. Raises ArgumentError if the file has no such id, ConfigurationError as `mint` does."""
    with _rewriting(path) as new_file:
        if token_id not in _by_id(read_tokens(path)):
            raise ArgumentError(f"{path} has no token {token_id}")
        for line in path.read_text(_ENCODING).splitlines(keepends=True):
            if line.split()[:1] != [token_id]:
                new_file.write(line)


def read_tokens(path: Path) -> tuple[TokenRecord, ...]:
    """Returns the tokens of a file.

    Raises ConfigurationError if every user may write the file, or with the number of a malformed line, never its text.
    """
    _checked_status(path)
    return _parsed(_content(path), path)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as reason:
        raise ConfigurationError(f"cannot read the token file {path}: {reason.strerror}") from None


def _parsed(content: bytes, path: Path) -> tuple[TokenRecord, ...]:
    try:
        lines = content.decode(_ENCODING).splitlines()
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


def _next_unsettled(before: _Unsettled | None, old: _Table, new: _Table, now_s: float) -> _Unsettled | None:
    """Returns since when the new version of the file may be half written, or None if it cannot be."""
    is_replaced = new.signature[_INODE] != old.signature[_INODE]
    if is_replaced or new.malformed or new.records.items() >= old.records.items():
        return None
    return before if before and before.signature == new.signature else _Unsettled(new.signature, now_s)


def _next_fault(before: _Fault | None, reason: str, now_s: float, now: datetime) -> _Fault:
    """Returns the current fault. Logs it if it has changed or was last logged FAULT_LOG_EVERY_S ago."""
    began_s = before.began_s if before else now_s
    end = before.end if before else (now + timedelta(seconds=OLD_RECORDS_S)).isoformat(timespec="seconds")
    is_over_long = now_s - began_s >= OLD_RECORDS_S
    stay = "known callers too" if is_over_long else f"open sessions end at {end}"
    text = f"new callers are refused, and {stay}: {reason}"
    if before and text == before.text and now_s - before.logged_s < FAULT_LOG_EVERY_S:
        return before
    _log.error("%s", text)
    return _Fault(began_s, end, is_over_long, text, now_s)


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
        raise ConfigurationError(f"{where}: the hash is not a SHA-256 hash in lower-case hexadecimal")
    if scope not in {one.value for one in Scope}:
        raise ConfigurationError(f"{where}: the scope is not one of {', '.join(one.value for one in Scope)}")
    return TokenRecord(token_id, hash_hex, tenant, Scope(scope), _expiry(words[4:], where))


def _expiry(words: list[str], where: str) -> datetime | None:
    if not words:
        return None
    try:
        expires = datetime.fromisoformat(words[0])
    except ValueError:
        raise ConfigurationError(f"{where}: the expiry is not an ISO 8601 date and time") from None
    if expires.tzinfo is None:
        raise ConfigurationError(f"{where}: the expiry has no time zone")
    return expires


def _by_id(records: tuple[TokenRecord, ...]) -> Mapping[str, TokenRecord]:
    return {record.token_id: record for record in records}


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def _signature(path: Path) -> tuple[int, int, int]:
    """Returns a value that differs after each write or replacement; the inode covers two writes in one clock tick."""
    status = _checked_status(path)
    return status.st_mtime_ns, status.st_size, status.st_ino


def _checked_status(path: Path) -> os.stat_result:
    """Raises ConfigurationError if everybody may write the file, because then everybody may let themselves in."""
    try:
        status = path.stat()
    except OSError as reason:
        raise ConfigurationError(f"cannot read the token file {path}: {reason.strerror}") from None
    if others_who_may_write(status) == EVERY_USER:
        raise ConfigurationError(f"every user may write the token file {path}: run chmod o-w {path}")
    return status


@contextmanager
def _rewriting(path: Path) -> Iterator[TextIO]:
    """Opens a new file that replaces the old one in one step if the body succeeds, with its owner and permissions.

    Without an old file only the owner may read the new one. Raises ConfigurationError if the new file cannot get the
    old one's owner and permissions, because the server might be unable to read it. The new file is also the lock: two
    commands that edit at once could bring a revoked token back.
    """
    path = path.resolve()  # through a symbolic link the file is replaced, and not the link
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
    """Returns None if there is no such file. Raises ConfigurationError if that cannot be found out."""
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
            f"cannot keep the owner and permissions of {path}; run this command as its owner: {reason.strerror}"
        ) from None
