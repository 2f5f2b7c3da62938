"""Tokens: minted once, stored hashed, refused as soon as they are revoked; and who may listen to a network."""

import errno
import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fusewire_protos.address import Address
from fusewire_protos.errors import ArgumentError, ConfigurationError, Unauthenticated
from fusewire_server.access.tokens import (
    Authenticator,
    Principal,
    Scope,
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
