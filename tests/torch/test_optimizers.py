"""Every optimizer of PyTorch's own table takes the steps of the CPU, with each of its options."""

from __future__ import annotations

import pytest
import torch

from tests.torch.op_samples import NONE, PASSED, run_op
from tests.torch.optimizer_entries import OPTIMIZERS

_SAMPLES = 60
_OPTIMIZERS = {entry.name: entry for entry in OPTIMIZERS}
_WITHOUT_SAMPLES = ("optim.SparseAdam",)  # its gradients are sparse


@pytest.mark.parametrize("name", _OPTIMIZERS)
@pytest.mark.filterwarnings("ignore")
def test_an_optimizer_is_as_on_the_cpu(name: str) -> None:
    outcome = run_op(_OPTIMIZERS[name], torch.float32, most=_SAMPLES)
    assert outcome.state == (NONE if name in _WITHOUT_SAMPLES else PASSED), f"{outcome.message}; {outcome.sample}"
