"""What programs get: a way to upload data, and data drawn by a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Upload = Callable[[npt.NDArray[Any]], Any]  # with NumPy alone, it copies


def drawn(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)
