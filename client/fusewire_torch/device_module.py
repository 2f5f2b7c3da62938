"""The module `torch.fusewire`: what PyTorch and its users ask of a device."""

from __future__ import annotations

from typing import Any

import torch

from fusewire_torch import random_state
from fusewire_torch.connection import CONNECTION

__all__ = [
    "current_device",
    "device",
    "device_count",
    "empty_cache",
    "get_amp_supported_dtype",
    "get_rng_state",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "set_device",
    "set_rng_state",
    "synchronize",
]


_initialized = True  # `torch.utils.checkpoint` asks for it before it keeps the state of random numbers


class device:  # noqa: N801  # as the modules of other devices call it
    """A context in which a device is the current one. Raises ValueError for another than fusewire:0."""

    def __init__(self, device: Any) -> None:
        set_device(device)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def _is_in_bad_fork() -> bool:
    return False


def _lazy_init() -> None:
    """Does nothing: the first tensor connects."""


def device_count() -> int:
    return 1


def current_device() -> int:
    return 0


def set_device(device: Any) -> None:
    """Accepts the one device. Raises ValueError for another index."""
    index = torch.device(device).index if not isinstance(device, int) else device
    if index not in (None, 0):
        raise ValueError(f'device "fusewire" has one device, fusewire:0; it was asked for fusewire:{index}')


def synchronize(device: Any = None) -> None:
    """Waits until all work recorded so far is done. Without a session there is none."""
    if CONNECTION.session is not None:
        (CONNECTION.session.array(0.0) + 0.0).numpy()


def empty_cache() -> None:
    """Does nothing: the server keeps no memory for tensors that are gone."""


def manual_seed(seed: int) -> None:
    """Makes later random numbers of the device those of this seed, as `torch.manual_seed` does."""
    random_state.seed(seed)


manual_seed_all = manual_seed


def get_rng_state(device: Any = None) -> torch.Tensor:
    """Returns the state of the device's random numbers as a tensor of the CPU."""
    return random_state.saved()


def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
    random_state.restore(state)


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.float16, torch.bfloat16]


def is_bf16_supported() -> bool:
    return True
