"""Keeps compiled kernels on disk, for every compiler and for several processes at once.

A compiled file holds kernels that were compiled together. For each of them there is an entry: a link to the file, named
by the digest of everything that the kernel's machine code depends on. Files and links are made by renaming, so a reader
never sees a part of one. A file's name contains the digest of its content. So a file that a power failure cut short is
recognised before its first use, and compiled again.

Two environment variables are the settings: FUSEWIRE_CACHE_DIR, the folder (default ~/.cache/fusewire), and
FUSEWIRE_CACHE_BYTES, the most bytes of compiled files in it (default 1 GiB); beyond that the least recently used go.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from fusewire_kernels.compile.cache_eviction import ENTRY_PREFIX, PART_PREFIX, UNIT_PREFIX, is_due, tidy
from fusewire_kernels.plan.plan import KernelSource
from fusewire_protos.errors import ConfigurationError

CACHE_VARIABLE = "FUSEWIRE_CACHE_DIR"
BYTES_VARIABLE = "FUSEWIRE_CACHE_BYTES"
_USUAL_FOLDER = "~/.cache/fusewire"
_USUAL_BYTES = 1 << 30


class Compiled(NamedTuple):
    """The file that holds each kernel, in the order asked, and the number of kernels that no cache held."""

    paths: tuple[str, ...]
    fresh: int


def most_cached_bytes() -> int:
    """Returns the most bytes of compiled files: the environment's value, or 1 GiB. Raises ConfigurationError."""
    text = os.environ.get(BYTES_VARIABLE)
    if not text:
        return _USUAL_BYTES
    if not text.isdecimal():
        raise ConfigurationError(f"{BYTES_VARIABLE} = {text!r} is not a number of bytes")
    return int(text)


@dataclass(frozen=True)
class BinaryCache:
    """The compiled files of one compiler. `identity` is all that machine code depends on beside the source.

    Every method raises ConfigurationError if the folder cannot be used.
    """

    folder: Path
    identity: str
    suffix: str
    most_bytes: int = field(default_factory=most_cached_bytes)
    _whole: set[Path] = field(default_factory=set, compare=False, repr=False)  # files that this process has checked

    def missing(self, sources: Iterable[KernelSource]) -> dict[Path, KernelSource]:
        """Returns the sources that no file holds, by their entries. The others count as used now."""
        entries = {self.entry(source.text): source for source in sources}
        return {entry: source for entry, source in entries.items() if self.find(entry) is None}

    def find(self, entry: Path) -> str | None:
        """Returns an entry's file, which counts as used now; None if there is none or it had to be removed."""
        with self._usable():
            if not _is_there(entry):
                return None
            file = entry.resolve()
            if file not in self._whole:
                if not _is_whole(file):
                    file.unlink(missing_ok=True)
                    return None
                self._whole.add(file)
            return str(file)

    def paths(self, sources: Iterable[KernelSource]) -> tuple[str, ...]:
        """Returns the file that holds each kernel. None may be missing."""
        with self._usable():
            return tuple([str(self.entry(source.text).resolve(strict=True)) for source in sources])

    def entry(self, text: str) -> Path:
        """Returns the path of a kernel's link, which need not exist yet."""
        digest = _digest(f"{text}\0{self.identity}".encode())
        return self.folder / f"{ENTRY_PREFIX}{digest}{self.suffix}"

    def part(self, suffix: str, content: bytes = b"") -> Path:
        """Creates a file in the cache's folder, for a compiler to read or write."""
        with self._usable():
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, path = tempfile.mkstemp(suffix=suffix, prefix=PART_PREFIX, dir=self.folder)
            os.close(descriptor)
            Path(path).write_bytes(content)
        return Path(path)

    def publish(self, part: Path, entries: Sequence[Path]) -> None:
        """Makes a finished file the target of `entries`, then keeps the folder within its bound."""
        with self._usable():
            kept = self.folder / f"{UNIT_PREFIX}{_digest(part.read_bytes())}{self.suffix}"
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
            yield
        except OSError as error:
            raise ConfigurationError(
                f"compiled files cannot be kept in {self.folder}: {error}; set {CACHE_VARIABLE} to another folder"
            ) from error


def _is_there(entry: Path) -> bool:
    """Returns whether an entry's file exists. If so, it counts as used now."""
    try:
        os.utime(entry)
    except FileNotFoundError:
        return False
    except PermissionError:  # another user's file may be read-only
        return entry.exists()
    return True


def _is_whole(file: Path) -> bool:
    """Returns whether a compiled file has the content that its name says."""
    try:
        return file.stem == f"{UNIT_PREFIX}{_digest(file.read_bytes())}"
    except FileNotFoundError:
        return False


def deal_out(entries: Sequence[Path], *, most_units: int, least_kernels: int) -> list[Sequence[Path]]:
    """Deals kernels out to units compiled side by side, each with `least_kernels` if there is more than one."""
    wanted = min(most_units, os.cpu_count() or 1, len(entries) // least_kernels)
    count = max(wanted, 1)
    return [entries[unit::count] for unit in range(count)] if entries else []


def default_cache_folder() -> Path:
    """Returns the folder that the environment names, or one in the user's home."""
    return Path(os.environ.get(CACHE_VARIABLE) or _USUAL_FOLDER).expanduser()


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
