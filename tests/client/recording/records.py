"""Records of a tape as tuples of integers, as tests write them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from fusewire._recording.tape import Integers

Record = tuple[int, ...]


def flatten(records: Sequence[Record]) -> Integers:
    """Returns the integers of all records, one behind the other."""
    return np.fromiter(chain.from_iterable(records), np.int64)
