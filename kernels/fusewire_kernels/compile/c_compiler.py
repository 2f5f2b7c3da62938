"""Compiles C kernels into shared libraries, with many kernels in one translation unit.

A translation unit is one source that a compiler compiles at a time. The compiler takes longer to start a translation
unit than to compile a kernel. So the kernels that the cache lacks are compiled in few units.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fusewire_kernels.codegen.preludes import prelude
from fusewire_kernels.compile.binary_cache import BinaryCache, Compiled, deal_out, default_cache_folder
from fusewire_kernels.compile.machine_faults import MachineFault, is_of_machine
from fusewire_kernels.plan.plan import KernelSource
from fusewire_protos.errors import ServerFault

# By default, compilers use vectors of half the processor's width on Intel's servers. Then they would split a vector of
# the whole width in our text into single elements.
_WHOLE_VECTORS = ("-mprefer-vector-width=512",) if platform.machine() in {"x86_64", "AMD64"} else ()

_FLAGS = (
    "-std=gnu11",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",
    "-fwrapv",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-strict-aliasing",  # because a result may overwrite the memory of an operand of another dtype
    "-fno-builtin-sin",  # otherwise sin and cos of a value become one call of sincos, which may give other bits
    "-fno-builtin-cos",
    "-w",
    *_WHOLE_VECTORS,
)

# gcc takes a third longer at -O2 and twice as long at -O3, for kernels that are no faster, but for integer division.
_OPTIMISATION = {"gcc": ("-O1", "-ftree-vectorize", "-fvect-cost-model=dynamic"), "clang": ("-O3",)}

NATIVE = "native"  # the level of this machine's processor

_COMPILERS = ("cc", "gcc", "clang")
_USUAL_TIMEOUT_S = 120.0
_MOST_UNITS = 2
_LEAST_KERNELS_A_UNIT = 4
_MOST_KERNELS_AT_ONCE = 64  # after so many kernels the files go into the cache, even if a later compilation fails


@dataclass(frozen=True)
class Toolchain:
    """A C compiler on this machine, the cache of its results, and the time limit for one translation unit."""

    compiler: str
    version: str
    flags: tuple[str, ...]
    cache: BinaryCache
    timeout_s: float = _USUAL_TIMEOUT_S


def flags_for(level: str) -> tuple[str, ...]:
    """Returns the flags with which any compiler compiles kernels for a level of processors (see `processor`)."""
    return (f"-march={level}", *_FLAGS)


def find_compiler(cache_folder: Path | None = None, level: str = NATIVE) -> Toolchain | None:
    """Returns the C compiler of this machine, for a level of processors. Returns None if there is none.

    The compiler that the environment variable CC names is tried first.
    """
    for name in filter(None, (os.environ.get("CC"), *_COMPILERS)):
        path = shutil.which(name)
        version = _version(path) if path else None
        if path and version:
            flags = (*_OPTIMISATION["clang" if "clang version" in version else "gcc"], *flags_for(level))
            identity = "\n".join((version, _processor(), *flags, prelude("c")))
            return Toolchain(path, version, flags, BinaryCache(cache_folder or default_cache_folder(), identity, ".so"))
    return None


class CCompiler:
    """The machine's C compiler."""

    def __init__(self, toolchain: Toolchain) -> None:
        self._toolchain = toolchain

    def compile(self, sources: Sequence[KernelSource]) -> Compiled:
        fresh = missing_kernels(sources, self._toolchain)
        return Compiled(compile_kernels(sources, self._toolchain), fresh)

    def find(self, sources: Sequence[KernelSource]) -> tuple[str, ...] | None:
        return self._toolchain.cache.find_all(sources)

    def warm_up(self, sources: Sequence[KernelSource]) -> None:
        """Does nothing, because each compilation is a process of its own."""


def compile_kernels(sources: Sequence[KernelSource], toolchain: Toolchain) -> tuple[str, ...]:
    """Returns the path of the library that holds each kernel, in the order of `sources`. Raises ServerFault."""
    missing = toolchain.cache.missing(sources)
    entries = list(missing)
    for first in range(0, len(entries), _MOST_KERNELS_AT_ONCE):
        at_once = entries[first : first + _MOST_KERNELS_AT_ONCE]
        units = deal_out(at_once, most_units=_MOST_UNITS, least_kernels=_LEAST_KERNELS_A_UNIT)
        texts = ["\n".join([prelude("c"), *(missing[entry].text for entry in unit)]) for unit in units]
        _finish([_start(text, toolchain) for text in texts], units, toolchain)
    return toolchain.cache.paths(sources)


def missing_kernels(sources: Sequence[KernelSource], toolchain: Toolchain) -> int:
    """Returns how many of the kernels the cache does not hold."""
    return len(toolchain.cache.missing(sources))


def compile_library(text: str, toolchain: Toolchain) -> str:
    """Returns the path of the library of a complete C source. Does not add the prelude. Raises ServerFault."""
    entry = toolchain.cache.entry(text)
    found = toolchain.cache.find(entry)
    if found is None:
        _finish([_start(text, toolchain)], [[entry]], toolchain)
        found = toolchain.cache.find(entry)
    if found is None:
        raise ServerFault(f"the compiled file was removed right after it was made: {entry}")
    return found


@dataclass(frozen=True)
class _Compilation:
    """A compiler process that compiles one translation unit."""

    process: subprocess.Popen[str]
    source: Path
    library: Path


def _start(text: str, toolchain: Toolchain) -> _Compilation:
    source, library = toolchain.cache.part(".c", text.encode()), toolchain.cache.part(".so")
    command = [toolchain.compiler, *toolchain.flags, str(source), "-o", str(library), "-lm"]
    environment = {**os.environ, "LC_ALL": "C"}  # for messages that `is_of_machine` knows
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    try:
        process = subprocess.Popen(command, env=environment, stdin=null, stdout=null, stderr=pipe, text=True)
    except OSError as error:
        source.unlink()
        library.unlink()
        raise MachineFault(f"the compiler cannot be started: {error}") from error
    return _Compilation(process, source, library)


def _finish(compilations: list[_Compilation], units: Sequence[Sequence[Path]], toolchain: Toolchain) -> None:
    """Waits for every compiler process, and publishes the library of each process that succeeded.

    Raises ServerFault for the first process that failed; MachineFault, if the machine is to blame.
    """
    failures = [_failure(compilation, toolchain.timeout_s) for compilation in compilations]
    for compilation, unit, failure in zip(compilations, units, failures, strict=True):
        if failure is None:
            toolchain.cache.publish(compilation.library, unit)
        compilation.source.unlink()
        compilation.library.unlink(missing_ok=True)
    for failure in filter(None, failures):
        raise failure


def _failure(compilation: _Compilation, timeout_s: float) -> ServerFault | None:
    try:
        errors = compilation.process.communicate(timeout=timeout_s)[1]
    except subprocess.TimeoutExpired:
        compilation.process.kill()
        compilation.process.communicate()
        return ServerFault(f"the compiler did not end within {timeout_s:g} s")
    status = compilation.process.returncode
    if status == 0:
        return None
    kind = MachineFault if is_of_machine(status, errors) else ServerFault
    return kind(f"the compiler ended with {status}: {errors.strip()[:2000]}")


def _version(compiler: str) -> str | None:
    """Returns a compiler's text about its version and target. Returns None if the compiler cannot be run."""
    try:
        found = subprocess.run([compiler, "-v"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stderr


def _processor() -> str:
    """Returns the CPU's model and features. `-march=native` compiles for this model and these features."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    features = {line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))}
    return "\n".join([platform.machine(), *sorted(features)])
