"""The arguments of a step: what tells one recording from another, and what stands for them while it is recorded."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch

from fusewire import ArgumentError, Array
from fusewire._api.recorded_once.nested import flatten, unflatten
from fusewire_torch.storage import DEVICE, array_of, is_ours, write


class Arguments:
    """The arguments of one call. `tensors` are those among the leaves, each once, and `arrays` their elements."""

    def __init__(self, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        self.leaves, self._form = flatten((given, named))
        self.tensors: list[torch.Tensor] = []
        self._places: list[int] = []  # for each tensor among the leaves its place among `tensors`
        places: dict[int, int] = {}
        for leaf in self.leaves:
            if isinstance(leaf, torch.Tensor):
                _check(leaf)
                place = places.setdefault(id(leaf), len(self.tensors))
                if place == len(self.tensors):
                    self.tensors.append(leaf)
                self._places.append(place)
        self.arrays: list[Array] = [array_of(each) for each in self.tensors]

    def key(self) -> Hashable:
        """Returns what is equal in calls that share a recording. Raises ArgumentError for a leaf without a hash."""
        key = (self._form, tuple([_key(each) for each in self.leaves]), tuple(self._places), _modes())
        try:
            hash(key)
        except TypeError as error:
            raise ArgumentError(f"an argument of a step is neither a tensor nor hashable: {error}") from None
        return key

    def substituted(self, stand_ins: Sequence[torch.Tensor]) -> list[Any]:
        """Returns the leaves with other tensors in place of `tensors`."""
        places = iter(self._places)
        return [stand_ins[next(places)] if isinstance(each, torch.Tensor) else each for each in self.leaves]

    def called_with(self, leaves: Sequence[Any], call: Callable[..., Any]) -> Any:
        """Calls a function with these leaves in place of the arguments."""
        given, named = unflatten(self._form, list(leaves))
        return call(*given, **named)

    def check_may_write(self, place: int) -> None:
        """Raises ArgumentError if another argument shows elements of this one too."""
        storage = self.tensors[place].untyped_storage()
        if sum(each.untyped_storage() is storage for each in self.tensors) > 1:
            raise ArgumentError("a step writes to an argument that shares elements with another argument; pass a clone")

    def write(self, place: int, array: Array) -> None:
        """Writes to the elements of a tensor."""
        write(self.tensors[place], array)


def _check(tensor: torch.Tensor) -> None:
    if not is_ours(tensor):
        raise ArgumentError(
            f"a tensor of the device {tensor.device} among the arguments of a step, whose elements a recording would "
            f"keep: move it by x.to({DEVICE!r}) before"
        )
    if tensor.requires_grad:
        raise ArgumentError("a tensor that requires a gradient among the arguments of a step; pass x.detach()")


def _key(leaf: Any) -> Hashable:
    if isinstance(leaf, torch.Tensor):
        return leaf.dtype, leaf.shape
    return type(leaf), repr(leaf) if isinstance(leaf, float) else leaf  # 0.0 equals −0.0, and NaN no NaN


def _modes() -> tuple[Any, ...]:
    """Returns the modes of this thread that decide which ops PyTorch records."""
    casts = torch.is_autocast_enabled(DEVICE)
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
        torch.get_autocast_dtype(DEVICE) if casts else None,
    )
