"""Groups values by the places to which they go. Those of one place are a segment, in which they keep their order."""

from __future__ import annotations

from typing import Any

from fusewire._api.ops.operations import astype, take_places
from fusewire._recording.record_op import apply
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME

_MOST_SHORT = 2**31 - 1  # places of 32 bits


class Segments:
    """The segments of values that go to `places`, a vector of integers on the server, on an axis of `length`.

    Values whose places are not on the axis are in no segment.
    """

    def __init__(self, places: Any, length: int) -> None:
        if length <= _MOST_SHORT:  # which are sorted sooner; what does not fit is on no place all the same
            places = astype(apply(BY_NAME["clip"], (places, -1, length)), dtypes.int32)
        self._order = apply(BY_NAME["argsort"], (places,), (0, False))
        self._ascending = take_places(places, self._order, 0)
        self._length = length

    def reduced(self, op: str, values: Any, axis: int) -> Any:
        """Returns what `op`, such as segment_sum, makes of each segment. `axis` of `values` is that of the places."""
        return apply(BY_NAME[op], (take_places(values, self._order, axis), self._ascending), (axis, self._length))

    def last(self) -> Any:
        """Returns for each place of the axis the number of its last value, counted from 1, or 0 if it has no value."""
        return apply(BY_NAME["segment_max"], (self._order + 1, self._ascending), (0, self._length))
