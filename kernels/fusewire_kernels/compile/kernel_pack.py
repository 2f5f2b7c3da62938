"""Finds kernels in packs: folders of compiled files that were made before the first client needed them.

A pack holds the kernels of all single ops for one level of processors, or one architecture of devices, many in each
file. Its index maps the digest of everything that a kernel's machine code depends on to the name of a file; unlike the
digests of the cache, it does not depend on the compiler's version. So a kernel whose text has changed is not found.

Packs lie in the package, where a wheel or an image has brought them, and in the folder `packs` of the cache. Nothing
there is ever removed to make room.
"""

from __future__ import annotations

import json
import logging
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fusewire_kernels.codegen.preludes import prelude
from fusewire_kernels.compile.binary_cache import (
    check_writers,
    content_name,
    default_cache_folder,
    is_whole,
    kernel_digest,
)
from fusewire_kernels.compile.c_compiler import flags_for
from fusewire_kernels.compile.cuda_compiler import options_for
from fusewire_kernels.compile.processor import level_of
from fusewire_kernels.plan.plan import KernelSource

PACKAGE_FOLDER = Path(__file__).parent.parent / "packs"
RUNTIME_KEY = "fw_run"  # of what runs the launches of a plan of C kernels; a pack holds it as if it were a kernel
_INDEX = "index.json"
_PART_PREFIX = "part-"  # of files that some process is writing

log = logging.getLogger("fusewire.packs")


class KernelPack:
    """The kernels of one level or architecture. `files` maps the digest of each kernel to its file."""

    def __init__(self, identity: str, files: Mapping[str, Path]) -> None:
        self._identity = identity
        self._files = files

    def find(self, sources: Iterable[KernelSource]) -> tuple[str, ...] | None:
        """Returns the file that holds each kernel, or None if the pack lacks some kernel."""
        files = [self._files.get(kernel_digest(source.text, self._identity)) for source in sources]
        found = tuple([str(file) for file in files if file is not None])
        return found if len(found) == len(files) else None


def pack_roots() -> tuple[Path, ...]:
    """Returns the folders that may hold packs: that of the package, then that of the cache.

    Raises ConfigurationError if others may write the cache.
    """
    check_writers(default_cache_folder())
    return PACKAGE_FOLDER, default_cache_folder() / "packs"


def find_pack(dialect: str, target: str, roots: Sequence[Path] | None = None) -> KernelPack | None:
    """Returns the pack for a level of processors or an architecture, or None if there is none.

    Packs below several `roots` count as one, and one that cannot be read as none. Without `roots` it looks below
    `pack_roots()`. All files are checked now, because a row that needs a kernel first would have to wait. Raises
    ConfigurationError if others may write a pack that is not the package's own.
    """
    files: dict[str, Path] = {}
    for root in reversed(pack_roots() if roots is None else roots):
        folder = _folder(root, dialect, target)
        if root != PACKAGE_FOLDER:
            check_writers(root)
            check_writers(folder)
        try:
            index = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
            whole = {name for name in {*index.values()} if _is_whole(folder / name)}
            files |= {digest: folder / name for digest, name in index.items() if name in whole}
        except FileNotFoundError:
            continue
        except (OSError, ValueError, AttributeError, TypeError) as error:
            log.warning("the pack %s cannot be used: %s", folder, error)
    return KernelPack(_identity(dialect, target), files) if files else None


def _is_whole(file: Path) -> bool:
    if is_whole(file):
        return True
    log.warning("%s is damaged or missing; `fusewire warm` makes it anew", file)
    return False


def find_c_pack() -> KernelPack | None:
    """Returns the pack of C kernels for this machine's processor, or None if there is none that it can run."""
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return None
    level = level_of(platform.machine(), cpuinfo)
    return None if level is None else find_pack("c", level)


def write_pack(root: Path, dialect: str, target: str, compiled: Mapping[KernelSource, str]) -> Path:
    """Writes a pack of compiled kernels, each given with the path of its file. Returns the pack's folder.

    An older pack of that name is replaced. A process that reads the older one at the same time finds it or this one.
    """
    folder, identity = _folder(root, dialect, target), _identity(dialect, target)
    _make(folder)
    names = {path: _put(folder, Path(path)) for path in dict.fromkeys(compiled.values())}
    files = {kernel_digest(source.text, identity): names[path] for source, path in compiled.items()}
    _replace(folder / _INDEX, json.dumps(files).encode())
    for path in folder.iterdir():
        if path.name not in {_INDEX, *names.values()} and not path.name.startswith(_PART_PREFIX):
            path.unlink(missing_ok=True)
    return folder


def _make(folder: Path) -> None:
    """Makes a folder and those above it, where only this user may write, whatever the process's umask is."""
    for each in (*reversed(folder.parents), folder):
        if not each.exists():
            each.mkdir(mode=0o755, exist_ok=True)
            each.chmod(0o755)


def _folder(root: Path, dialect: str, target: str) -> Path:
    """Returns a pack's folder."""
    return root / f"{dialect}-{target}"


def _put(folder: Path, compiled: Path) -> str:
    content = compiled.read_bytes()
    name = content_name(content, compiled.suffix)
    _replace(folder / name, content)
    return name


def _replace(path: Path, content: bytes) -> None:
    part = path.with_name(f"{_PART_PREFIX}{os.getpid()}-{path.name}")
    part.write_bytes(content)
    part.replace(path)


def _identity(dialect: str, target: str) -> str:
    options = options_for(target) if dialect == "cuda" else flags_for(target)
    return "\n".join((*options, prelude(dialect)))
