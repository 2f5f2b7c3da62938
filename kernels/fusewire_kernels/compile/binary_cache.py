"""Keeps compiled kernels on disk, for every compiler and for several processes at once.

A compiled file holds kernels that were compiled together. Each kernel has an entry, which is a link to the compiled
file. The entry's name is the digest of everything that the kernel's machine code depends on. Files and links are
written under a temporary name and then renamed, so a reader never sees an unfinished file.

The name of a compiled file contains the digest of the file's content. Before a process first uses a file, the process
checks the digest. So the cache recognises and removes a file that a power failure cut short. The kernels of a removed
file are compiled again.

Whoever may write the folder chooses the code that the server runs. So a folder that others may write is not used.

There are two settings, which are environment variables:

- FUSEWIRE_CACHE_DIR: the folder. The default is ~/.cache/fusewire.
- FUSEWIRE_CACHE_BYTES: the most bytes of compiled files in the folder. The default is 1 GiB. If there are more bytes,
  the least recently used files are removed.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from fusewire_kernels.compile.cache_eviction import ENTRY_PREFIX, PART_PREFIX, UNIT_PREFIX, is_due, tidy
from fusewire_kernels.plan.plan import KernelSource
from fusewire_protos.errors import ConfigurationError
from fusewire_protos.file_rights import others_who_may_write

CACHE_VARIABLE = "FUSEWIRE_CACHE_DIR"
BYTES_VARIABLE = "FUSEWIRE_CACHE_BYTES"
_USUAL_FOLDER = "~/.cache/fusewire"
_USUAL_BYTES = 1 << 30
_SUPERUSER = 0
_DIGEST_BYTES = 16


class Compiled(NamedTuple):
    """The result of a compilation.

    `paths` has the file that holds each kernel, in the order of the sources. `fresh` is the number of kernels that the
    cache did not hold before.
    """

    paths: tuple[str, ...]
    fresh: int


def most_cached_bytes() -> int:
    """Returns the most bytes of compiled files: the value of FUSEWIRE_CACHE_BYTES, or 1 GiB if the variable is not set.

    Raises ConfigurationError if the value is not a number.
    """
    text = os.environ.get(BYTES_VARIABLE)
    if not text:
        return _USUAL_BYTES
    if not text.isdecimal():
        raise ConfigurationError(f"{BYTES_VARIABLE} = {text!r} is not a number of bytes")
    return int(text)


@dataclass(frozen=True)
class BinaryCache:
    """The compiled files of one compiler.

    Machine code depends on the source and on other things, such as the compiler's version and options. `identity`
    describes these other things.

    Every method raises ConfigurationError if the folder cannot be used, or if others may write it.
    """

    folder: Path
    identity: str
    suffix: str
    most_bytes: int = field(default_factory=most_cached_bytes)
    _whole: set[Path] = field(default_factory=set, compare=False, repr=False)  # files that this process has checked

    def missing(self, sources: Iterable[KernelSource]) -> dict[Path, KernelSource]:
        """Returns the sources of the kernels that no file holds. The keys are the entries of these kernels.

        The other kernels of `sources` count as used now.
        """
        entries = {self.entry(source.text): source for source in sources}
        return {entry: source for entry, source in entries.items() if self.find(entry) is None}

    def find(self, entry: Path) -> str | None:
        """Returns an entry's file, which counts as used now. Returns None if the file is missing.

        If the file's content is damaged, removes the file and returns None.
        """
        with self._usable():
            if not _is_there(entry):
                return None
            file = entry.resolve()
            if file not in self._whole:
                if not is_whole(file):
                    file.unlink(missing_ok=True)
                    return None
                self._whole.add(file)
            return str(file)

    def find_all(self, sources: Iterable[KernelSource]) -> tuple[str, ...] | None:
        """Returns the file that holds each kernel, or None if some kernel has no file."""
        found = [self.find(self.entry(source.text)) for source in sources]
        return None if None in found else tuple(filter(None, found))

    def paths(self, sources: Iterable[KernelSource]) -> tuple[str, ...]:
        """Returns the file that holds each kernel. The cache must hold every kernel of `sources`."""
        with self._usable():
            return tuple([str(self.entry(source.text).resolve(strict=True)) for source in sources])

    def entry(self, text: str) -> Path:
        """Returns the path of a kernel's entry. The entry need not exist yet."""
        return self.folder / f"{ENTRY_PREFIX}{kernel_digest(text, self.identity)}{self.suffix}"

    def part(self, suffix: str, content: bytes = b"") -> Path:
        """Creates a file in the cache's folder, for a compiler to read or write."""
        with self._usable():
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # A worker has a temporary folder in the cache, which is removed with the worker.
            temporary = Path(tempfile.gettempdir())
            folder = temporary if temporary.parent == self.folder else self.folder
            folder.mkdir(exist_ok=True, mode=0o700)  # somebody may have emptied the cache meanwhile
            descriptor, path = tempfile.mkstemp(suffix=suffix, prefix=PART_PREFIX, dir=folder)
            os.close(descriptor)
            Path(path).write_bytes(content)
        return Path(path)

    def publish(self, part: Path, entries: Sequence[Path]) -> None:
        """Makes a finished file the target of `entries`. Removes old files if the folder has not been tidied lately."""
        with self._usable():
            kept = self.folder / content_name(part.read_bytes(), self.suffix)
            part.replace(kept)
            for entry in entries:
                link = self.part(".link")
                link.unlink()
                link.symlink_to(kept.name)
                link.replace(entry)
            if is_due(self.folder, time.time()):
                tidy(self.folder, self.most_bytes, time.time())

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            check_writers(self.folder)
            yield
        except OSError as error:
            raise ConfigurationError(
                f"compiled files cannot be kept in {self.folder}: {error}; set {CACHE_VARIABLE} to another folder"
            ) from error


def _is_there(entry: Path) -> bool:
    """Returns whether an entry's file exists. If the file exists, it counts as used now."""
    try:
        os.utime(entry)
    except FileNotFoundError:
        return False
    except PermissionError:  # another user's file may be read-only
        return entry.exists()
    return True


def is_whole(file: Path) -> bool:
    """Returns whether the digest in a compiled file's name is the digest of its content."""
    try:
        return file.name == content_name(file.read_bytes(), file.suffix)
    except FileNotFoundError:
        return False


def content_name(content: bytes, suffix: str) -> str:
    """Returns the name of a compiled file, which tells its content."""
    return f"{UNIT_PREFIX}{blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()}{suffix}"


def deal_out(entries: Sequence[Path], *, most_units: int, least_kernels: int) -> list[Sequence[Path]]:
    """Divides the entries of kernels among translation units, which a compiler compiles in parallel.

    If there are several units, each unit has at least `least_kernels` kernels.
    """
    wanted = min(most_units, os.cpu_count() or 1, len(entries) // least_kernels)
    count = max(wanted, 1)
    return [entries[unit::count] for unit in range(count)] if entries else []


def default_cache_folder() -> Path:
    """Returns the folder that FUSEWIRE_CACHE_DIR names, or ~/.cache/fusewire if the variable is not set."""
    return Path(os.environ.get(CACHE_VARIABLE) or _USUAL_FOLDER).expanduser()


def check_writers(folder: Path) -> None:
    """Raises ConfigurationError if others than this user and the superuser may write the folder, if it exists."""
    try:
        status = folder.stat()
    except FileNotFoundError:
        return
    others = others_who_may_write(status)
    if others:
        remedy = f"run chmod go-w {folder}, or set {CACHE_VARIABLE} to another folder"
        raise ConfigurationError(f"{others} may write {folder}, where compiled kernels are kept: {remedy}")
    if status.st_uid not in {_SUPERUSER, os.geteuid()}:
        remedy = f"set {CACHE_VARIABLE} to a folder of your own"
        raise ConfigurationError(f"another user owns {folder}, where compiled kernels are kept: {remedy}")


def kernel_digest(text: str, identity: str) -> str:
    """Returns the digest by which a kernel is found: of its text, and of all else that its machine code depends on."""
    digest = _begun(identity).copy()
    digest.update(text.encode())
    return digest.hexdigest()


@lru_cache(16)  # an identity holds the text that starts every kernel, some 50 kB; few are used at a time
def _begun(identity: str) -> blake2b:
    return blake2b(f"{identity}\0".encode(), digest_size=_DIGEST_BYTES)
