"""Replaces, in the key of `x[key]`, arrays that grow by the same step in each iteration of a loop."""

from __future__ import annotations

from typing import Any

from fusewire._api.indexing import CountedIndex
from fusewire._recording.counter_arithmetic import stepped_integer
from fusewire._recording.record_op import Recorded


def with_counted(x: Recorded, key: Any) -> Any:
    """Returns the key of `x[key]`, with a `CountedIndex` for each such array.

    Only the body of a loop has a counter, so that a key of arrays is returned as it is elsewhere.
    """
    if x._recorder.owner.recorder().counter is None:
        return key
    return tuple(map(_counted_item, key)) if isinstance(key, tuple) else _counted_item(key)


def _counted_item(item: Any) -> Any:
    if isinstance(item, slice):
        return slice(_counted(item.start), _counted(item.stop), item.step)
    return _counted(item)


def _counted(item: Any) -> Any:
    integer = stepped_integer(item) if isinstance(item, Recorded) else None
    return item if integer is None else CountedIndex(integer, item)
