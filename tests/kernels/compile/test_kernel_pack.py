"""Packs: what they find, what replaces them, and what is left of a damaged one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fusewire_kernels.compile import kernel_pack
from fusewire_kernels.compile.binary_cache import check_writers
from fusewire_kernels.compile.cache_eviction import tidy
from fusewire_kernels.compile.kernel_pack import KernelPack, find_pack, pack_roots, write_pack
from fusewire_kernels.plan.plan import KernelSource
from fusewire_protos.errors import ConfigurationError

ADD, EXP, SUM = (KernelSource(f"fw_{name}", f"text of {name}") for name in ("add", "exp", "sum"))
TARGET = "x86-64-v3"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A compiled file with several kernels."""
    path = tmp_path / "compiled.so"
    path.write_bytes(b"machine code")
    return path


def _pack(root: Path, *compiled: tuple[KernelSource, Path]) -> KernelPack:
    write_pack(root, "c", TARGET, {source: str(path) for source, path in compiled})
    pack = find_pack("c", TARGET, [root])
    assert pack is not None
    return pack


def test_kernels_of_one_file_are_found_there(tmp_path: Path, library: Path) -> None:
    found = _pack(tmp_path, (ADD, library), (EXP, library)).find([EXP, ADD])
    assert found is not None
    assert len({*found}) == 1
    assert Path(found[0]).read_bytes() == b"machine code"


def test_all_kernels_of_a_plan_are_found_or_none(tmp_path: Path, library: Path) -> None:
    assert _pack(tmp_path, (ADD, library)).find([ADD, EXP]) is None


def test_a_kernel_whose_text_has_changed_is_not_found(tmp_path: Path, library: Path) -> None:
    assert _pack(tmp_path, (ADD, library)).find([ADD._replace(text="another text")]) is None


def test_kernels_after_another_prelude_are_not_found(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _pack(tmp_path, (ADD, library))
    monkeypatch.setattr(kernel_pack, "prelude", lambda dialect: "another prelude")
    pack = find_pack("c", TARGET, [tmp_path])
    assert pack is not None
    assert pack.find([ADD]) is None


def test_a_level_has_a_pack_of_its_own(tmp_path: Path, library: Path) -> None:
    _pack(tmp_path, (ADD, library))
    assert find_pack("c", "armv8-a", [tmp_path]) is None


def test_a_damaged_file_counts_as_missing(tmp_path: Path, library: Path) -> None:
    other = tmp_path / "other.so"
    other.write_bytes(b"other machine code")
    found = _pack(tmp_path, (ADD, library), (EXP, other)).find([ADD])
    assert found is not None
    Path(found[0]).write_bytes(b"machine")
    pack = find_pack("c", TARGET, [tmp_path])
    assert pack is not None
    assert pack.find([ADD]) is None
    assert pack.find([EXP]) is not None


@pytest.mark.parametrize("index", ["", "[]", "null", '{"a": 1}'])
def test_a_pack_without_a_legible_index_counts_as_absent(tmp_path: Path, library: Path, index: str) -> None:
    _pack(tmp_path, (ADD, library))
    (tmp_path / f"c-{TARGET}" / "index.json").write_text(index)
    assert find_pack("c", TARGET, [tmp_path]) is None


def test_a_new_pack_replaces_the_old_one(tmp_path: Path, library: Path) -> None:
    _pack(tmp_path, (ADD, library))
    library.write_bytes(b"other machine code")
    pack = _pack(tmp_path, (EXP, library))
    assert pack.find([ADD]) is None
    assert pack.find([EXP]) is not None
    assert len([*(tmp_path / f"c-{TARGET}").iterdir()]) == 2


def test_packs_of_several_folders_count_as_one(tmp_path: Path, library: Path) -> None:
    roots = [tmp_path / "package", tmp_path / "cache"]
    _pack(roots[0], (ADD, library))
    _pack(roots[1], (EXP, library))
    pack = find_pack("c", TARGET, roots)
    assert pack is not None
    assert pack.find([ADD, EXP]) is not None
    assert pack.find([SUM]) is None


def test_the_folder_of_the_package_and_that_of_the_cache_are_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSEWIRE_CACHE_DIR", str(tmp_path))
    assert pack_roots() == (kernel_pack.PACKAGE_FOLDER, tmp_path / "packs")


def test_a_pack_is_made_that_others_may_not_write_whatever_the_umask(tmp_path: Path, library: Path) -> None:
    before = os.umask(0)
    try:
        folder = write_pack(tmp_path / "cache" / "packs", "c", TARGET, {ADD: str(library)})
    finally:
        os.umask(before)
    for each in (folder, *folder.parents[:2]):
        check_writers(each)


@pytest.mark.parametrize("writable", ["packs", f"packs/c-{TARGET}"])
def test_a_pack_that_others_may_write_is_refused(tmp_path: Path, library: Path, writable: str) -> None:
    packs = tmp_path / "packs"
    write_pack(packs, "c", TARGET, {ADD: str(library)})
    (tmp_path / writable).chmod(0o777)
    with pytest.raises(ConfigurationError, match="chmod go-w"):
        find_pack("c", TARGET, [packs])


def test_tidying_the_cache_leaves_packs(tmp_path: Path, library: Path) -> None:
    _pack(tmp_path / "packs", (ADD, library))
    tidy(tmp_path, 0, 1e12)
    pack = find_pack("c", TARGET, [tmp_path / "packs"])
    assert pack is not None
    assert pack.find([ADD]) is not None
