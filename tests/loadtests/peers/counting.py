"""A loop that counts: its result tells how many steps were done."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from loadtests.workloads.loops import Functions, Loop


class _Counted(NamedTuple):
    count: Any
    step: Any


def _count(operands: _Counted, steps: Iterable[object], _functions: Functions) -> Any:
    count, step = operands
    for _ in steps:
        count = count + step
    return count


def counting() -> Loop:
    return Loop(_Counted(np.zeros(2, np.float32), np.ones(2, np.float32)), _count)
