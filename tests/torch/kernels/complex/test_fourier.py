"""Fourier transforms are those of the CPU, with their gradients."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

_OF_COMPLEX = ("fft", "ifft", "hfft", "irfft", "fft2", "ifft2", "irfft2", "fftn", "ifftn", "irfftn")
_OF_REAL = ("rfft", "ihfft", "rfft2", "rfftn", "ihfftn")


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(_OF_COMPLEX + _OF_REAL),
    rows=st.integers(2, 6),
    points=st.integers(2, 9),
    norm=st.sampled_from(["backward", "ortho", "forward"]),
)
def test_a_transform_is_that_of_the_cpu(name: str, rows: int, points: int, norm: str) -> None:
    dtype = torch.float64 if name in _OF_REAL else torch.complex128
    there = torch.randn(rows, points, dtype=dtype, generator=torch.Generator().manual_seed(points))
    transform: Callable[..., torch.Tensor] = getattr(torch.fft, name)
    torch.testing.assert_close(transform(there.to("fusewire"), norm=norm).cpu(), transform(there, norm=norm))


@pytest.mark.parametrize("center", [False, True])
def test_a_short_time_transform_goes_there_and_back(center: bool) -> None:
    there = torch.randn(2, 64, generator=torch.Generator().manual_seed(0))
    spectra = []
    for device in ("cpu", "fusewire"):
        window = torch.hann_window(16).add(0.1).to(device)
        x = there.to(device)
        spectrum = torch.stft(x, 16, 4, window=window, center=center, return_complex=True)
        back = torch.istft(spectrum, 16, 4, window=window, center=center)
        torch.testing.assert_close(back.cpu(), there[:, : back.shape[1]], rtol=1e-4, atol=1e-5)
        spectra.append(spectrum.cpu())
    torch.testing.assert_close(*spectra, rtol=1e-4, atol=1e-5)


def test_a_loss_of_spectra_has_the_gradient_of_the_cpu() -> None:
    there = torch.randn(32, generator=torch.Generator().manual_seed(0)).requires_grad_()
    here = there.detach().to("fusewire").requires_grad_()
    for each in (there, here):
        torch.fft.rfft(each, n=40).abs().log1p().sum().backward()
    assert there.grad is not None
    assert here.grad is not None
    torch.testing.assert_close(here.grad.cpu(), there.grad, rtol=1e-4, atol=1e-5)
