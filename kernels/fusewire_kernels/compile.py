"""Compiles kernels into shared libraries, with a cache on disk that several processes may share.

Kernels that are missing are compiled together (a translation unit costs more than a kernel), and the library is found
again by each of its kernels: an entry is a link named by the digest of everything its machine code depends on
(source, prelude, flags, compiler, CPU) to the library that holds it. Files appear by renaming, so a reader sees all
of one or nothing.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from fusewire_kernels.codegen.preludes import prelude
from fusewire_kernels.plan import KernelSource
from fusewire_protos.errors import ServerFault

CACHE_VARIABLE = "FUSEWIRE_CACHE_DIR"
FLAGS = [
    "-O3",
    "-march=native",
    "-std=gnu11",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",
    "-fwrapv",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-w",
]

_COMPILERS = ("cc", "gcc", "clang")
_COMPILE_TIMEOUT_S = 120
_PARALLEL_UNITS = 2
_LEAST_KERNELS_A_UNIT = 4
_MISSING_FOLDER = Path("~/.cache/fusewire")


@dataclass(frozen=True)
class Toolchain:
    """A C compiler on this machine and where its results are kept."""

    compiler: str
    version: str
    processor: str
    cache_folder: Path

    @property
    def identity(self) -> str:
        """Everything but the source that machine code depends on."""
        return "\n".join((self.version, self.processor, *FLAGS))


def find_compiler(cache_folder: Path | None = None) -> Toolchain | None:
    """The C compiler of this machine, None if there is none. `CC` names another one."""
    for name in filter(None, (os.environ.get("CC"), *_COMPILERS)):
        path = shutil.which(name)
        version = _version(path) if path else None
        if path and version:
            return Toolchain(path, version, _processor(), cache_folder or default_cache_folder())
    return None


def default_cache_folder() -> Path:
    return Path(os.environ.get(CACHE_VARIABLE) or _MISSING_FOLDER).expanduser()


def compile_kernels(sources: Sequence[KernelSource], toolchain: Toolchain) -> tuple[str, ...]:
    """The path of the library that holds each kernel, in the order of `sources`. Raises ServerFault."""
    missing = _missing(sources, toolchain)
    if missing:
        _compile_missing(missing, toolchain)
    return tuple(str(_kernel_entry(source, toolchain).resolve()) for source in sources)


def missing_kernels(sources: Sequence[KernelSource], toolchain: Toolchain) -> int:
    """How many of the kernels are not in the cache."""
    return len(_missing(sources, toolchain))


def missing_kernels(sources: Sequence[KernelSource], toolchain: Toolchain) -> int:
    """How many of these the cache does not hold."""
    return sum(not _entry(source.text, toolchain, prelude("c")).exists() for source in sources)


def compile_library(text: str, toolchain: Toolchain) -> str:
    """The path of the library of a complete C source, without the prelude. Raises ServerFault."""
    entry = _entry(text, toolchain, "")
    if not entry.exists():
        _publish([_start(text, toolchain)], [[entry]], toolchain)
    return str(entry.resolve())


@dataclass(frozen=True)
class _Compilation:
    """A compiler at work on one translation unit."""

    process: subprocess.Popen[str]
    source_path: Path
    library_path: Path


def _missing(sources: Sequence[KernelSource], toolchain: Toolchain) -> dict[Path, KernelSource]:
    """The sources whose entries the cache lacks, by entry."""
    entries = {_kernel_entry(source, toolchain): source for source in sources}
    return {entry: source for entry, source in entries.items() if not entry.exists()}


def _kernel_entry(source: KernelSource, toolchain: Toolchain) -> Path:
    return _entry(source.text, toolchain, prelude("c"))


def _compile_missing(missing: dict[Path, KernelSource], toolchain: Toolchain) -> None:
    units = _units(list(missing))
    texts = ["\n".join([prelude("c"), *(missing[entry].text for entry in unit)]) for unit in units]
    _publish([_start(text, toolchain) for text in texts], units, toolchain)


def _units(entries: list[Path]) -> list[list[Path]]:
    """Deals kernels out to translation units that are compiled side by side."""
    count = max(1, min(_PARALLEL_UNITS, os.cpu_count() or 1, len(entries) // _LEAST_KERNELS_A_UNIT))
    return [entries[unit::count] for unit in range(count)]


def _start(text: str, toolchain: Toolchain) -> _Compilation:
    toolchain.cache_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    source_path = _temporary(toolchain, ".c")
    library_path = _temporary(toolchain, ".so")
    source_path.write_text(text, encoding="utf-8")
    command = [toolchain.compiler, *FLAGS, str(source_path), "-o", str(library_path), "-lm"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return _Compilation(process, source_path, library_path)


def _publish(compilations: list[_Compilation], units: list[list[Path]], toolchain: Toolchain) -> None:
    failures = [_failure(compilation) for compilation in compilations]
    for compilation, unit, failure in zip(compilations, units, failures, strict=True):
        if failure is None:
            _link(compilation.library_path, unit, toolchain)
        compilation.source_path.unlink()
        compilation.library_path.unlink(missing_ok=True)
    for failure in filter(None, failures):
        raise ServerFault(failure)


def _failure(compilation: _Compilation) -> str | None:
    """Waits for a compiler; what went wrong, if anything did."""
    try:
        errors = compilation.process.communicate(timeout=_COMPILE_TIMEOUT_S)[1]
    except subprocess.TimeoutExpired:
        compilation.process.kill()
        compilation.process.communicate()
        return f"the compiler did not end within {_COMPILE_TIMEOUT_S} s"
    if compilation.process.returncode != 0:
        return f"the compiler ended with {compilation.process.returncode}: {errors.strip()[:2000]}"
    return None


def _link(library_path: Path, entries: list[Path], toolchain: Toolchain) -> None:
    digest = _digest(library_path.read_bytes())
    kept = toolchain.cache_folder / f"unit-{digest}.so"
    library_path.replace(kept)
    for entry in entries:
        link = _temporary(toolchain, ".link")
        link.unlink()
        link.symlink_to(kept.name)
        link.replace(entry)


def _entry(text: str, toolchain: Toolchain, before: str) -> Path:
    digest = _digest(f"{text}\0{before}\0{toolchain.identity}".encode())
    return toolchain.cache_folder / f"kernel-{digest}.so"


def _temporary(toolchain: Toolchain, suffix: str) -> Path:
    descriptor, path = tempfile.mkstemp(suffix=suffix, prefix="part-", dir=toolchain.cache_folder)
    os.close(descriptor)
    return Path(path)


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _version(compiler: str) -> str | None:
    """A compiler's own words about its version and target; None if it does not run."""
    try:
        command = [compiler, "-v"]
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stderr


def _processor() -> str:
    """The CPU's model and features, on which `-march=native` depends."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    features = {line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))}
    return "\n".join([platform.machine(), *sorted(features)])
