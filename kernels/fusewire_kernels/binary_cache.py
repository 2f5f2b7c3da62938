"""Compiled kernels on disk, for every compiler and for several processes at once.

A compiled file holds the kernels that were missing together, and is found again by each of them: an entry is a link
named by the digest of everything a kernel's machine code depends on, to the file that holds it. Files and links appear
by renaming, so a reader sees all of one or nothing.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from fusewire_kernels.plan import KernelSource

CACHE_VARIABLE = "FUSEWIRE_CACHE_DIR"
_USUAL_FOLDER = "~/.cache/fusewire"


class Compiled(NamedTuple):
    """The file that holds each kernel, in the order asked, and how many no cache held."""

    paths: tuple[str, ...]
    fresh: int


@dataclass(frozen=True)
class BinaryCache:
    """The compiled files of one compiler. `identity` is all but the source that machine code depends on."""

    folder: Path
    identity: str
    suffix: str

    def missing(self, sources: Iterable[KernelSource]) -> dict[Path, KernelSource]:
        """The sources that no file holds, by their entries."""
        entries = {self.entry(source.text): source for source in sources}
        return {entry: source for entry, source in entries.items() if not entry.exists()}

    def paths(self, sources: Iterable[KernelSource]) -> tuple[str, ...]:
        """The file that holds each kernel; none may be missing."""
        return tuple(str(self.entry(source.text).resolve(strict=True)) for source in sources)

    def entry(self, text: str) -> Path:
        """Where a kernel's link is, or will be."""
        digest = _digest(f"{text}\0{self.identity}".encode())
        return self.folder / f"kernel-{digest}{self.suffix}"

    def part(self, suffix: str) -> Path:
        """A new empty file in the cache's folder, for a compiler to write."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, path = tempfile.mkstemp(suffix=suffix, prefix="part-", dir=self.folder)
        os.close(descriptor)
        return Path(path)

    def publish(self, part: Path, entries: Sequence[Path]) -> None:
        """Makes a finished file the one that `entries` name."""
        kept = self.folder / f"unit-{_digest(part.read_bytes())}{self.suffix}"
        part.replace(kept)
        for entry in entries:
            link = self.part(".link")
            link.unlink()
            link.symlink_to(kept.name)
            link.replace(entry)


def deal_out(entries: Sequence[Path], *, most_units: int, least_kernels: int) -> list[Sequence[Path]]:
    """Kernels as units to be compiled side by side, each of `least_kernels` if there is more than one."""
    wanted = min(most_units, os.cpu_count() or 1, len(entries) // least_kernels)
    count = max(wanted, 1)
    return [entries[unit::count] for unit in range(count)] if entries else []


def default_cache_folder() -> Path:
    """The folder that the environment names, or one in the user's home."""
    return Path(os.environ.get(CACHE_VARIABLE) or _USUAL_FOLDER).expanduser()


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
