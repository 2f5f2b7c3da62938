"""The optimizers of PyTorch's own table, `optim_db`, as entries like those of `op_db`.

An optimizer is a function of parameters, data and its options: it returns the losses of a few steps of a small net,
and the parameters afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.testing._internal.common_device_type import tol, toleranceOverride
from torch.testing._internal.common_optimizers import optim_db
from torch.testing._internal.opinfo.core import SampleInput

STEPS = 5
_OF_MATRICES = ("Muon",)  # optimizers that take no vectors
# A line search takes other steps after other roundings: the CPU's float32 is as far from float64, 0.5 % of a loss. Muon
# computes in bfloat16, whose last bit is 8e-3.
_ROUGH = {"LBFGS": tol(rtol=1e-2, atol=1e-2), "Muon": tol(rtol=1e-3, atol=1e-3)}


@dataclass(frozen=True)
class OptimizerEntry:
    """What `op_samples` asks of an op, for a class of optimizers."""

    info: Any
    variant_test_name: str = ""
    supports_autograd: bool = False  # of samples: the gradients are within the steps

    @property
    def decorators(self) -> list[Any]:
        rough = _ROUGH.get(self.info.optim_cls.__name__)
        return [] if rough is None else [toleranceOverride({torch.float32: rough})]

    @property
    def name(self) -> str:
        return f"optim.{self.info.optim_cls.__name__}"

    @property
    def op(self) -> Any:
        return trained

    def supported_dtypes(self, device: str) -> Any:
        return (torch.float32,)

    def sample_inputs(self, device: str, dtype: torch.dtype, *, requires_grad: bool = False) -> Iterator[SampleInput]:
        """Yields all options of the table: for one tensor at a time, for lists, and fused where PyTorch has that."""
        ways = [way for way in ("foreach", "fused") if way in self.info.supported_impls]
        for given in self.info.optim_inputs_func("cuda"):  # with those options that only devices have
            for way in ({}, *({way: True} for way in ways)):
                if "fused" in way and "capturable" in given.kwargs:
                    continue
                x, y = torch.randn(8, 4, dtype=dtype), torch.randn(8, 3, dtype=dtype)
                yield SampleInput(self._parameters(dtype), args=(self.info.optim_cls, x, y, {**given.kwargs, **way}))

    def _parameters(self, dtype: torch.dtype) -> list[torch.Tensor]:
        shapes = [(4, 6), (6, 3)] if self.info.optim_cls.__name__ in _OF_MATRICES else [(4, 6), (6, 3), (3,)]
        return [torch.randn(shape, dtype=dtype) for shape in shapes]


def trained(parameters: list[torch.Tensor], kind: Any, x: torch.Tensor, y: torch.Tensor, options: Any) -> Any:
    """Returns the losses of steps of an optimizer, and the parameters behind the last one."""
    weights = [each.clone().requires_grad_() for each in parameters]
    if x.is_cpu:  # where PyTorch has no such optimizers
        options = {**options, "capturable": False} if "capturable" in options else options
    optimizer = kind(weights, **options)

    def loss() -> Any:
        optimizer.zero_grad()
        found = (_net(x, weights) - y).square().mean()
        found.backward()
        return found

    losses = [optimizer.step(loss).detach() for _ in range(STEPS)]
    return losses, [each.detach() for each in weights]


def _net(x: torch.Tensor, weights: list[torch.Tensor]) -> torch.Tensor:
    hidden = torch.tanh(x @ weights[0]) @ weights[1]
    return hidden + weights[2] if len(weights) > 2 else hidden


OPTIMIZERS = [OptimizerEntry(info) for info in optim_db]
