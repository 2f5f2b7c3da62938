"""Views: tensors over the same storage. They record nothing."""

from __future__ import annotations

from typing import Any

import torch

from fusewire_torch.dtypes import fusewire_of
from fusewire_torch.storage import array_of, dense_strides, elements_for, held, restrided, viewed
from fusewire_torch.table import Table

TABLE = Table()


_META = torch._C.DispatchKeySet(torch._C.DispatchKey.Meta)
_set = torch.ops.aten.set_.source_Storage_storage_offset

TABLE.bare["as_strided"] = TABLE.bare["_reshape_alias"] = restrided
# PyTorch's own kernel of `_unsafe_view` makes a tensor by itself, of which the storage's elements would not know.
TABLE.bare["view"] = TABLE.bare["_unsafe_view"] = viewed


def by_pytorch(op: Any, *operands: Any) -> torch.Tensor:
    """Runs PyTorch's kernel of an op for tensors without data, which makes views and needs nothing of the device."""
    made: torch.Tensor = op.redispatch(_META, *operands)
    return made


def _restride(x: torch.Tensor, storage: Any, offset: Any, shape: Any, strides: Any) -> torch.Tensor:
    """Makes `x` a view of a storage."""
    held(storage).is_viewed = True
    return by_pytorch(_set, x, storage, offset, shape, strides)


@TABLE.kernel("view.dtype")
def _view_as(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    fusewire_of(dtype)
    array_of(x)  # which defines the elements in their own dtype
    held(x.untyped_storage()).is_viewed = True
    return by_pytorch(torch.ops.aten.view.dtype, x, dtype)


@TABLE.kernel("as_strided_")
def _as_strided_in_place(x: torch.Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> torch.Tensor:
    offset = x.storage_offset() if storage_offset is None else storage_offset
    return _restride(x, x.untyped_storage(), offset, size, stride)


@TABLE.kernel("set_.source_Storage_storage_offset")
def _set_storage(x: torch.Tensor, source: Any, offset: int, size: Any, stride: Any = ()) -> torch.Tensor:
    return _restride(x, source, offset, size, stride)


@TABLE.kernel("set_.source_Storage")
def _set_whole_storage(x: torch.Tensor, source: Any) -> torch.Tensor:
    return _restride(x, source, 0, (elements_for(x.dtype, source),), (1,))


@TABLE.kernel("set_.source_Tensor")
def _set_tensor(x: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    return _restride(x, source.untyped_storage(), source.storage_offset(), source.shape, source.stride())


@TABLE.kernel("resize_")
def _resize(x: torch.Tensor, size: Any, *, memory_format: Any = None) -> torch.Tensor:
    """Gives a tensor another shape. New elements are undefined; the storage is another one if it has to grow."""
    shape = tuple(size)
    if tuple(x.shape) == shape:
        return x
    grown = torch.empty(shape, dtype=x.dtype, device=x.device)
    elements = elements_for(x.dtype, x.untyped_storage())
    kept = min(elements, grown.numel())
    if kept and held(x.untyped_storage()).array is not None:
        flat = restrided(x, (elements,), (1,), 0)
        restrided(grown, (kept,), (1,), 0).copy_(restrided(flat, (kept,), (1,), 0))
    return _restride(x, grown.untyped_storage(), 0, shape, dense_strides(shape))
