"""Direct calls of a storage of the device work or raise; none ends the process."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import pytest
import torch


def _tensor() -> torch.Tensor:
    return torch.tensor([1.0, 2.0, 3.0], device="fusewire")


def _storage() -> Any:
    return _tensor().untyped_storage()


_REFUSED: dict[str, Callable[[], Any]] = {
    "made by size": lambda: torch.UntypedStorage(8, device="fusewire"),
    "made of nothing": lambda: torch.UntypedStorage(device=torch.device("fusewire")),
    "made of values": lambda: torch.UntypedStorage([1, 2], device="fusewire"),
    "made with a dtype": lambda: torch.TypedStorage(4, dtype=torch.float32, device="fusewire"),
    "made shared": lambda: torch.UntypedStorage._new_shared(8, device="fusewire"),
    "moved": lambda: torch.UntypedStorage(8).to(device="fusewire"),
    "an element": lambda: _storage()[0],
    "a list": lambda: _storage().tolist(),
    "bytes": lambda: bytes(_storage()),
    "pickled": lambda: pickle.dumps(_storage()),
    "saved": lambda: torch.save(_storage(), io.BytesIO()),
    "shared": lambda: ForkingPickler.dumps(_tensor()),
    "a pointer": lambda: _storage().data_ptr(),
    "written": lambda: _storage().copy_(torch.UntypedStorage(12)),
    "an element written": lambda: _storage().__setitem__(0, 1),
    "filled": lambda: _storage().fill_(0),
    "resized": lambda: _storage().resize_(24),
    "swapped": lambda: _storage().byteswap(torch.float32),
    "another one": lambda: _storage().new(),
    "in a file": lambda: _storage()._write_file(io.BytesIO(), True, True, 1),
    "a capsule": lambda: torch.to_dlpack(_tensor()),
    "a capsule for PyTorch": lambda: torch.from_dlpack(_tensor()),
    "a capsule for NumPy": lambda: np.from_dlpack(_tensor()),
}


@pytest.mark.parametrize("call", _REFUSED.values(), ids=_REFUSED.keys())
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_a_call_that_needs_memory_is_refused_with_the_way_out(call: Callable[[], Any]) -> None:
    with pytest.raises(NotImplementedError, match=r"x\.cpu\(\)"):
        call()


def test_a_storage_is_read_by_way_of_the_cpu() -> None:
    there = torch.tensor([1.0, 2.0, 3.0]).untyped_storage().tolist()
    storage = _storage()
    assert storage.cpu().tolist() == there
    assert storage.to(device="cpu").tolist() == there
    assert torch.UntypedStorage(12).copy_(storage).tolist() == there


def test_a_copied_storage_does_not_follow_its_source() -> None:
    tensor = _tensor()
    copies = [tensor.untyped_storage().clone(), copy.copy(tensor.untyped_storage())]
    copies.append(copy.deepcopy(tensor.untyped_storage()))
    before = tensor.untyped_storage().cpu().tolist()
    tensor.zero_()
    assert [each.cpu().tolist() for each in copies] == [before] * 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_a_storage_has_the_bytes_of_its_elements(dtype: torch.dtype) -> None:
    for make in (torch.ones, torch.empty):
        storage = make(5, device="fusewire", dtype=dtype).untyped_storage()
        assert len(storage) == storage.nbytes() == storage.size() == 5 * dtype.itemsize
        assert storage.cpu().nbytes() == storage.nbytes()
        assert f"of size {storage.nbytes()}" in repr(storage)
        assert not storage.is_pinned()


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_a_storage_with_a_dtype_shows_its_elements() -> None:
    storage = _tensor().storage()
    storage[1] = 7.0
    assert storage.tolist() == storage.cpu().tolist() == storage.clone().tolist() == [1.0, 7.0, 3.0]


def test_a_storage_is_seen_in_another_dtype() -> None:
    seen = torch.tensor([], dtype=torch.uint8, device="fusewire").set_(_storage())
    assert seen.tolist() == torch.tensor([1.0, 2.0, 3.0]).view(torch.uint8).tolist()


def test_a_storage_of_another_device_is_refused() -> None:
    with pytest.raises(RuntimeError, match="a storage on device cpu"):
        _tensor().set_(torch.ones(3))


def test_storages_of_the_cpu_are_called_as_before() -> None:
    storage = torch.UntypedStorage([1, 2, 3])
    assert storage.clone().tolist() == [1, 2, 3]
    assert storage.new().nbytes() == 0
    assert torch.from_dlpack(torch.to_dlpack(torch.ones(2))).tolist() == [1.0, 1.0]
    shared = pickle.loads(ForkingPickler.dumps(torch.ones(2)))  # noqa: S301  # our own
    assert shared.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "write",
    [
        lambda x: torch.add(x, x, out=torch.ones(3)),
        lambda x: torch.max(x, 0, out=(torch.ones(()), torch.ones((), dtype=torch.int64))),
        lambda x: torch.ones(()).add_(x[0]),
        lambda x: torch._foreach_add_([torch.ones(())], [x[0]]),
    ],
)
def test_a_result_for_a_tensor_of_the_cpu_is_refused(write: Callable[[torch.Tensor], Any]) -> None:
    with pytest.raises(RuntimeError, match="on the same device"):
        write(_tensor())
