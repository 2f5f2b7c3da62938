"""CUDA kernels compile, on machines without a device too. Skipped where NVRTC is not installed, except in CI."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fusewire_kernels.codegen.cuda.geometry import tiles_of
from fusewire_kernels.codegen.generate import generate
from fusewire_kernels.compile import cuda_compiler as compile_cuda
from fusewire_kernels.compile.cuda_compiler import CudaCompiler
from fusewire_kernels.ir.kernel import ProductKernel
from fusewire_kernels.plan.plan import KernelSource
from fusewire_protos.errors import ConfigurationError, ServerFault
from fusewire_protos.ops import dtypes
from tests.kernels.codegen.cubin import demand
from tests.kernels.codegen.kernels_of_note import NOTED


@pytest.fixture
def compiler(tmp_path: Path) -> CudaCompiler:
    return _compiler("sm_90", tmp_path)


def _compiler(architecture: str, cache_folder: Path) -> CudaCompiler:
    try:
        return CudaCompiler(architecture, cache_folder)
    except ConfigurationError as reason:
        if os.environ.get("CI"):
            pytest.fail(f"CI compiles every CUDA kernel: {reason}")
        pytest.skip(str(reason))


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90"])
def test_each_noted_kernel_is_in_the_file_that_is_said_to_hold_it(architecture: str, tmp_path: Path) -> None:
    sources = [source for kernel in NOTED.values() for source in generate(kernel, "cuda")]
    compiled = _compiler(architecture, tmp_path).compile(sources)
    assert compiled.fresh == len(sources)
    for source, path in zip(sources, compiled.paths, strict=True):
        assert source.key.encode() in Path(path).read_bytes()


@pytest.mark.parametrize("name", ["softmax_rows", "total"])
def test_what_a_thread_keeps_of_a_row_fits_its_registers(name: str, compiler: CudaCompiler) -> None:
    """With 64 registers, 1,024 threads run at a time."""
    for source in generate(NOTED[name], "cuda")[:2]:
        found = demand(Path(compiler.compile([source]).paths[0]).read_bytes())
        assert found.registers <= 64
        assert found.local_bytes == 0


def test_many_kernels_are_compiled_side_by_side(compiler: CudaCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    compiled = compiler.compile([source for kernel in NOTED.values() for source in generate(kernel, "cuda")])
    assert len(set(compiled.paths)) == 2


def test_a_kernel_that_does_not_compile_spares_those_of_other_units(
    compiler: CudaCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    sources = [source for kernel in NOTED.values() for source in generate(kernel, "cuda")][:3]
    with pytest.raises(ServerFault, match="no_such_type"):
        compiler.compile([*sources, KernelSource("fw_bad", "no_such_type fw_bad;")])
    assert compiler.compile(sources).fresh == 1


def test_what_is_compiled_is_kept_though_a_later_kernel_does_not_compile(
    compiler: CudaCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    monkeypatch.setattr("fusewire_kernels.compile.cuda_compiler._MOST_KERNELS_AT_ONCE", 2)
    sources = [source for kernel in NOTED.values() for source in generate(kernel, "cuda")][:2]
    with pytest.raises(ServerFault, match="no_such_type"):
        compiler.compile([*sources, KernelSource("fw_bad", "no_such_type fw_bad;")])
    assert compiler.compile(sources).fresh == 0


def test_a_compiled_kernel_is_found_again(compiler: CudaCompiler) -> None:
    (source,) = generate(NOTED["pointwise"], "cuda")
    first = compiler.compile([source])
    again = compiler.compile([source])
    assert (first.fresh, again.fresh) == (1, 0)
    assert again.paths == first.paths


def test_the_newest_wheel_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for folder, version in (("cuda_nvrtc", 12), ("cu13", 13)):
        library = tmp_path / "nvidia" / folder / "lib" / f"libnvrtc.so.{version}"
        library.parent.mkdir(parents=True)
        library.touch()
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    assert next(compile_cuda._candidates()).endswith("libnvrtc.so.13")


@pytest.mark.slow
@pytest.mark.parametrize("a_is_transposed", [False, True])
@pytest.mark.parametrize("is_in_fours", [False, True])
@pytest.mark.parametrize("dtype", [dtype for dtype in dtypes.ALL if not dtype.is_boolean], ids=lambda dtype: dtype.name)
def test_products_of_every_dtype_compile(
    dtype: dtypes.DType, a_is_transposed: bool, is_in_fours: bool, compiler: CudaCompiler
) -> None:
    kernel = ProductKernel(dtype, 2, False, a_is_transposed, is_in_fours)
    assert compiler.compile(generate(kernel, "cuda")).fresh == len(tiles_of(kernel))


def test_a_kernel_that_does_not_compile_is_a_fault(compiler: CudaCompiler) -> None:
    with pytest.raises(ServerFault, match="no_such_type"):
        compiler.compile([KernelSource("fw_bad", "no_such_type fw_bad;")])
