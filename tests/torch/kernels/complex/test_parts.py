"""Complex tensors show, share and conjugate their parts as those of the CPU do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

Function = Callable[[torch.Tensor], Any]


def pair(*shape: int, dtype: torch.dtype = torch.complex64) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the same numbers on the CPU and on the device."""
    there = torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(0))
    return there, there.to("fusewire")


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_numbers_come_back_as_they_went(dtype: torch.dtype) -> None:
    there, here = pair(3, 4, dtype=dtype)
    assert here.dtype is dtype
    assert torch.equal(here.cpu(), there)
    assert torch.equal(there.conj().to("fusewire").cpu(), there.conj())
    assert here[0, 0].item() == there[0, 0].item()


_SEEN: dict[str, Function] = {
    "real": lambda z: z.real,
    "imag": lambda z: z.imag,
    "both": torch.view_as_real,
    "both in a line": lambda z: torch.view_as_real(z).reshape(-1)[3:9],
    "conjugate": lambda z: z.conj(),
    "imag of the conjugate": lambda z: z.conj().imag,
    "conjugate of a transpose": lambda z: z.mH[1:],
    "of parts": lambda z: torch.view_as_complex(torch.view_as_real(z) * 2),
    "part of parts": lambda z: torch.view_as_complex(torch.view_as_real(z)[1:].clone())[:, 1],
    "complex": lambda z: torch.complex(z.real, z.imag + 1),
    "polar": lambda z: torch.polar(z.abs(), z.angle()),
}


@pytest.mark.parametrize("name", _SEEN)
def test_a_view_shows_what_it_shows_on_the_cpu(name: str) -> None:
    there, here = pair(3, 4)
    torch.testing.assert_close(_SEEN[name](here).cpu(), _SEEN[name](there).resolve_conj().resolve_neg())


_WRITES: dict[str, Function] = {
    "real": lambda z: z.real.add_(1),
    "an element of the imaginary part": lambda z: z.imag[1].fill_(7),
    "imag of the conjugate": lambda z: z.conj().imag.mul_(3),
    "conjugate": lambda z: z.conj().mul_(1j),
    "element of the conjugate": lambda z: z.conj()[0].fill_(2 + 3j),
    "copy to the conjugate": lambda z: z.conj().copy_(z + 1),
    "copy of the conjugate": lambda z: z.copy_(z.conj()),
    "both": lambda z: torch.view_as_real(z)[1].zero_(),
    "both in a line": lambda z: torch.view_as_real(z).view(-1)[3:8].fill_(5),
    "transpose": lambda z: z.t()[1:].mul_(2j),
}


@pytest.mark.parametrize("name", _WRITES)
def test_a_write_to_a_view_changes_the_numbers(name: str) -> None:
    there, here = pair(3, 4)
    for each in (there, here):
        _WRITES[name](each)
    torch.testing.assert_close(here.cpu(), there)


def test_a_write_to_real_numbers_as_complex_ones_changes_them() -> None:
    there = torch.arange(8.0).reshape(4, 2)
    here = there.to("fusewire")
    for each in (there, here):
        torch.view_as_complex(each)[1:].mul_(1j)
    assert torch.equal(here.cpu(), there)


@pytest.mark.parametrize("function", [lambda x: x * (1 + 2j), lambda x: x**0.5j, lambda x: x + 1j, lambda x: 1j / x])
def test_a_complex_number_makes_real_numbers_complex(function: Function) -> None:
    there = torch.tensor([1.0, 2.0, 3.0])
    torch.testing.assert_close(function(there.to("fusewire")).cpu(), function(there))


@pytest.mark.parametrize(
    "function",
    [
        lambda z: z.abs().square().sum(),
        lambda z: (z @ z.mH).real.sum(),
        lambda z: torch.fft.fft(z).abs().sum(),
        lambda z: (z.exp() * z.conj().sin()).imag.sum(),
        lambda z: torch.view_as_real(z).prod(),
        lambda z: torch.linalg.solve(z[:, :3], z[:, 3:]).angle().sum(),
    ],
)
def test_gradients_are_those_of_the_cpu(function: Function) -> None:
    there, here = (each.requires_grad_() for each in pair(3, 4))
    for each in (there, here):
        function(each).backward()
    assert there.grad is not None
    assert here.grad is not None
    torch.testing.assert_close(here.grad.cpu(), there.grad, rtol=1e-4, atol=1e-4)


def test_random_complex_numbers_have_the_variance_of_real_ones() -> None:
    drawn = torch.randn(20_000, dtype=torch.complex64, device="fusewire").cpu()
    assert abs(float(drawn.abs().square().mean()) - 1) < 0.05
    assert abs(float(drawn.imag.square().mean()) - 0.5) < 0.05
    uniform = torch.rand(1000, dtype=torch.complex64, device="fusewire").cpu()
    assert float(uniform.imag.min()) >= 0
    assert 0.9 < float(uniform.imag.max()) < 1


def test_a_cast_to_real_numbers_keeps_the_real_part_and_warns() -> None:
    there, here = pair(3)
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        assert torch.equal(here.to(torch.float32).cpu(), there.real)


def test_optimizers_step_complex_parameters() -> None:
    there, here = pair(4)
    for each in (there, here):
        parameter = torch.nn.Parameter(each)
        optimizer = torch.optim.Adam([parameter], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (parameter - (1 + 1j)).abs().square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(here.cpu(), there)


def test_a_function_that_has_no_formula_is_refused_by_name() -> None:
    _, here = pair(3)
    with pytest.raises(NotImplementedError, match="aten::_logcumsumexp of complex numbers"):
        torch.logcumsumexp(here, 0)


@pytest.mark.parametrize(
    "call", [lambda z: z < z.conj(), lambda z: torch.complex(z, z), lambda z: torch.view_as_real(z.real)]
)
def test_what_the_cpu_refuses_is_refused(call: Function) -> None:
    there, here = pair(3)
    with pytest.raises(RuntimeError):
        call(there)
    with pytest.raises(RuntimeError):
        call(here)


def test_a_real_view_of_complex_elements_keeps_them_when_it_is_resized() -> None:
    z = torch.tensor([1 + 2j, 3 + 4j]).to("fusewire")
    assert torch.view_as_real(z).resize_(4).tolist() == [1, 2, 3, 4]
    assert torch.view_as_complex(torch.tensor([[1.0, 2], [3, 4]]).to("fusewire")).resize_(1).tolist() == [1 + 2j]


def test_a_tensor_of_two_parts_and_the_parts_do_not_follow_each_other() -> None:
    part = torch.arange(3.0, device="fusewire")
    made = torch.complex(part, part)
    made.real.add_(10)
    part.add_(100)
    assert part.tolist() == [100.0, 101.0, 102.0]
    assert made.tolist() == [10 + 0j, 11 + 1j, 12 + 2j]
