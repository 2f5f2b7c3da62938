"""Tensors that see elements of another dtype, held to PyTorch's on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
import torch

_SIZED = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
_FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128]
_DTYPES = [*_SIZED, *_FLOATS]


def _numbers(dtype: torch.dtype) -> torch.Tensor:
    """Returns a matrix without NaN, whose rows have 32 bytes."""
    raw = torch.randint(0, 128, (4, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    raw[:, 1::2] &= 0x3F  # no float has all bits of an exponent
    return raw.view(dtype)


@pytest.mark.parametrize(("given", "seen"), [*product(_DTYPES, _DTYPES)], ids=str)
def test_a_view_as_another_dtype_is_read_and_written(given: torch.dtype, seen: torch.dtype) -> None:
    there = _numbers(given)
    here = there.to("fusewire")
    assert torch.equal(here.view(seen).cpu(), there.view(seen))
    for each in (here, there):
        each.view(seen)[1:3, ::2] = 1
    assert torch.equal(here.cpu(), there)


def test_bits_that_are_a_nan_are_kept() -> None:
    x = torch.empty(3, device="fusewire")
    x.view(torch.int32).fill_(-1)
    assert x.view(torch.int32).tolist() == [-1, -1, -1]
    assert x.isnan().all()


def test_a_part_of_a_storage_is_seen_as_another_dtype() -> None:
    there = _numbers(torch.float32)
    assert torch.equal(there.to("fusewire")[1:, 2:4].view(torch.int32).cpu(), there[1:, 2:4].view(torch.int32))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: torch.zeros(3, device="fusewire").view(torch.float64), "must be divisible by 2"),
        (lambda: torch.zeros((), device="fusewire").view(torch.int8), "cannot be 0"),
        (lambda: torch.zeros(4, 4, device="fusewire").t().view(torch.float64), "must be 1 to view"),
    ],
)
def test_what_cannot_be_viewed_is_refused_in_pytorchs_words(make: Callable[[], object], text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        make()


def test_undefined_elements_are_counted_in_the_dtype_that_sees_them() -> None:
    storage = torch.empty(4, dtype=torch.float64, device="fusewire").untyped_storage()
    for each in (storage, storage.clone()):
        seen = torch.tensor([], device="fusewire").set_(each)
        assert seen.fill_(1).tolist() == [1] * 8


def test_a_part_of_undefined_elements_is_written_in_another_dtype() -> None:
    x = torch.tensor([], device="fusewire").set_(
        torch.empty(4, dtype=torch.float64, device="fusewire").untyped_storage()
    )
    x[6:] = 3
    assert x[6:].tolist() == [3, 3]
