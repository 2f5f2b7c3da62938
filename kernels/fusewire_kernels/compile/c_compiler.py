"""Compiles C kernels into shared libraries, with many kernels in one translation unit.

A translation unit is one source that a compiler compiles at a time. The compiler takes longer to start a translation
unit than to compile a kernel. So the kernels that the cache lacks are compiled in few units.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fusewire_kernels.codegen.preludes import prelude
from fusewire_kernels.compile import compiler_process
from fusewire_kernels.compile.binary_cache import BinaryCache, Compiled, deal_out, default_cache_folder
from fusewire_kernels.compile.machine_faults import MachineFault, is_of_machine, to_blame
from fusewire_kernels.compile.watch import USUAL_BOUNDS, Bounds
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

_dlclose = ctypes.CDLL(None).dlclose
_dlclose.argtypes = (ctypes.c_void_p,)

_TELLS_VERSION = re.compile(r"\bversion \d")  # in what gcc and clang print
_COMPILERS = ("cc", "gcc", "clang")
_MOST_UNITS = 2
_LEAST_KERNELS_A_UNIT = 4
_MOST_KERNELS_AT_ONCE = 64  # after so many kernels the files go into the cache, even if a later compilation fails


@dataclass(frozen=True)
class Toolchain:
    """A C compiler on this machine, the cache of its results, and the bounds of each of its processes."""

    compiler: str
    version: str
    flags: tuple[str, ...]
    cache: BinaryCache
    bounds: Bounds = USUAL_BOUNDS


def flags_for(level: str) -> tuple[str, ...]:
    """Returns the flags with which any compiler compiles kernels for a level of processors (see `processor`)."""
    return (f"-march={level}", *_FLAGS)


def find_compiler(
    cache_folder: Path | None = None, bounds: Bounds = USUAL_BOUNDS, level: str = NATIVE
) -> Toolchain | None:
    """Returns the C compiler of this machine, for a level of processors.

    Returns None if there is none, or none that tells its version. The compiler that the environment variable CC names
    is tried first.
    """
    names = filter(None, (os.environ.get("CC"), *_COMPILERS))
    for path in dict.fromkeys(filter(None, map(shutil.which, names))):
        version = _version(path, bounds)
        if version:
            flags = (*_OPTIMISATION["clang" if "clang version" in version else "gcc"], *flags_for(level))
            identity = "\n".join((version, _processor(), *flags, prelude("c")))
            cache = BinaryCache(cache_folder or default_cache_folder(), identity, ".so")
            return Toolchain(path, version, flags, cache, bounds)
    return None


class CCompiler:
    """The machine's C compiler. It is looked for at the first use, and again when the last one could not work."""

    def __init__(self, find: Callable[[], Toolchain | None]) -> None:
        self._find = find
        self._toolchain: Toolchain | None = None

    def compile(self, sources: Sequence[KernelSource]) -> Compiled:
        toolchain = self._found()
        fresh = missing_kernels(sources, toolchain)
        try:
            return Compiled(compile_kernels(sources, toolchain), fresh)
        except MachineFault:
            self._toolchain = None
            raise

    def find(self, sources: Sequence[KernelSource]) -> tuple[str, ...] | None:
        return self._found().cache.find_all(sources)

    def warm_up(self, sources: Sequence[KernelSource]) -> None:
        """Looks for the compiler. Compiles nothing, because each compilation is a process of its own."""
        self._found()

    def _found(self) -> Toolchain:
        self._toolchain = self._toolchain or self._find()
        if self._toolchain is None:
            raise MachineFault("the C compiler that was found at start is gone")
        return self._toolchain


def compile_kernels(sources: Sequence[KernelSource], toolchain: Toolchain) -> tuple[str, ...]:
    """Returns the path of the library that holds each kernel, in the order of `sources`.

    Raises ServerFault; MachineFault, if the machine or the compiler is to blame.
    """
    missing = toolchain.cache.missing(sources)
    entries = list(missing)
    for first in range(0, len(entries), _MOST_KERNELS_AT_ONCE):
        at_once = entries[first : first + _MOST_KERNELS_AT_ONCE]
        dealt_out = deal_out(at_once, most_units=_MOST_UNITS, least_kernels=_LEAST_KERNELS_A_UNIT)
        _compile([_unit(entries, [missing[entry] for entry in entries]) for entries in dealt_out], toolchain)
    return toolchain.cache.paths(sources)


def missing_kernels(sources: Sequence[KernelSource], toolchain: Toolchain) -> int:
    """Returns how many of the kernels the cache does not hold."""
    return len(toolchain.cache.missing(sources))


def compile_library(source: KernelSource, toolchain: Toolchain) -> str:
    """Returns the path of the library of a complete C source, which defines its key. Does not add the prelude.

    Raises as `compile_kernels` does.
    """
    entry = toolchain.cache.entry(source.text)
    found = toolchain.cache.find(entry)
    if found is None:
        _compile([_Unit(source.text, (source.key,), (entry,))], toolchain)
        found = toolchain.cache.find(entry)
    if found is None:
        raise MachineFault(f"the compiled file was removed right after it was made: {entry}")
    return found


@dataclass(frozen=True)
class _Unit:
    """A translation unit, the functions that it defines, and the entries of its library in the cache."""

    text: str
    functions: tuple[str, ...]
    entries: tuple[Path, ...] = ()


def _unit(entries: Sequence[Path], sources: Sequence[KernelSource]) -> _Unit:
    text = "\n".join([prelude("c"), *(source.text for source in sources)])
    return _Unit(text, tuple([source.key for source in sources]), tuple(entries))


_PROBE = _unit((), [KernelSource("fw_probe", "int fw_probe(void) { return 0; }\n")])  # compiles wherever kernels do


@dataclass(frozen=True)
class _Compilation:
    """A compiler process that compiles one translation unit."""

    unit: _Unit
    process: compiler_process.Process
    source: Path
    library: Path


def _compile(units: Sequence[_Unit], toolchain: Toolchain) -> None:
    """Compiles units side by side, and publishes the library of each that succeeded.

    Raises ServerFault for the first that failed; MachineFault, if the machine or the compiler is to blame.
    """
    failures: list[ServerFault] = []
    with _started(units, toolchain) as compilations:
        for compilation in compilations:
            try:
                _finish(compilation, toolchain)
                toolchain.cache.publish(compilation.library, compilation.unit.entries)
            except ServerFault as failure:
                failures.append(failure)
    if failures:
        raise to_blame(failures[0], partial(_probe, toolchain))


def _probe(toolchain: Toolchain) -> None:
    with _started([_PROBE], toolchain) as compilations:
        for compilation in compilations:
            _finish(compilation, toolchain)


@contextmanager
def _started(units: Sequence[_Unit], toolchain: Toolchain) -> Iterator[list[_Compilation]]:
    """Starts a compiler for each unit. In the end, kills those that still run, and removes their files.

    Each compiler has a folder for its temporary files, because one that is killed leaves them behind.
    """
    compilations: list[_Compilation] = []
    parts: list[Path] = []
    folders: list[Path] = []
    try:
        for unit in units:
            source, library = toolchain.cache.part(".c", unit.text.encode()), toolchain.cache.part(".so")
            parts += source, library
            folders.append(_temporary_folder())
            command = [toolchain.compiler, *toolchain.flags, str(source), "-o", str(library), "-lm"]
            compilations.append(_Compilation(unit, compiler_process.start(command, folders[-1]), source, library))
        yield compilations
    finally:
        for compilation in compilations:
            if compilation.process.poll() is None:
                compiler_process.end(compilation.process)
        for part in parts:
            part.unlink(missing_ok=True)
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def _temporary_folder() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="fusewire-"))
    except OSError as error:
        raise MachineFault(f"a compiler gets no folder for temporary files: {error}") from error


def _finish(compilation: _Compilation, toolchain: Toolchain) -> None:
    """Waits for a compiler. Raises ServerFault if it failed; MachineFault, if it is clear that the machine is to blame.

    A compiler that says that it has succeeded and has not is broken.
    """
    status, printed = compiler_process.finish(compilation.process, toolchain.bounds)
    if status != 0:
        kind = MachineFault if is_of_machine(status, printed) else ServerFault
        raise kind(f"the compiler ended with {status}: {printed.strip()[:2000]}")
    fault = _fault_of_library(compilation.library, compilation.unit.functions)
    if fault:
        raise MachineFault(f"the compiler ended with 0, but its result cannot be used: {fault}")


def _fault_of_library(path: Path, functions: Sequence[str]) -> str:
    """Returns why a library cannot be loaded, or which of the functions it lacks, or an empty text."""
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        return str(error)
    missing = next((name for name in functions if not hasattr(library, name)), "")
    _dlclose(library._handle)
    return f"it lacks {missing}" if missing else ""


def _version(compiler: str, bounds: Bounds) -> str:
    """Returns a compiler's text about its version and target, or an empty text if it tells no version in time."""
    try:
        status, printed = compiler_process.finish(compiler_process.start([compiler, "-v"]), bounds)
    except MachineFault:
        return ""
    return printed.strip() if status == 0 and _TELLS_VERSION.search(printed) else ""


def _processor() -> str:
    """Returns the CPU's model and features. `-march=native` compiles for this model and these features."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    features = {line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))}
    return "\n".join([platform.machine(), *sorted(features)])
