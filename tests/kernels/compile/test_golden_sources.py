"""Every CUDA source among the golden files compiles for each generation of devices, on machines without one too."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from fusewire_kernels.codegen.preludes import prelude
from fusewire_kernels.compile.cuda_compiler import Nvrtc, options_for
from fusewire_protos.errors import ConfigurationError
from tests.golden_files import FOLDER

SOURCES = sorted((FOLDER / "kernels").glob("*.cu"))
_ENTRY = re.compile(r'^extern "C" __global__ void .*?\b(fw_\w+)\(', re.MULTILINE)
_CLUSTER = "__cluster_dims__"
_WITH_CLUSTERS = "sm_90"


@pytest.fixture(scope="module")
def compiler() -> Nvrtc:
    try:
        return Nvrtc()
    except ConfigurationError as reason:
        if os.environ.get("CI"):
            pytest.fail(f"CI compiles every CUDA kernel: {reason}")
        pytest.skip(str(reason))


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_source_compiles_to_its_kernel(source: Path, architecture: str, compiler: Nvrtc) -> None:
    """A kernel in clusters compiles to nothing on devices without clusters, which never launch it."""
    text = source.read_text(encoding="utf-8")
    cubin = compiler.compile(f"{prelude('cuda')}\n{text}", options_for(architecture))
    (entry,) = _ENTRY.findall(text)
    assert (entry.encode() in cubin) == (_CLUSTER not in text or architecture == _WITH_CLUSTERS)
