"""The ops that are declared to pass the samples of PyTorch's own table pass the first ones of each."""

from __future__ import annotations

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

from tests.torch.op_samples import PASSED, declared, full_name, run_op

_SAMPLES = 2
_OPS = {full_name(op): op for op in op_db if torch.float32 in op.supported_dtypes("cpu")}


def test_the_declared_ops_are_sorted_and_known() -> None:
    names = declared()
    assert names == sorted(set(names))
    assert len(names) >= 550


@pytest.mark.parametrize("name", declared())
@pytest.mark.filterwarnings("ignore")
def test_an_op_gives_what_the_cpu_gives(name: str) -> None:
    if name not in _OPS:
        pytest.skip("this version of PyTorch has no such op")
    outcome = run_op(_OPS[name], torch.float32, most=_SAMPLES, backward=False)
    assert outcome.state == PASSED, f"{outcome.message}; {outcome.sample}"
