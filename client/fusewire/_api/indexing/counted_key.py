"""Replaces, in the key of `x[key]`, arrays that grow by the same step in each iteration of a loop."""

from __future__ import annotations

from typing import Any

from fusewire._api.indexing.keys import CountedIndex
from fusewire._recording.counter_arithmetic import stepped_integer
from fusewire._recording.record_op import Recorded


def with_counted(x: Recorded, key: Any) -> Any:
    """Returns the key of `x[key]`, with a `CountedIndex` for each such array.

    Only the body of a loop has a counter, so that a key of arrays is returned as it is elsewhere.
    """
    recorder = x._recorder.owner.recorder()
    if recorder.counter is None:
        return key

    def counted(item: Any) -> Any:
        if isinstance(item, slice):
            return slice(counted(item.start), counted(item.stop), item.step)
        integer = stepped_integer(item, recorder) if isinstance(item, Recorded) else None
        return item if integer is None else CountedIndex(integer, item)

    return tuple(map(counted, key)) if isinstance(key, tuple) else counted(key)
