"""Modules keep their parameters when they move to the device or away, as they do between the CPU and a GPU.

PyTorch would make new parameters, because it cannot give a tensor of one kind of device the elements of another kind.
Then an optimizer that was made before would train tensors that the module has no more, and two layers that share a
weight would share it no more. So each old parameter becomes what the new one is.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from fusewire_torch.storage import is_ours


def teach_moving() -> None:
    """Gives PyTorch's method that moves modules the further step. Moves between other devices stay as they were."""
    torch.nn.Module._apply = _keeping_parameters(torch.nn.Module._apply)


def _keeping_parameters(apply: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(apply)
    def applied(self: torch.nn.Module, *arguments: Any, **options: Any) -> Any:
        before = dict(self._parameters)
        result = apply(self, *arguments, **options)
        for name, old in before.items():
            new = self._parameters[name]
            if new is not old and is_ours(new) != is_ours(old):
                if is_lazy(old):  # of whose kind PyTorch makes the new one only if it can move the old one's elements
                    new = type(old)(old.requires_grad, new.device, new.dtype)
                self._parameters[name] = old if _swapped(name, old, new) else new
        return result

    return applied


def _swapped(name: str, old: torch.Tensor, new: torch.Tensor) -> bool:
    """Makes each of two tensors the other one, or warns that PyTorch cannot, as of one with weak references."""
    try:
        torch.utils.swap_tensors(old, new)
    except RuntimeError as error:
        warnings.warn(
            f"the parameter {name!r} is a new one on the device {new.device}, because something else holds the old one "
            f"({error}): make optimizers and share weights after the move",
            stacklevel=2,
        )
        return False
    return True
