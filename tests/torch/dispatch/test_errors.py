"""Malformed calls raise PyTorch's own errors, and ops without a kernel say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as nn

_CALLS: dict[str, Callable[[Any], Any]] = {
    "shapes that do not broadcast": lambda d: torch.ones(3, device=d) + torch.ones(4, device=d),
    "an axis out of range": lambda d: torch.ones(3, device=d).sum(4),
    "matrices that do not fit": lambda d: torch.ones(2, 3, device=d) @ torch.ones(2, 3, device=d),
    "an index of another rank": lambda d: torch.ones(3, 3, device=d).gather(0, torch.zeros(1, 1, 1, device=d).long()),
    "a source of another dtype": lambda d: torch.ones(3, device=d).scatter(
        0, torch.zeros(2, dtype=torch.int64, device=d), torch.ones(2, dtype=torch.float64, device=d)
    ),
    "more shifts than axes": lambda d: torch.ones(3, 3, device=d).roll((1, 2), 0),
    "boundaries that are a matrix": lambda d: torch.bucketize(torch.ones(3, device=d), torch.ones(2, 2, device=d)),
    "a divisor of zero": lambda d: nn.avg_pool2d(torch.ones(1, 4, 4, device=d), 2, divisor_override=0),
    "an unknown approximation": lambda d: nn.gelu(torch.ones(3, device=d), approximate="none at all"),
    "no samples": lambda d: torch.multinomial(torch.ones(3, device=d), 0),
    "more samples than weights": lambda d: torch.multinomial(torch.ones(3, device=d), 4),
    "a matrix that is not square": lambda d: torch.linalg.inv(torch.ones(2, 3, device=d)),
    "a singular matrix": lambda d: torch.linalg.inv(torch.zeros(2, 2, device=d)),
    "a mean of integers": lambda d: torch.ones(3, dtype=torch.int64, device=d).mean(),
    "an axis of a softmax out of range": lambda d: nn.softmax(torch.ones(3, device=d), 2),
    "an axis of an order out of range": lambda d: torch.ones(3, device=d).sort(3),
    "a range that leads away": lambda d: torch.arange(5, 1, device=d),
    "a condition of floats": lambda d: torch.where(torch.ones(2, device=d), 1.0, 2.0),
    "a filled mask of floats": lambda d: torch.ones(3, device=d).masked_fill(torch.ones(3, device=d), 1),
    "a mask of floats to scatter": lambda d: torch.ones(3, device=d).masked_scatter(*[torch.ones(3, device=d)] * 2),
    "selected places that are a matrix": lambda d: torch.ones(3, device=d).index_select(
        0, torch.zeros(1, 1, dtype=torch.int64, device=d)
    ),
    "added places that are a matrix": lambda d: torch.ones(3, device=d).index_add(
        0, torch.zeros(1, 1, dtype=torch.int64, device=d), torch.ones(1, device=d)
    ),
    "no bounds": lambda d: torch.ones(3, device=d).clamp(),
    "a normalised shape of another tensor": lambda d: nn.layer_norm(torch.ones(2, 3, device=d), (4,)),
    "a variance of integers": lambda d: torch.ones(3, dtype=torch.int64, device=d).var(),
    "uniform numbers of no range": lambda d: torch.ones(2, device=d).uniform_(2, 1),
    "integers that the dtype lacks": lambda d: torch.randint(0, 300, (2,), dtype=torch.uint8, device=d),
    "a reflection as wide as the line": lambda d: nn.pad(torch.ones(1, 1, 3, device=d), (3, 0), mode="reflect"),
    "a reflection as high as the image": lambda d: nn.pad(torch.ones(1, 3, 3, device=d), (0, 1, 0, 3), mode="reflect"),
    "less than no line": lambda d: nn.pad(torch.ones(1, 1, 3, device=d), (-4, 0), mode="replicate"),
    "ends of another dtype": lambda d: torch.lerp(torch.ones(2, device=d), torch.ones(2, device=d).double(), 0.5),
    "an end of another dtype": lambda d: torch.ones(2, device=d).lerp_(torch.tensor(1.0, device=d).double(), 0.5),
    "weights of another dtype": lambda d: torch.lerp(*[torch.ones(2, device=d)] * 2, torch.ones(2, device=d).double()),
    "listed ends of another dtype": lambda d: torch._foreach_lerp_(
        [torch.ones(2, device=d)], [torch.ones(2, device=d).double()], 0.5
    ),
    "a count of integers": lambda d: torch.binomial(torch.tensor([3], device=d), torch.tensor([0.5], device=d)),
    "chances of integers": lambda d: torch.binomial(torch.tensor([3.0], device=d), torch.tensor([1], device=d)),
    "chances of another dtype": lambda d: torch.binomial(
        torch.tensor([3.0], device=d), torch.tensor([0.5], device=d).double()
    ),
    "weights of integers": lambda d: torch.multinomial(torch.ones(3, dtype=torch.int64, device=d), 1),
    "a window larger than the image": lambda d: nn.max_pool2d(torch.ones(1, 2, 2, device=d), 5),
}


@pytest.mark.parametrize("name", _CALLS)
def test_a_malformed_call_raises_the_type_of_the_cpu(name: str) -> None:
    with pytest.raises(Exception) as expected:  # noqa: PT011  # which error it is, is what the CPU says
        _CALLS[name]("cpu")
    with pytest.raises(type(expected.value)) as found:
        _CALLS[name]("fusewire")
    assert not isinstance(found.value, NotImplementedError)  # which is a RuntimeError


@pytest.mark.parametrize(
    "call",
    [
        lambda d: torch.poisson(torch.ones(3, dtype=torch.int64, device=d)),
        lambda d: torch.lerp(*[torch.ones(2, dtype=torch.int64, device=d)] * 2, 0.5),
    ],
)
def test_dtypes_that_an_op_of_pytorchs_lacks_are_refused_here_too(call: Callable[[str], Any]) -> None:
    for device in ("cpu", "fusewire"):
        with pytest.raises(NotImplementedError):
            call(device)


def test_a_weight_without_axes_may_have_another_dtype() -> None:
    one, two = torch.ones(2, device="fusewire"), torch.full((2,), 2.0, device="fusewire")
    assert torch.lerp(one, two, torch.tensor(0.5, dtype=torch.float64, device="fusewire")).tolist() == [1.5, 1.5]


def test_an_op_without_kernel_names_itself_and_the_way_out() -> None:
    with pytest.raises(NotImplementedError, match=r"aten::igamma.*FUSEWIRE_TORCH_FALLBACK"):
        torch.igamma(torch.ones(2, device="fusewire"), torch.ones(2, device="fusewire"))
