"""Classes of modules of PyTorch's own table give the results, gradients and buffers of the CPU, or are refused."""

from __future__ import annotations

import pytest
import torch

from tests.torch.module_entries import MODULES
from tests.torch.op_samples import NONE, PASSED, REFUSED, run_op

_SAMPLES = 6
_MODULES = {entry.name: entry for entry in MODULES}
_OTHERS = {
    "nn.SyncBatchNorm": NONE,  # which the CPU does not have
    "nn.FractionalMaxPool2d": REFUSED,
    "nn.FractionalMaxPool3d": REFUSED,
}


@pytest.mark.parametrize("name", _MODULES)
@pytest.mark.filterwarnings("ignore")
def test_a_module_is_as_on_the_cpu_or_refused(name: str) -> None:
    outcome = run_op(_MODULES[name], torch.float32, most=_SAMPLES)
    assert outcome.state == _OTHERS.get(name, PASSED), f"{outcome.message}; {outcome.sample}"
