"""Every kernel of small matrices compiles for the oldest and the newest devices, with a block's shared memory."""

from __future__ import annotations

import os

import pytest

from fusewire_kernels.codegen.cuda.geometry import MATRIX_BLOCKS
from fusewire_kernels.codegen.generate import generate
from fusewire_kernels.codegen.preludes import prelude
from fusewire_kernels.compile.cuda_compiler import Nvrtc, options_for
from fusewire_kernels.ir.kernel import MatrixKernel
from fusewire_kernels.ops.small_matrices import NAMES
from fusewire_protos.errors import ConfigurationError
from fusewire_protos.ops import dtypes
from tests.kernels.codegen.cubin import demand

_WHOLE_FILE_REGISTERS = 128  # of a thread of a warp: then a multiprocessor runs 16 of them


@pytest.fixture(scope="module")
def compiler() -> Nvrtc:
    try:
        return Nvrtc()
    except ConfigurationError as reason:
        if os.environ.get("CI"):
            pytest.fail(f"CI compiles every CUDA kernel: {reason}")
        pytest.skip(str(reason))


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_kernel_of_float64_fits_a_block_of_the_oldest_devices(name: str, compiler: Nvrtc) -> None:
    """The compiler refuses more than 48 KiB of shared memory."""
    for source in generate(MatrixKernel(name, dtypes.float64), "cuda"):
        found = demand(compiler.compile(f"{prelude('cuda')}\n{source.text}", options_for("sm_75")))
        assert found.registers <= _WHOLE_FILE_REGISTERS


@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_threads_of_a_warp_keep_all_in_registers(name: str, compiler: Nvrtc) -> None:
    for dtype in (dtypes.float32, dtypes.float64):
        warp, _ = generate(MatrixKernel(name, dtype), "cuda")
        found = demand(compiler.compile(f"{prelude('cuda')}\n{warp.text}", options_for("sm_90")))
        assert found.local_bytes == 0
        assert found.registers <= _WHOLE_FILE_REGISTERS


def test_the_algorithms_are_the_same_for_each_kind_of_block() -> None:
    """They stand once in a unit with kernels of both kinds, whose lanes wait for one another in different ways."""
    assert [each.threads for each in MATRIX_BLOCKS] == [32, 256]
    warp, block = [
        source.text.partition("extern")[0] for source in generate(MatrixKernel("qr", dtypes.float32), "cuda")
    ]
    assert warp == block
    assert warp == generate(MatrixKernel("inv", dtypes.float32), "cuda")[0].text.partition("extern")[0]


def test_kernels_of_both_kinds_of_block_compile_in_one_unit(compiler: Nvrtc) -> None:
    sources = [
        source.text
        for dtype in (dtypes.float32, dtypes.float64)
        for source in generate(MatrixKernel("solve", dtype), "cuda")
    ]
    cubin = compiler.compile("\n".join([prelude("cuda"), *sources]), options_for("sm_90"))
    assert cubin.count(b"_warp") > 0 < cubin.count(b"_block")
