"""Makes packs: compiles the kernels of all single ops before a client needs them.

`python -m fusewire_kernels.packing FOLDER` makes the pack of C kernels for this type of machine below FOLDER. Building
a wheel does so. `fusewire warm` makes packs of either dialect.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fusewire_kernels.build import design
from fusewire_kernels.codegen.dialect import dialect_of
from fusewire_kernels.codegen.generate import generate
from fusewire_kernels.compile.c_compiler import compile_kernels, compile_library, find_compiler
from fusewire_kernels.compile.kernel_pack import find_pack, write_pack
from fusewire_kernels.compile.processor import LEVELS
from fusewire_kernels.devices.cpu import runtime_source
from fusewire_kernels.plan.plan import KernelSource
from fusewire_kernels.unfused.all_calls import all_calls
from fusewire_protos.errors import ConfigurationError

Progress = Callable[[int, int], None]  # takes the number of kernels that are compiled, and that of all

_Compile = Callable[[Sequence[KernelSource]], Sequence[str]]


def kernels_of_all_calls(dialect: str) -> tuple[KernelSource, ...]:
    """Returns the sources of the kernels of single ops, once each.

    In CUDA a kernel has a source for each class of sizes. All of them are here, whatever the sizes of the calls.
    """
    for_gpu = dialect_of(dialect).for_gpu
    kernels = {
        kernel.key: kernel
        for call in all_calls()
        for kernel in design(call.program(), for_gpu=for_gpu).kernels.values()
    }
    return tuple([source for kernel in kernels.values() for source in generate(kernel, dialect)])


def make_c_pack(roots: Sequence[Path], machine: str, progress: Progress) -> Path | None:
    """Makes the pack of C kernels for a type of machines, which is this machine's.

    Returns the new pack's folder, below the last of `roots`; None if packs below `roots` hold all kernels already.
    Raises ConfigurationError if there are no packs for such machines, or if this machine has no C compiler; ServerFault
    if the compiler fails.
    """
    level = LEVELS.get(machine)
    if level is None:
        raise ConfigurationError(f"there are no packs of C kernels for {machine}, only for {', '.join(LEVELS)}")
    runtime = runtime_source()
    with TemporaryDirectory(prefix="fusewire-pack-") as folder:
        toolchain = find_compiler(Path(folder), level=level)
        if toolchain is None:
            raise ConfigurationError("a pack of C kernels is compiled by a C compiler, and there is none")

        def compile_some(sources: Sequence[KernelSource]) -> Sequence[str]:
            return compile_kernels(sources, toolchain)

        known = {runtime: compile_library(runtime, toolchain)}
        return _made(roots, "c", level, known, compile_some, progress)


def make_cuda_pack(roots: Sequence[Path], architecture: str, progress: Progress) -> Path | None:
    """Makes the pack of CUDA kernels for an architecture, such as "sm_90". Needs no device.

    Returns what `make_c_pack` returns. Raises ConfigurationError if NVRTC is not installed; ServerFault if it fails.
    """
    from fusewire_kernels.compile.cuda_compiler import CudaCompiler  # noqa: PLC0415 - needs NVRTC

    with TemporaryDirectory(prefix="fusewire-pack-") as folder:
        compiler = CudaCompiler(architecture, Path(folder))
        return _made(roots, "cuda", architecture, {}, lambda sources: compiler.compile(sources).paths, progress)


def _made(
    roots: Sequence[Path],
    dialect: str,
    target: str,
    known: dict[KernelSource, str],
    compile_some: _Compile,
    progress: Progress,
) -> Path | None:
    sources = kernels_of_all_calls(dialect)
    there = find_pack(dialect, target, roots)
    if there is not None and there.find([*known, *sources]) is not None:
        return None
    compiled = dict(known)
    at_once = dialect_of(dialect).kernels_a_file
    for first in range(0, len(sources), at_once):
        some = sources[first : first + at_once]
        compiled.update(zip(some, compile_some(some), strict=True))
        progress(first + len(some), len(sources))
    return write_pack(roots[-1], dialect, target, compiled)


def main() -> None:
    """Makes the pack of C kernels. Ends with a message if it cannot be made."""
    try:
        make_c_pack([Path(sys.argv[1])], platform.machine(), lambda done, of: None)
    except (ConfigurationError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
