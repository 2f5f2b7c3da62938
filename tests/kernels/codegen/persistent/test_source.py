"""Persistent kernels: their texts do not change unnoticed, and wait at random only where a test asks for it."""

from __future__ import annotations

import pytest

from fusewire_kernels.build import build_plan
from fusewire_kernels.codegen.preludes import prelude
from fusewire_kernels.compile.cuda_compiler import Nvrtc, options_for
from fusewire_kernels.plan.plan import KernelSource
from fusewire_protos.errors import ConfigurationError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.programs.program import Program
from tests.golden_files import check_text
from tests.kernels.codegen.cubin import code_bytes
from tests.kernels.loops_of_note import pointwise, recurrent, stacked, with_sums
from tests.kernels.programs import Writer
from tests.kernels.random_waits import with_random_waits

NOTED = {
    "persistent_points": pointwise(),
    "persistent_product": recurrent(1, 100),
    "persistent_product_of_many_rows": recurrent(64, 256),
    "persistent_products_in_steps": stacked(2, 64),
    "persistent_reductions": with_sums(2, 64),
}
MOST_CODE_BYTES = 36 << 10  # longer loops run slower, because they do not fit in the instruction cache


def _chain(*functions: str, dtype: DType) -> Program:
    """x = each function in turn of x · s."""
    writer = Writer()
    x, s = writer.input(1000, dtype=dtype), writer.scalar(dtype)
    value = writer.multiply(x, s)
    for function in functions:
        value = writer.op(function, value)
    return writer.program(value, carried=[(x, value)])


@pytest.fixture(scope="module")
def compiler() -> Nvrtc:
    try:
        return Nvrtc()
    except ConfigurationError:
        pytest.skip("NVRTC is not installed")


def source_of(program: Program) -> KernelSource:
    plan = build_plan(program, "cuda")
    assert plan.persistent is not None
    return plan.kernels[plan.persistent.kernel]


def text_of(program: Program) -> str:
    return source_of(program).text


def compiled(compiler: Nvrtc, text: str) -> bytes:
    return compiler.compile(f"{prelude('cuda')}\n{text}", options_for("sm_90"))


@pytest.mark.parametrize("name", NOTED)
def test_the_source_of_a_noted_kernel_is_as_kept(name: str) -> None:
    check_text(f"kernels/{name}.cu", text_of(NOTED[name]))


@pytest.mark.parametrize("name", ["persistent_product", "persistent_reductions"])
def test_only_a_build_with_random_waits_waits_at_random(name: str, compiler: Nvrtc) -> None:
    source = source_of(NOTED[name])
    without = source.text.replace("FW_WAIT_AT_RANDOM();", "")
    assert "FW_WAIT_AT_RANDOM();" in source.text
    assert compiled(compiler, source.text) == compiled(compiler, without)
    assert compiled(compiler, with_random_waits(source).text) != compiled(compiler, without)


def test_bodies_of_other_sizes_share_the_kernel_of_points_but_not_that_of_a_product() -> None:
    assert text_of(recurrent(1, 64)) != text_of(recurrent(1, 96))
    assert text_of(pointwise()) == text_of(pointwise())


@pytest.mark.parametrize(
    "body",
    [
        pointwise(),
        _chain("tanh", dtype=dtypes.float32),
        _chain("negative", dtype=dtypes.float32),
        _chain("sin", "exp", "tanh", "cos", dtype=dtypes.float32),
        _chain("tanh", "exp", dtype=dtypes.float64),
        _chain("sin", "log", "tanh", "erf", "cos", dtype=dtypes.float64),
    ],
)
def test_the_code_of_unrolled_iterations_fits_in_the_instruction_cache(body: Program, compiler: Nvrtc) -> None:
    assert code_bytes(compiled(compiler, text_of(body))) <= MOST_CODE_BYTES
