"""Compiles kernels for NVIDIA devices with NVRTC, and keeps the results in the cache of compiled files.

NVRTC is NVIDIA's compiler library for CUDA. NVRTC needs no device, and comes with CUDA or in NVIDIA's wheel. This
module calls NVRTC's C interface, so no Python binding is needed.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from fusewire_kernels.codegen.preludes import prelude
from fusewire_kernels.compile.binary_cache import BinaryCache, Compiled, deal_out, default_cache_folder
from fusewire_kernels.compile.forked_calls import call_in_forks
from fusewire_kernels.compile.machine_faults import MachineFault, to_blame
from fusewire_kernels.plan.plan import KernelSource
from fusewire_protos.errors import ConfigurationError, ServerFault

_OUT_OF_MEMORY = 1  # a status of NVRTC

_OPTIONS = ("--fmad=false", "--disable-warnings")

# The kernels are compiled in parallel, in so many translation units at most. Each unit takes about 100 MB of memory. It
# has a process, because threads of one process that compile hold each other up: two of them take a quarter longer than
# one, and four take 1.7 times as long. A copy of this process has loaded and warmed up NVRTC already.
_MOST_UNITS = 8
_LEAST_KERNELS_A_UNIT = 1
# After so many kernels the files go into the cache. So a program of many kernels gets on, though its worker is ended.
_MOST_KERNELS_AT_ONCE = 64


def options_for(architecture: str) -> tuple[str, ...]:
    """Returns the options of NVRTC for an architecture, such as "sm_90"."""
    return (f"--gpu-architecture={architecture}", *_OPTIONS)


class CudaCompiler:
    """Compiles for one architecture, such as "sm_90". Used by one thread.

    The constructor raises ConfigurationError if NVRTC is not installed.
    """

    def __init__(self, architecture: str, cache_folder: Path | None = None) -> None:
        self._nvrtc = Nvrtc()
        self._options = options_for(architecture)
        identity = "\n".join((self._nvrtc.version(), *self._options, prelude("cuda")))
        self._cache = BinaryCache(cache_folder or default_cache_folder(), identity, ".cubin")

    def compile(self, sources: Sequence[KernelSource]) -> Compiled:
        """Returns the files that hold the kernels.

        Compiles the kernels that the cache lacks, several units at a time. Raises ServerFault if NVRTC fails;
        MachineFault, if the machine is to blame.
        """
        missing = self._cache.missing(sources)
        entries = list(missing)
        for first in range(0, len(entries), _MOST_KERNELS_AT_ONCE):
            self._compile_at_once(entries[first : first + _MOST_KERNELS_AT_ONCE], missing)
        return Compiled(self._cache.paths(sources), len(missing))

    def _compile_at_once(self, entries: Sequence[Path], missing: Mapping[Path, KernelSource]) -> None:
        units = deal_out(entries, most_units=_MOST_UNITS, least_kernels=_LEAST_KERNELS_A_UNIT)
        try:
            statuses = call_in_forks([partial(self._compile_unit, unit, missing) for unit in units])
        except OSError as error:
            raise MachineFault(f"a process that compiles cannot be started: {error}") from error
        for unit, status in zip(units[1:], statuses, strict=True):
            if status < 0:
                raise MachineFault(f"a process that compiled was ended by signal {-status}")
            if status > 0:
                self._compile_unit(unit, missing)  # to raise the error here

    def find(self, sources: Sequence[KernelSource]) -> tuple[str, ...] | None:
        return self._cache.find_all(sources)

    def warm_up(self, sources: Sequence[KernelSource]) -> None:
        """Compiles sources and drops the result. A process takes longer for the first kernel that it compiles.

        Raises ServerFault if NVRTC fails.
        """
        for source in sources:
            self._machine_code([source])

    def _compile_unit(self, unit: Sequence[Path], sources: Mapping[Path, KernelSource]) -> None:
        binary = self._machine_code([sources[entry] for entry in unit])
        self._cache.publish(self._cache.part(".cubin", binary), unit)

    def _machine_code(self, sources: Sequence[KernelSource]) -> bytes:
        try:
            return self._text_compiled("".join([f"\n{each.text}" for each in sources]))
        except ServerFault as failure:
            raise to_blame(failure, partial(self._text_compiled, "")) from None

    def _text_compiled(self, text: str) -> bytes:
        return self._nvrtc.compile(prelude("cuda") + text, self._options)


class Nvrtc:
    """Calls NVRTC's C interface."""

    def __init__(self) -> None:
        self._library = _library()

    def version(self) -> str:
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return f"NVRTC {major.value}.{minor.value}"

    def compile(self, text: str, options: Sequence[str]) -> bytes:
        """Returns the machine code (a cubin) of a CUDA source. Raises ServerFault with the compiler's messages.

        Raises MachineFault if the machine is to blame.
        """
        program = ctypes.c_void_p()
        status = self._library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None)
        if status != 0:  # before it has looked at the text
            raise MachineFault(f"NVRTC could not create a program: status {status}")
        try:
            return self._compile(program, options)
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _compile(self, program: ctypes.c_void_p, options: Sequence[str]) -> bytes:
        arguments = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        status = self._library.nvrtcCompileProgram(program, len(options), arguments)
        if status != 0:
            log = self._text(program, "ProgramLog").decode(errors="replace")
            kind = MachineFault if status == _OUT_OF_MEMORY else ServerFault
            raise kind(f"NVRTC rejected a kernel: {log.strip()[:2000]}")
        return self._text(program, "CUBIN")

    def _text(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(self._library, f"nvrtcGet{what}")(program, buffer)
        return buffer.raw


def _library() -> ctypes.CDLL:
    for path in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise ConfigurationError("NVRTC was not found: pip install 'fusewire[cuda12]' or 'fusewire[cuda13]'")


def _candidates() -> Iterator[str]:
    """Yields paths of NVRTC's library, in the order in which they are tried.

    First come the libraries in NVIDIA's wheels, the newest version first. Then comes the library of an installed CUDA
    toolkit. Last comes the library that the system's loader finds.
    """
    wheels = Path(sysconfig.get_path("purelib"), "nvidia")
    found_wheels = wheels.glob("*/lib/libnvrtc.so.*[0-9]")
    yield from map(str, sorted(found_wheels, key=lambda path: (path.name, path), reverse=True))
    toolkit = Path(os.environ.get("CUDA_PATH", "/usr/local/cuda"))
    yield str(toolkit / "lib64" / "libnvrtc.so")
    found = ctypes.util.find_library("nvrtc")
    if found:
        yield found
