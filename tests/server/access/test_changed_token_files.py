"""A token file that breaks or changes while a server runs: who is let in meanwhile, and what is logged."""

import errno
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fusewire_protos.errors import Unauthenticated
from fusewire_server.access.tokens import (
    FAULT_LOG_EVERY_S,
    OLD_RECORDS_S,
    SETTLES_S,
    Authenticator,
    Scope,
    _hash,
    mint,
    revoke,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


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
