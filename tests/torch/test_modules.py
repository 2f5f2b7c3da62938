"""Every class of modules of PyTorch's own table gives the results, gradients and buffers of the CPU."""

from __future__ import annotations

import pytest
import torch

from tests.torch.module_entries import MODULES
from tests.torch.op_samples import NONE, PASSED, run_op

_SAMPLES = 6
_MODULES = {entry.name: entry for entry in MODULES}
_WITHOUT_SAMPLES = ("nn.SyncBatchNorm",)  # which the CPU does not have


@pytest.mark.parametrize("name", _MODULES)
@pytest.mark.filterwarnings("ignore")
def test_a_module_is_as_on_the_cpu(name: str) -> None:
    outcome = run_op(_MODULES[name], torch.float32, most=_SAMPLES)
    assert outcome.state == (NONE if name in _WITHOUT_SAMPLES else PASSED), f"{outcome.message}; {outcome.sample}"
