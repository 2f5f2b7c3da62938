"""Elements by their places: gathered, scattered, chosen by indices and masks."""

from __future__ import annotations

from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire._api.ops.strided import view_of, with_view
from fusewire_torch.storage import array_of, elements_for, is_ours, restrided, write
from fusewire_torch.table import Table

TABLE = Table()


@TABLE.value("index_select")
def _index_select(x: torch.Tensor, dim: int, index: torch.Tensor) -> Array:
    _check_vector(index, "index_select")
    if not x.dim():
        return array_of(x)
    return fw.take(array_of(x), array_of(index).reshape(-1), axis=dim)


def _check_vector(index: torch.Tensor, name: str) -> None:
    if index.dim() > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector, not of {index.dim()} axes")


@TABLE.value("gather")
def _gather(x: torch.Tensor, dim: int, index: torch.Tensor, *, sparse_grad: bool = False) -> Array:
    _check_index(x, dim, index)
    array, places = at_least_vector(array_of(x)), at_least_vector(array_of(index))
    if not places.size:
        return fw.zeros(tuple(index.shape), array.dtype, device=array.session)
    return array[keys_along(places, dim)].reshape(tuple(index.shape))


def _check_index(x: torch.Tensor, dim: int, index: torch.Tensor) -> None:
    """Raises PyTorch's error for an index of other axes, or longer ones but for `dim`. Its elements are not read."""
    if index.numel() and max(x.dim(), 1) != max(index.dim(), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for axis in range(index.dim()):
        if index.numel() and axis != dim % index.dim() and index.shape[axis] > x.shape[axis]:
            raise RuntimeError(
                f"Size does not match at dimension {axis} expected index {list(index.shape)} to be no larger than self "
                f"{list(x.shape)} apart from dimension {dim}"
            )


def at_least_vector(array: Array) -> Array:
    """Returns an array with an axis at least: PyTorch takes a number for a vector of one element."""
    return array if array.ndim else array.reshape(1)


def keys_along(places: Array, dim: int) -> tuple[Any, ...]:
    """Returns the key of elements that differ from their places in `places` only along one axis."""
    rank = places.ndim
    axes = [
        fw.arange(length, device=places.session).reshape((1,) * axis + (length,) + (1,) * (rank - axis - 1))
        for axis, length in enumerate(places.shape)
    ]
    axes[dim % rank] = places
    return tuple(axes)


@TABLE.value("scatter.src", "scatter.value")
def _scatter(x: torch.Tensor, dim: int, index: torch.Tensor, source: Any) -> Array:
    return _scattered(x, dim, index, source, "set")


@TABLE.value("scatter_add")
def _scatter_add(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> Array:
    return _scattered(x, dim, index, source, "add")


@TABLE.value("scatter.reduce", "scatter.value_reduce")
def _scatter_by(x: torch.Tensor, dim: int, index: torch.Tensor, source: Any, *, reduce: str) -> Array:
    return _scattered(x, dim, index, source, reduce)


def _scattered(x: torch.Tensor, dim: int, index: torch.Tensor, source: Any, how: str) -> Array:
    if isinstance(source, torch.Tensor) and source.dtype is not x.dtype and source.dim():
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    array, places = array_of(x), at_least_vector(array_of(index))
    if not places.size:
        return array
    elements = at_least_vector(array).at[keys_along(places, dim)]
    changed: Array = getattr(elements, how)(_source(source, places))
    return changed.reshape(array.shape)


def _source(source: Any, places: Array) -> Any:
    """Returns the part of a tensor that has a place, or a number."""
    if not isinstance(source, torch.Tensor):
        return source
    if not is_ours(source):
        return source.item()
    array = at_least_vector(array_of(source))
    return array if array.shape == places.shape else array[tuple(slice(length) for length in places.shape)]


@TABLE.value("index_add")
def _index_add(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, *, alpha: Any = 1) -> Array:
    _check_vector(index, "index_add_")
    added = array_of(source) if alpha == 1 else array_of(source) * alpha
    changed: Array = _at(x, dim, index).add(_like_rows(added, x))
    return changed.reshape(tuple(x.shape))


@TABLE.value("index_copy")
def _index_copy(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> Array:
    _check_vector(index, "index_copy_")
    changed: Array = _at(x, dim, index).set(_like_rows(array_of(source), x))
    return changed.reshape(tuple(x.shape))


def _at(x: torch.Tensor, dim: int, index: torch.Tensor) -> Any:
    """Returns the elements of `x` at places along one axis."""
    key = (slice(None),) * (dim % max(x.dim(), 1)) + (array_of(index).reshape(-1),)
    return at_least_vector(array_of(x)).at[key]


def _like_rows(source: Array, x: torch.Tensor) -> Array:
    return source if x.dim() else source.reshape(-1)


@TABLE.value("index.Tensor")
def _index(x: torch.Tensor, indices: Any) -> Array:
    return array_of(x)[_key(indices)]


@TABLE.kernel("index_put_", "_index_put_impl_")
def _index_put(
    x: torch.Tensor, indices: Any, values: torch.Tensor, accumulate: bool = False, unsafe: bool = False
) -> torch.Tensor:
    given = array_of(values) if is_ours(values) else values.item()
    place = array_of(x).at[_key(indices)]
    return write(x, place.add(given) if accumulate else place.set(given))


def _key(indices: Any) -> tuple[Any, ...]:
    """Returns the key of NumPy for PyTorch's list of index tensors, where None is a whole axis."""
    return tuple(slice(None) if each is None else _index_array(each) for each in indices)


def _index_array(index: torch.Tensor) -> Any:
    return array_of(index) if is_ours(index) else index.numpy()


@TABLE.value("as_strided_scatter")
def _as_strided_scatter(
    x: torch.Tensor, source: torch.Tensor, size: Any, stride: Any, storage_offset: int | None = None
) -> Array:
    """Writes to a view of all that the storage of `x` holds, which `x` may see in part or by other strides."""
    first = int(x.storage_offset())
    whole = array_of(restrided(x, (elements_for(x.dtype, x.untyped_storage()),), (1,), 0))
    offset = first if storage_offset is None else storage_offset
    written = with_view(whole, array_of(source), tuple(size), tuple(stride), offset)
    return view_of(written, tuple(x.shape), x.stride(), first)


@TABLE.value("nonzero")
def _nonzero(x: torch.Tensor) -> Array:
    """Waits: the shape of the result depends on the elements."""
    found = fw.nonzero(at_least_vector(array_of(x)))
    return fw.stack(found, axis=1)[:, : x.dim()]


@TABLE.value("masked_select")
def _masked_select(x: torch.Tensor, mask: torch.Tensor) -> Array:
    array, chosen = fw.broadcast_arrays(array_of(x), array_of(mask))
    return array[chosen]


@TABLE.value("select_backward")
def _select_backward(grad: torch.Tensor, input_sizes: Any, dim: int, index: int) -> Array:
    given = array_of(grad)
    nothing = fw.zeros(tuple(input_sizes), given.dtype, device=given.session)
    return nothing.at[(slice(None),) * (dim % len(input_sizes)) + (index,)].set(given)


@TABLE.value("slice_backward")
def _slice_backward(grad: torch.Tensor, input_sizes: Any, dim: int, start: int, end: int, step: int) -> Array:
    given = array_of(grad)
    nothing = fw.zeros(tuple(input_sizes), given.dtype, device=given.session)
    part = slice(start, min(end, input_sizes[dim]), step)
    return nothing.at[(slice(None),) * (dim % len(input_sizes)) + (part,)].set(given)
