"""The integers of a tape, which holds the ops that one thread has recorded, in order.

The records of all ops stand one behind the other in one array. A record is some integers, told apart by their size:

    signature number, operand, …        operand ≥ FIRST_HANDLE: the handle of an array
                                        operand < 0: −1 − index of a value (a scalar, or a slice's start)

The handle of a record's result follows from the index of the record, so it is not stored. Only the owning thread
appends. The owning thread also drops the first records of a long tape, once they are sent.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fusewire_protos.frames import HANDLES_PER_RECORDER

FIRST_HANDLE = HANDLES_PER_RECORDER  # recorders are numbered from 1, so every handle is above any signature number

Integers = npt.NDArray[np.int64]
