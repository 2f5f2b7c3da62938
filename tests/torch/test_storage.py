"""Views read and write the array of their storage."""

from __future__ import annotations

import pytest
import torch


def pair(*shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the same tensor on the CPU and on the device."""
    there = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    return there, there.to("fusewire")


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t(),
        lambda x: x[1:, ::2],
        lambda x: x[:, 1],
        lambda x: x.unsqueeze(0).expand(2, 3, 4),
        lambda x: x.diagonal(),
        lambda x: x.reshape(2, 6),
        lambda x: x.unfold(1, 2, 1),
    ],
)
def test_a_view_shows_the_elements_that_it_shows_on_the_cpu(view: object) -> None:
    assert callable(view)
    there, here = pair(3, 4)
    assert torch.equal(view(here).cpu(), view(there))


@pytest.mark.parametrize(
    "view",
    [
        lambda x: torch.ops.aten._unsafe_view(x, (2, 6)),
        lambda x: torch.ops.aten._reshape_alias(x, (12,), (1,)),
        lambda x: x.as_strided((2,), (3,), 1),
        lambda x: x.unbind()[1],
        lambda x: torch.unsafe_split(x, 1)[1],
        lambda x: x.resize_(2, 6),
        lambda x: x.resize_(2),
        lambda x: x.t_(),
        lambda x: x.unsqueeze_(0),
        lambda x: x.squeeze_(),
        lambda x: x.unflatten(1, (2, 2)),
        lambda x: x.set_(x.untyped_storage(), 1, (2,), (2,)),
    ],
)
def test_what_sees_a_storage_otherwise_sees_later_writes_too(view: object) -> None:
    assert callable(view)
    there, here = pair(3, 4)
    for x in (there, here):
        view(x).add_(1)
    assert torch.equal(view(here).cpu(), view(there))


def test_negative_strides_are_refused() -> None:
    _, here = pair(4)
    with pytest.raises(RuntimeError, match="Negative strides"):
        here.as_strided((2,), (-1,), 3)


def test_writing_to_a_view_changes_the_tensor_and_other_views() -> None:
    there, here = pair(3, 4)
    for x in (there, here):
        rows = x[1:]
        x.t()[2] = 7
        rows[:, 0] += 1
    assert torch.equal(here.cpu(), there)


def test_a_clone_does_not_follow_its_source() -> None:
    there, here = pair(3)
    copy = here.clone()
    here += 1
    assert torch.equal(copy.cpu(), there)


def test_undefined_elements_have_a_value() -> None:
    assert torch.empty(3, device="fusewire").cpu().shape == (3,)


def test_a_tensor_that_grows_keeps_its_elements() -> None:
    there, here = pair(3)
    here.resize_(5)
    assert torch.equal(here.cpu()[:3], there)


def test_a_view_made_in_inference_mode_is_as_its_tensor() -> None:
    parameter = torch.nn.Parameter(torch.arange(6.0, device="fusewire").reshape(2, 3))
    with torch.inference_mode():
        row = parameter[1]
        made = torch.ones(2, 3, device="fusewire")
        assert not row.is_inference()
        assert made[0].is_inference()
        assert (row + made[0]).tolist() == [4.0, 5.0, 6.0]
        parameter[0] = 7.0
        assert parameter.t()[0].tolist() == [7.0, 3.0]
    assert parameter[1].requires_grad


@pytest.mark.parametrize("given", [{}, {"storage_offset": 3}])
def test_a_strided_scatter_writes_to_what_a_view_shows(given: dict[str, int]) -> None:
    there, here = pair(5, 4)
    scattered = [torch.as_strided_scatter(x[1:4].t(), x[0, :2], (2,), (4,), **given).cpu() for x in (there, here)]
    assert torch.equal(scattered[1], scattered[0])
