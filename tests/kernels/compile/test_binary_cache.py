"""Compiled files on disk: bounded, and refused in words where they cannot be kept."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from fusewire_kernels.compile.binary_cache import BinaryCache, check_writers, most_cached_bytes
from fusewire_kernels.compile.cache_eviction import WORKER_PREFIX
from fusewire_kernels.plan.plan import KernelSource
from fusewire_protos.errors import ConfigurationError

LONG_AGO_S = 1_000_000.0


def _publish(cache: BinaryCache, number: int) -> Path:
    """The file of a kernel that was last used long ago."""
    source = _source(number)
    cache.publish(cache.part(".so", f"code {number}".encode()), [cache.entry(source.text)])
    (path,) = cache.paths([source])
    os.utime(path, (LONG_AGO_S + number, LONG_AGO_S + number))
    (cache.folder / "tidied").unlink(missing_ok=True)
    return Path(path)


def _source(number: int) -> KernelSource:
    return KernelSource(f"fw_{number}", f"text {number}")


def test_publishing_removes_the_files_used_longest_ago_beyond_the_bound(tmp_path: Path) -> None:
    cache = BinaryCache(tmp_path, "a compiler", ".so", most_bytes=len("code 0") * 3)
    files = [_publish(cache, number) for number in range(3)]
    assert cache.missing([_source(0)]) == {}  # which uses it
    newest = _publish(cache, 3)
    assert [path.exists() for path in (*files, newest)] == [True, False, True, True]
    assert list(cache.missing([_source(number) for number in range(4)]).values()) == [_source(1)]


@pytest.mark.parametrize("left_bytes", [0, 3])
def test_a_file_that_was_cut_short_is_missing_in_the_next_process(tmp_path: Path, left_bytes: int) -> None:
    file = _publish(BinaryCache(tmp_path, "a compiler", ".so"), 0)
    os.truncate(file, left_bytes)
    cache = BinaryCache(tmp_path, "a compiler", ".so")
    assert list(cache.missing([_source(0)]).values()) == [_source(0)]
    assert _publish(cache, 0).read_bytes() == b"code 0"
    assert cache.missing([_source(0)]) == {}


def test_a_cache_that_is_removed_with_the_temporary_folder_of_its_process_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = BinaryCache(tmp_path / "cache", "a compiler", ".so")
    monkeypatch.setattr("tempfile.tempdir", str(cache.folder / f"{WORKER_PREFIX}1"))
    _publish(cache, 0)
    shutil.rmtree(cache.folder)
    assert _publish(cache, 1).read_bytes() == b"code 1"


@pytest.mark.parametrize("folder", ["/proc/nowhere", "/dev/null/cache"])
def test_a_folder_that_cannot_be_used_is_named_with_its_variable(folder: str) -> None:
    cache = BinaryCache(Path(folder), "a compiler", ".so")
    with pytest.raises(ConfigurationError, match=rf"{folder}.*FUSEWIRE_CACHE_DIR"):
        cache.part(".so")


@pytest.mark.parametrize(("mode", "others"), [(0o777, "every user"), (0o1777, "every user"), (0o770, "its group")])
def test_a_folder_that_others_may_write_is_refused_with_the_remedy_until_it_is_mended(
    mode: int, others: str, tmp_path: Path
) -> None:
    cache = BinaryCache(tmp_path, "a compiler", ".so")
    _publish(cache, 0)
    tmp_path.chmod(mode)
    for use in (lambda: cache.missing([_source(0)]), lambda: cache.paths([_source(0)]), lambda: cache.part(".so")):
        with pytest.raises(
            ConfigurationError, match=rf"{others} may write {tmp_path}.*chmod go-w .*FUSEWIRE_CACHE_DIR"
        ):
            use()
    tmp_path.chmod(0o755)
    assert cache.missing([_source(0)]) == {}


def test_a_folder_of_another_user_is_refused_but_not_one_of_the_superuser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    owner = folder.stat().st_uid
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    if owner == 0:
        check_writers(folder)
        os.chown(folder, 4321, -1)
    with pytest.raises(ConfigurationError, match=rf"another user owns {folder}.*FUSEWIRE_CACHE_DIR"):
        check_writers(folder)


def test_a_folder_that_is_not_there_yet_has_no_writers(tmp_path: Path) -> None:
    check_writers(tmp_path / "nowhere")


def test_the_environment_says_how_much_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUSEWIRE_CACHE_BYTES", raising=False)
    assert most_cached_bytes() == 1 << 30
    monkeypatch.setenv("FUSEWIRE_CACHE_BYTES", "4096")
    assert most_cached_bytes() == 4096


@pytest.mark.parametrize("text", ["much", "-1", "1.5"])
def test_a_bound_that_is_no_number_of_bytes_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEWIRE_CACHE_BYTES", text)
    with pytest.raises(ConfigurationError, match="FUSEWIRE_CACHE_BYTES"):
        most_cached_bytes()
