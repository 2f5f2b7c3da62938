"""What a tensor's explanation tells is that of the array under it."""

from __future__ import annotations

import pytest
import torch

import fusewire as fw
import fusewire.torch


def test_a_tensor_has_the_explanation_of_the_work_that_made_it() -> None:
    x = torch.ones(3, 3).to("fusewire")
    y = torch.tanh(x @ x)
    y.cpu()
    (program,) = fusewire.torch.explain(y).programs
    assert [op.name for op in program.ops] == ["matmul", "tanh"]
    assert program.made == 1
    assert str(fusewire.torch.explain(y[0])) == str(fusewire.torch.explain(y))


def test_an_upload_and_an_empty_tensor_are_said_to_be_so() -> None:
    assert "uploaded" in str(fusewire.torch.explain(torch.ones(3).to("fusewire")))
    assert fusewire.torch.explain(torch.empty(3, device="fusewire")).notes


@pytest.mark.parametrize("other", [torch.ones(3), 1.0])
def test_what_is_no_tensor_of_the_device_is_refused(other: object) -> None:
    with pytest.raises(fw.ArgumentError, match="explain takes a tensor on the device"):
        fusewire.torch.explain(other)
