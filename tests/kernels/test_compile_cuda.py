"""CUDA kernels compile, on machines without a device too. Skipped where NVRTC is not installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusewire_kernels.codegen.generate import generate
from fusewire_kernels.compile_cuda import CudaCompiler
from fusewire_kernels.kernel import ProductKernel
from fusewire_kernels.plan import KernelSource
from fusewire_protos import dtypes
from fusewire_protos.errors import ConfigurationError, ServerFault
from tests.kernels.codegen.kernels_of_note import NOTED


@pytest.fixture
def compiler(tmp_path: Path) -> CudaCompiler:
    try:
        return CudaCompiler("sm_90", tmp_path)
    except ConfigurationError as reason:
        pytest.skip(str(reason))


def test_noted_kernels_compile_together_into_one_file(compiler: CudaCompiler) -> None:
    sources = [generate(kernel, "cuda") for kernel in NOTED.values()]
    compiled = compiler.compile(sources)
    assert compiled.fresh == len(sources)
    assert len(set(compiled.paths)) == 1
    binary = Path(compiled.paths[0]).read_bytes()
    assert all(source.key.encode() in binary for source in sources)


def test_a_compiled_kernel_is_found_again(compiler: CudaCompiler) -> None:
    source = generate(NOTED["pointwise"], "cuda")
    first = compiler.compile([source])
    again = compiler.compile([source])
    assert (first.fresh, again.fresh) == (1, 0)
    assert again.paths == first.paths


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [dtype for dtype in dtypes.ALL if not dtype.is_boolean], ids=lambda dtype: dtype.name)
def test_products_of_every_dtype_compile(dtype: dtypes.DType, compiler: CudaCompiler) -> None:
    assert compiler.compile([generate(ProductKernel(dtype, 2, False), "cuda")]).fresh == 1


def test_a_kernel_that_does_not_compile_is_a_fault(compiler: CudaCompiler) -> None:
    with pytest.raises(ServerFault, match="no_such_type"):
        compiler.compile([KernelSource("fw_bad", "no_such_type fw_bad;")])
