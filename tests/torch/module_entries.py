"""The modules of PyTorch's own table, `module_db`, as entries like those of `op_db`.

A module is a function of its parameters, buffers and inputs. It returns its result and what its buffers have become,
so that both are compared, and so are the gradients of parameters and inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.opinfo.core import SampleInput
from torch.utils._pytree import tree_map


@dataclass(frozen=True)
class ModuleEntry:
    """What `op_samples` asks of an op, for a class of modules."""

    info: Any
    variant_test_name: str = ""
    supports_autograd: bool = True
    decorators: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        return str(self.info.name).replace("_", ".", 1)

    @property
    def op(self) -> Any:
        return called

    def supported_dtypes(self, device: str) -> Any:
        return self.info.dtypes

    def sample_inputs(self, device: str, dtype: torch.dtype, *, requires_grad: bool = False) -> Iterator[SampleInput]:
        """Yields the module of each constructor's input while it trains, and while it evaluates."""
        for training in (True, False):
            options = {"device": device, "dtype": dtype, "requires_grad": requires_grad, "training": training}
            for given in self.info.module_inputs_func(self.info, **options):
                yield _sample(self.info, given, dtype, training)


def _sample(info: Any, given: Any, dtype: torch.dtype, training: bool) -> SampleInput:
    made, inputs = given.constructor_input, given.forward_input
    module = info.module_cls(*made.args, **made.kwargs).to(dtype).train(training)
    if info.is_lazy:  # its first call makes its parameters
        module(*tree_map(_detached, inputs.args), **tree_map(_detached, inputs.kwargs))
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    args, kwargs = tree_map(_leaf, inputs.args), tree_map(_leaf, inputs.kwargs)
    return SampleInput(state, args=(module, *args), kwargs=kwargs)


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value


def _leaf(value: Any) -> Any:
    """Returns a tensor that was computed from no other one, as are those of the device."""
    return value.detach().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value


def called(state: dict[str, torch.Tensor], module: nn.Module, *arguments: Any, **options: Any) -> Any:
    """Returns the result of a module with these parameters and buffers, and its buffers afterwards."""
    names = {name for name, _ in module.named_buffers()}
    buffers = {name: state[name].clone() for name in names}
    result = torch.func.functional_call(module, {**state, **buffers}, arguments, options)
    return result, buffers


MODULES = [ModuleEntry(info) for info in module_db]
