"""Persistent kernels: their texts do not change unnoticed, and compile for each generation of devices."""

from __future__ import annotations

import pytest

from fusewire_kernels.build import build_plan
from fusewire_kernels.codegen.preludes import prelude
from fusewire_kernels.compile.cuda_compiler import OPTIONS, Nvrtc
from fusewire_protos.errors import ConfigurationError
from fusewire_protos.program import Program
from tests.golden_files import check_text
from tests.kernels.loops_of_note import pointwise, recurrent

NOTED = {
    "persistent_points": pointwise(),
    "persistent_product": recurrent(1, 100),
    "persistent_product_of_many_rows": recurrent(64, 256),
}


def text_of(program: Program) -> str:
    plan = build_plan(program, "cuda")
    assert plan.persistent is not None
    return plan.kernels[plan.persistent.kernel].text


@pytest.mark.parametrize("name", NOTED)
def test_the_source_of_a_noted_kernel_is_as_kept(name: str) -> None:
    check_text(f"kernels/{name}.cu", text_of(NOTED[name]))


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90"])
def test_every_source_compiles_for_each_generation_of_devices(architecture: str) -> None:
    try:
        compiler = Nvrtc()
    except ConfigurationError:
        pytest.skip("NVRTC is not installed")
    for program in NOTED.values():
        text = prelude("cuda") + "\n" + text_of(program)
        assert compiler.compile(text, (f"--gpu-architecture={architecture}", *OPTIONS))


def test_bodies_of_other_sizes_share_the_kernel_of_points_but_not_that_of_a_product() -> None:
    assert text_of(recurrent(1, 64)) != text_of(recurrent(1, 96))
    assert text_of(pointwise()) == text_of(pointwise())
