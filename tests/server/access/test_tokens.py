"""Tokens: minted once, stored hashed, refused as soon as they are revoked; and who may listen to a network."""

import errno
import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fusewire_protos.address import Address
from fusewire_protos.errors import ArgumentError, ConfigurationError, Unauthenticated
from fusewire_server.access.tokens import (
    FAULT_LOG_EVERY_S,
    OLD_RECORDS_S,
    SETTLES_S,
    Authenticator,
    Principal,
    Scope,
    _hash,
    bearer,
    check_protected_mode,
    mint,
    read_tokens,
    revoke,
)
from fusewire_server.config.config import Listen

NOW = datetime(2030, 1, 1, tzinfo=UTC)
HASH = "0123456789abcdef" * 4
OUTSIDE = Address("0.0.0.0", 7423)  # noqa: S104
CERT, KEY = Path("cert.pem"), Path("key.pem")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


def test_a_minted_token_names_its_tenant_and_scope(path: Path) -> None:
    token = mint(path, tenant="lab", scope=Scope.USE)
    assert Authenticator(path).identify(token) == Principal("lab", token.partition(".")[0], Scope.USE)


def test_the_file_holds_no_token_and_is_its_owners_only(path: Path) -> None:
    token = mint(path, tenant="lab", scope=Scope.USE)
    assert token.partition(".")[2] not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_no_two_tokens_are_alike(path: Path) -> None:
    tokens = {mint(path, tenant="lab", scope=Scope.USE) for _ in range(8)}
    assert len(tokens) == len(read_tokens(path)) == 8


def test_a_mint_keeps_comments_and_ends_an_unended_line(path: Path) -> None:
    path.write_text(f"# ours\n\nold {HASH} lab use")
    mint(path, tenant="lab", scope=Scope.ADMIN)
    assert path.read_text().startswith(f"# ours\n\nold {HASH} lab use\n")
    assert [record.scope for record in read_tokens(path)] == [Scope.USE, Scope.ADMIN]


def test_a_byte_order_mark_at_the_start_of_the_file_is_no_part_of_a_token(path: Path) -> None:
    token = mint(path, tenant="lab", scope=Scope.USE)
    path.write_text(path.read_text(), encoding="utf-8-sig")
    assert Authenticator(path).identify(token).tenant == "lab"
    mint(path, tenant="other", scope=Scope.USE)
    assert [record.tenant for record in read_tokens(path)] == ["lab", "other"]
    path.write_text(path.read_text(), encoding="utf-8-sig")
    revoke(path, token.partition(".")[0])
    assert [record.tenant for record in read_tokens(path)] == ["other"]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff\xfe", "cannot read the token file"), (b"[limits]\n", "tokens, line 1: expected id")],
)
def test_a_file_that_holds_no_tokens_gets_none(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=message):
        mint(path, tenant="lab", scope=Scope.USE)
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("folder", [".", "/", "folder"])
def test_a_folder_is_no_token_file(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    with pytest.raises(ConfigurationError, match="is a folder"):
        mint(Path(folder), tenant="lab", scope=Scope.USE)
    with pytest.raises(ConfigurationError, match="is a folder"):
        revoke(Path(folder), "id")


def test_a_file_that_may_not_be_looked_at_is_a_clear_refusal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(ConfigurationError, match=r"cannot read .*tokens: Permission denied"):
        mint(path, tenant="lab", scope=Scope.USE)
    with pytest.raises(ConfigurationError, match=r"cannot read .*tokens: Permission denied"):
        revoke(path, "id")


def test_too_long_a_name_is_a_clear_refusal(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="File name too long"):
        mint(tmp_path / ("x" * 300), tenant="lab", scope=Scope.USE)


@pytest.mark.parametrize("mode", [0o400, 0o640, 0o604])
def test_an_edited_file_keeps_its_permissions(path: Path, mode: int) -> None:
    token = mint(path, tenant="lab", scope=Scope.USE)
    path.chmod(mode)
    mint(path, tenant="lab", scope=Scope.USE)
    assert path.stat().st_mode & 0o777 == mode
    revoke(path, token.partition(".")[0])
    assert path.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("edit", ["mint", "revoke"])
def test_an_edit_through_a_symbolic_link_edits_the_file_behind_it(path: Path, edit: str) -> None:
    token = mint(path, tenant="lab", scope=Scope.USE)
    link = path.with_name("link")
    link.symlink_to(path)
    if edit == "mint":
        mint(link, tenant="other", scope=Scope.USE)
    else:
        revoke(link, token.partition(".")[0])
    assert link.is_symlink()
    assert read_tokens(path) == read_tokens(link)
    assert len(read_tokens(path)) == (2 if edit == "mint" else 0)


def test_a_file_that_every_user_may_write_lets_nobody_in(path: Path) -> None:
    token = mint(path, tenant="lab", scope=Scope.USE)
    authenticator = Authenticator(path)
    path.chmod(0o602)
    with pytest.raises(Unauthenticated):
        authenticator.identify(token)
    with pytest.raises(ConfigurationError, match="chmod o-w"):
        Authenticator(path)


def test_a_file_that_every_user_may_write_is_neither_read_nor_edited(path: Path) -> None:
    token = mint(path, tenant="lab", scope=Scope.USE)
    path.chmod(0o602)
    before = path.read_text()
    for use in (
        lambda: read_tokens(path),
        lambda: mint(path, tenant="lab", scope=Scope.USE),
        lambda: revoke(path, token.partition(".")[0]),
    ):
        with pytest.raises(ConfigurationError, match=r"every user may write .*: run chmod o-w"):
            use()
    assert path.read_text() == before
    assert list(path.parent.iterdir()) == [path]


def test_an_edited_file_keeps_its_owner(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = mint(path, tenant="lab", scope=Scope.USE)
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "fchown", lambda _descriptor, user, group: given.append((user, group)))
    revoke(path, token.partition(".")[0])
    assert given == [(path.stat().st_uid, path.stat().st_gid)]


def test_who_cannot_keep_the_owner_of_a_file_edits_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    token = mint(path, tenant="lab", scope=Scope.USE)
    before = path.read_text()
    monkeypatch.setattr(os, "fchown", refuse)
    with pytest.raises(ConfigurationError, match=r"cannot keep the owner .*tokens; run this command as its owner"):
        revoke(path, token.partition(".")[0])
    assert path.read_text() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_cannot_be_written_is_a_clear_refusal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(ConfigurationError, match=r"cannot write .*tokens: No space left"):
        mint(path, tenant="lab", scope=Scope.USE)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("tenant", ["", "two words", "a\nb", " lab", "\udcff", "lab\x1b[2J", "\0"])
def test_a_tenant_is_one_printable_word(path: Path, tenant: str) -> None:
    with pytest.raises(ArgumentError, match="one word"):
        mint(path, tenant=tenant, scope=Scope.USE)
    assert not path.exists()


def test_a_revoked_token_fails_at_its_next_call(path: Path) -> None:
    token, other = (mint(path, tenant="lab", scope=Scope.USE) for _ in range(2))
    authenticator = Authenticator(path)
    authenticator.identify(token)
    revoke(path, token.partition(".")[0])
    with pytest.raises(Unauthenticated, match="unknown here, or revoked"):
        authenticator.identify(token)
    authenticator.identify(other)


def test_a_token_minted_later_is_accepted(path: Path) -> None:
    mint(path, tenant="lab", scope=Scope.USE)
    authenticator = Authenticator(path)
    assert authenticator.identify(mint(path, tenant="guest", scope=Scope.USE)).tenant == "guest"


def test_revoking_an_unknown_id_changes_nothing(path: Path) -> None:
    mint(path, tenant="lab", scope=Scope.USE)
    before = path.read_text()
    with pytest.raises(ArgumentError, match="no token nobody"):
        revoke(path, "nobody")
    assert path.read_text() == before
    assert list(path.parent.iterdir()) == [path]


def test_two_commands_do_not_edit_one_file_together(path: Path) -> None:
    token = mint(path, tenant="lab", scope=Scope.USE)
    path.with_name("tokens.new").touch()
    with pytest.raises(ConfigurationError, match=r"tokens\.new exists: another command"):
        revoke(path, token.partition(".")[0])
    assert path.with_name("tokens.new").exists()


def test_a_folder_that_is_missing_is_a_clear_refusal(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot write"):
        mint(tmp_path / "absent" / "tokens", tenant="lab", scope=Scope.USE)


@pytest.mark.parametrize("token", [None, "", ".", "x", "x.y", "\0", "é.ü", "\ud800"])
def test_anything_but_a_token_is_refused(path: Path, token: str | None) -> None:
    mint(path, tenant="lab", scope=Scope.USE)
    with pytest.raises(Unauthenticated):
        Authenticator(path).identify(token)


def test_a_right_id_with_a_wrong_secret_is_refused(path: Path) -> None:
    token = mint(path, tenant="lab", scope=Scope.USE)
    with pytest.raises(Unauthenticated):
        Authenticator(path).identify(token[:-1])


def test_an_expired_token_is_refused_from_that_instant_on(path: Path) -> None:
    token = mint(path, tenant="lab", scope=Scope.USE, expires=NOW)
    Authenticator(path, lambda: NOW - timedelta(microseconds=1)).identify(token)
    with pytest.raises(Unauthenticated, match="expired at 2030-01-01"):
        Authenticator(path, lambda: NOW).identify(token)


@pytest.mark.parametrize(
    ("held", "granted"),
    [
        (Scope.USE, {Scope.USE}),
        (Scope.INSPECT, {Scope.INSPECT}),
        (Scope.ADMIN, {Scope.USE, Scope.INSPECT, Scope.ADMIN}),
    ],
)
def test_a_scope_grants_itself_and_admin_grants_all(held: Scope, granted: set[Scope]) -> None:
    assert {scope for scope in Scope if Principal("lab", "id", held).may(scope)} == granted


def test_a_token_of_another_scope_is_refused_by_name(path: Path) -> None:
    token = mint(path, tenant="lab", scope=Scope.USE)
    with pytest.raises(Unauthenticated, match="has the scope use; this needs admin"):
        Authenticator(path).check(token, Scope.ADMIN)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("id", "expected id, hash, tenant, scope"),
        (f"id {HASH} lab use 2030-01-01T00:00:00Z more", "expected id, hash, tenant, scope"),
        ("id abc lab use", "not a SHA-256"),
        (f"id {HASH.upper()} lab use", "not a SHA-256"),
        (f"id {HASH} lab root", "scope is not one of use, inspect, admin"),
        (f"id {HASH} lab use tomorrow", "not an ISO 8601"),
        (f"id {HASH} lab use 2030-01-01T00:00:00", "no time zone"),
    ],
)
def test_a_malformed_line_is_refused_by_number_without_its_text(path: Path, line: str, message: str) -> None:
    path.write_text(f"# tokens\n{line}\n")
    with pytest.raises(ConfigurationError, match=rf"tokens, line 2: .*{message}") as refused:
        Authenticator(path)
    assert HASH not in str(refused.value)


def test_a_file_that_is_missing_or_no_text_is_refused(path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot read"):
        Authenticator(path)
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match="cannot read"):
        Authenticator(path)


def break_file(path: Path, harm: str) -> None:
    path.unlink() if harm == "delete" else path.write_text("garbled")


@pytest.mark.parametrize("harm", ["delete", "garble"])
def test_a_file_that_breaks_later_lets_nobody_new_in(path: Path, harm: str) -> None:
    token = mint(path, tenant="lab", scope=Scope.USE)
    authenticator = Authenticator(path)
    break_file(path, harm)
    with pytest.raises(Unauthenticated, match="cannot read its token file"):
        authenticator.identify(token)
    with pytest.raises(Unauthenticated, match="cannot read its token file"):
        authenticator.check(token, Scope.USE)


@pytest.mark.parametrize("harm", ["delete", "garble"])
def test_whoever_was_let_in_stays_while_the_file_is_broken(path: Path, harm: str) -> None:
    token = mint(path, tenant="lab", scope=Scope.USE)
    authenticator = Authenticator(path)
    break_file(path, harm)
    assert authenticator.check_again(token, Scope.USE).tenant == "lab"
    with pytest.raises(Unauthenticated):
        authenticator.check_again(token + "x", Scope.USE)


class Clock:
    """A time of day and a monotonic time, which a test sets."""

    def __init__(self) -> None:
        self.now = NOW
        self.monotonic_s = 0.0

    def __call__(self) -> datetime:
        return self.now

    def pass_s(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.monotonic_s += seconds

    def authenticator(self, path: Path) -> Authenticator:
        return Authenticator(path, self, lambda: self.monotonic_s)


@pytest.mark.parametrize("harm", ["delete", "garble"])
def test_nobody_stays_for_long_while_the_file_is_broken(path: Path, harm: str) -> None:
    token, clock = mint(path, tenant="lab", scope=Scope.USE), Clock()
    authenticator = clock.authenticator(path)
    clock.pass_s(2 * OLD_RECORDS_S)
    break_file(path, harm)
    authenticator.recall(token)
    clock.pass_s(OLD_RECORDS_S - 1)
    authenticator.recall(token)
    clock.pass_s(1)
    with pytest.raises(Unauthenticated, match="could not read its token file for 300 s"):
        authenticator.recall(token)


@pytest.mark.parametrize("days", [-1, 1])
def test_a_wall_clock_that_jumps_ends_nobodys_stay_and_prolongs_none(path: Path, days: int) -> None:
    token, clock = mint(path, tenant="lab", scope=Scope.USE), Clock()
    authenticator = clock.authenticator(path)
    break_file(path, "garble")
    authenticator.recall(token)
    clock.now += timedelta(days=days)
    clock.pass_s(OLD_RECORDS_S - 1)
    authenticator.recall(token)
    clock.pass_s(1)
    with pytest.raises(Unauthenticated, match="could not read its token file for 300 s"):
        authenticator.recall(token)


@pytest.mark.parametrize("half", ["", "# a comment\n"])
def test_a_file_that_is_half_written_revokes_nothing(path: Path, half: str) -> None:
    token, clock = mint(path, tenant="lab", scope=Scope.USE), Clock()
    authenticator, whole = clock.authenticator(path), path.read_text()
    for _ in range(3):
        path.write_text(half)
        authenticator.identify(token)
        clock.pass_s(SETTLES_S / 2)
        authenticator.identify(token)
        path.write_text(whole)
        clock.pass_s(SETTLES_S)
        authenticator.identify(token)


def test_what_a_file_lacks_that_was_written_in_place_is_revoked_once_it_has_settled(path: Path) -> None:
    token, other, clock = *(mint(path, tenant="lab", scope=Scope.USE) for _ in range(2)), Clock()
    authenticator = clock.authenticator(path)
    path.write_text(path.read_text().splitlines()[1] + "\n")
    authenticator.look()
    clock.pass_s(SETTLES_S)
    with pytest.raises(Unauthenticated, match="unknown here, or revoked"):
        authenticator.recall(token)
    authenticator.recall(other)


def test_one_fault_after_another_prolongs_nobodys_stay(path: Path) -> None:
    token, clock = mint(path, tenant="lab", scope=Scope.USE), Clock()
    authenticator = clock.authenticator(path)
    for text in ("garbled", "# a comment\ngarbled"):
        path.write_text(text)
        authenticator.recall(token)
        clock.pass_s(OLD_RECORDS_S / 2)
    path.unlink()
    with pytest.raises(Unauthenticated, match="could not read its token file"):
        authenticator.recall(token)


def test_a_mended_file_counts_at_once_and_a_later_fault_has_its_own_time(path: Path) -> None:
    token, clock = mint(path, tenant="lab", scope=Scope.USE), Clock()
    authenticator, whole = clock.authenticator(path), path.read_text()
    for _ in range(2):
        path.write_text("garbled")
        authenticator.recall(token)
        clock.pass_s(OLD_RECORDS_S)
        path.write_text(whole)
        authenticator.identify(token)


def test_a_token_that_a_broken_file_hides_is_not_called_revoked(path: Path) -> None:
    mint(path, tenant="lab", scope=Scope.USE)
    authenticator = Authenticator(path)
    token = mint(path, tenant="lab", scope=Scope.USE)
    path.write_text(f"{path.read_text()}garbled")
    with pytest.raises(Unauthenticated, match="cannot read its token file now") as refused:
        authenticator.recall(token)
    assert "revoked" not in str(refused.value)


def test_a_malformed_file_is_read_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = mint(path, tenant="lab", scope=Scope.USE)
    authenticator = Authenticator(path)
    path.write_text("garbled")
    reads: list[Path] = []
    read = Path.open

    def counted(path: Path, *how: Any, **more: Any) -> Any:
        reads.append(path)
        return read(path, *how, **more)

    monkeypatch.setattr(Path, "open", counted)
    for _ in range(3):
        authenticator.recall(token)
    assert reads == [path]


def test_a_file_that_could_not_be_opened_is_tried_again_though_it_has_not_changed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> bytes:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    path.touch()
    authenticator = Authenticator(path)
    token = mint(path, tenant="lab", scope=Scope.USE)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refuse)
        with pytest.raises(Unauthenticated, match="cannot read its token file"):
            authenticator.identify(token)
    authenticator.identify(token)


def test_a_token_that_a_mended_file_lacks_is_good_no_longer(path: Path) -> None:
    token, other = (mint(path, tenant="lab", scope=Scope.USE) for _ in range(2))
    authenticator = Authenticator(path)
    whole = path.read_text()
    break_file(path, "garble")
    authenticator.recall(token)
    path.write_text(whole)
    revoke(path, token.partition(".")[0])
    with pytest.raises(Unauthenticated, match="unknown here, or revoked"):
        authenticator.recall(token)
    authenticator.identify(other)


def test_a_broken_file_is_told_of_once_a_change(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    token = mint(path, tenant="lab", scope=Scope.USE)
    authenticator, whole = Authenticator(path), path.read_text()
    for text in ("garbled", whole, f"{whole}garbled"):
        path.write_text(text)
        for _ in range(3):
            authenticator.recall(token)
    logged = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in logged] == ["ERROR", "WARNING", "ERROR"]
    assert ["line 1" in logged[0][1], "line 2" in logged[2][1]] == [True, True]


def test_a_lasting_fault_is_told_of_again_at_a_bounded_rate(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    token, clock = mint(path, tenant="lab", scope=Scope.USE), Clock()
    authenticator = clock.authenticator(path)
    path.write_text("garbled")
    for _ in range(int(OLD_RECORDS_S)):
        authenticator.recall(token)
        clock.pass_s(1)
    logged = [record.getMessage() for record in caplog.records]
    assert len(logged) == OLD_RECORDS_S / FAULT_LOG_EVERY_S
    assert all("open sessions end at 2030-01-01T00:05:00+00:00: " in text for text in logged)


def test_it_is_told_when_nobody_stays_longer(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    token, clock = mint(path, tenant="lab", scope=Scope.USE), Clock()
    authenticator = clock.authenticator(path)
    path.write_text("garbled")
    authenticator.recall(token)
    clock.pass_s(OLD_RECORDS_S)
    for _ in range(3):
        with pytest.raises(Unauthenticated):
            authenticator.recall(token)
    assert ["known callers too" in record.getMessage() for record in caplog.records] == [False, True]


def test_an_edit_within_one_clock_tick_is_noticed(path: Path) -> None:
    token = mint(path, tenant="lab", scope=Scope.USE)
    authenticator = Authenticator(path)
    status = path.stat()
    revoke(path, token.partition(".")[0])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(Unauthenticated):
        authenticator.identify(token)


def test_told_to_read_again_a_file_that_looks_unchanged_is_read(path: Path) -> None:
    old = mint(path, tenant="lab", scope=Scope.USE)
    new, status = old + "new", path.stat()
    authenticator = Authenticator(path)
    path.write_text(path.read_text().replace(_hash(old), _hash(new)))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    authenticator.identify(old)
    authenticator.read_again()
    authenticator.identify(new)
    with pytest.raises(Unauthenticated):
        authenticator.identify(old)


def test_told_to_read_a_broken_file_again_the_fault_is_told_at_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token = mint(path, tenant="lab", scope=Scope.USE)
    authenticator = Authenticator(path)
    path.write_text("garbled")
    authenticator.read_again()
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    authenticator.recall(token)


def test_neither_logs_errors_nor_repr_show_a_token_or_its_hash(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token = mint(path, tenant="lab", scope=Scope.USE)
    (record,) = read_tokens(path)
    authenticator = Authenticator(path)
    with pytest.raises(Unauthenticated) as wrong_scope:
        authenticator.check(token, Scope.ADMIN)
    with pytest.raises(Unauthenticated) as wrong_secret:
        authenticator.check(token + "x", Scope.USE)
    logged = f"{record} {authenticator} {wrong_scope.value} {wrong_secret.value} {caplog.text}"
    assert token.partition(".")[2] not in logged
    assert record.hash_hex not in logged


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Basic abc", None),
        ("Bearer", None),
        ("Bearer ", None),
        ("", None),
        (None, None),
    ],
)
def test_a_bearer_header_carries_the_token(header: str | None, token: str | None) -> None:
    assert bearer(header) == token


@pytest.mark.parametrize(
    "listen",
    [
        Listen(),
        Listen(grpc=OUTSIDE, token_file=Path("tokens"), tls_cert=CERT, tls_key=KEY),
        Listen(grpc=OUTSIDE, http=OUTSIDE._replace(port=7424), insecure_allow_remote=True),
    ],
)
def test_a_guarded_or_local_server_may_listen(listen: Listen) -> None:
    check_protected_mode(listen)


@pytest.mark.parametrize(
    ("listen", "flags"),
    [
        (Listen(grpc=OUTSIDE), ["--tls-cert and --tls-key", "--token-file"]),
        (Listen(http=OUTSIDE), ["--tls-cert and --tls-key", "--token-file"]),
        (Listen(grpc=OUTSIDE, token_file=Path("tokens")), ["--tls-cert and --tls-key"]),
        (Listen(grpc=OUTSIDE, tls_cert=CERT, tls_key=KEY), ["--token-file"]),
    ],
)
def test_an_unguarded_server_may_not_listen_and_is_told_the_flags(listen: Listen, flags: list[str]) -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_protected_mode(listen)
    assert f"give {' and '.join(flags)}, listen" in str(refused.value)
    assert "--insecure-allow-remote" in str(refused.value)
