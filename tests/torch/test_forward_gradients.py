"""Forward differentiation, whose tangents are laid out as the tensors that they belong to."""

from __future__ import annotations

import pytest
import torch
from torch.func import hessian, jacfwd, jvp, vmap

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # by PyTorch itself

ROWS = torch.arange(12.0).reshape(3, 4).sin()


def _tanh_of_product(x: torch.Tensor) -> torch.Tensor:
    return (ROWS.to(x.device) @ x).tanh()


@pytest.mark.parametrize(
    "view", [lambda rows: rows[1], lambda rows: rows[:, 2:].t()[1], lambda rows: rows[1].expand(4)]
)
@pytest.mark.parametrize(
    "transform",
    [
        lambda x: jvp(_tanh_of_product, (x,), (x.cos(),))[1],
        lambda x: vmap(lambda tangent: jvp(_tanh_of_product, (x,), (tangent,))[1])(torch.stack([x.cos(), x.sin()])),
        jacfwd(_tanh_of_product),
        hessian(lambda x: _tanh_of_product(x).sum()),
    ],
)
def test_a_view_has_the_forward_gradient_that_it_has_on_the_cpu(view: object, transform: object) -> None:
    assert callable(view)
    assert callable(transform)
    rows = torch.arange(16.0).reshape(4, 4).cos()
    torch.testing.assert_close(transform(view(rows.to("fusewire"))).cpu(), transform(view(rows)))


@pytest.mark.parametrize("device", ["cpu", "fusewire"])
def test_a_write_to_a_view_changes_the_tangent_of_its_base(device: str) -> None:
    def with_two_replaced(given: torch.Tensor) -> torch.Tensor:
        base = torch.ones(6, device=device)
        base[2:4].copy_(given)
        return base

    point, direction = torch.full((2,), 2.0, device=device), torch.full((2,), 3.0, device=device)
    value, tangent = jvp(with_two_replaced, (point,), (direction,))[:2]
    assert value.tolist() == [1, 1, 2, 2, 1, 1]
    assert tangent.tolist() == [0, 0, 3, 3, 0, 0]
