"""Complex tensors and their parts: views of one as the other, conjugates, numbers of size and angle."""

from __future__ import annotations

from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire._api.complex.complex_array import ComplexArray
from fusewire_torch.kernels.arrangement.views import by_pytorch
from fusewire_torch.kernels.elementwise.pointwise import elementwise
from fusewire_torch.storage import array_of, held
from fusewire_torch.table import Table

TABLE = Table()


def _view(name: str, *, is_turned: bool) -> Any:
    """Returns the kernel of a view that PyTorch makes by itself, as it does of tensors without data."""
    op = getattr(torch.ops.aten, name).default

    def kernel(x: torch.Tensor) -> torch.Tensor:
        array_of(x)  # which defines the elements in their own dtype
        elements = held(x.untyped_storage())
        elements.is_viewed = True
        elements.is_turned = elements.is_turned or is_turned
        return by_pytorch(op, x)

    return kernel


for _name in ("view_as_real", "view_as_complex"):
    TABLE.kernels[_name] = _view(_name, is_turned=False)
for _name in ("_conj", "_neg_view"):
    TABLE.kernels[_name] = _view(_name, is_turned=True)


def _conjugate(x: Any) -> Any:
    return x.conj() if isinstance(x, ComplexArray) else x


TABLE.values["_conj_physical"] = elementwise(_conjugate)


@TABLE.value("complex")
def _of_parts(real: torch.Tensor, imag: torch.Tensor) -> Array:
    _check_alike(real, imag, "complex")
    # The parts need no copies, because an array that a tensor has never changes.
    return ComplexArray(*fw.broadcast_arrays(array_of(real), array_of(imag)))


@TABLE.value("polar")
def _polar(size: torch.Tensor, angle: torch.Tensor) -> Array:
    _check_alike(size, angle, "polar")
    length, turn = array_of(size), array_of(angle)
    return ComplexArray(length * fw.cos(turn), length * fw.sin(turn))


def _check_alike(x: torch.Tensor, y: torch.Tensor, name: str) -> None:
    if x.dtype not in (torch.float32, torch.float64):
        kind = torch._prims_common.dtype_to_type(x.dtype).__name__.capitalize()
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {kind} for {name}")
    if x.dtype is not y.dtype:
        raise RuntimeError(f"{name} takes operands of one dtype, not {x.dtype} and {y.dtype}")


@TABLE.value("vdot")
def _vdot(x: torch.Tensor, y: torch.Tensor) -> Array:
    return fw.conj(array_of(x)) @ array_of(y)
