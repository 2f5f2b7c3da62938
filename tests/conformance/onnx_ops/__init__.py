"""Says for nodes of ONNX what they are in functions of Fusewire, and why some are none.

An entry takes the inputs of a node, where an input that is left out is None, and its attributes by name. It returns
the output, or a tuple of them. The meaning of each op is that of ONNX's operator reference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.conformance.onnx_ops import (
    attention,
    boxes,
    fourier,
    functions,
    images,
    losses,
    moving,
    normalization,
    placing,
    quantization,
    recurrent,
    training,
    windows,
)

_MODULES = (
    attention,
    boxes,
    fourier,
    functions,
    images,
    losses,
    moving,
    normalization,
    placing,
    quantization,
    recurrent,
    training,
    windows,
)

OPS: dict[str, Callable[..., Any]] = {name: entry for module in _MODULES for name, entry in module.OPS.items()}
