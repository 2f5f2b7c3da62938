"""Parts of transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fusewire as fw


def _rotated(
    x: Any,
    cosines: Any,
    sines: Any,
    positions: Any = None,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Any:
    """Turns pairs of elements by an angle that grows with the position. `x` is of rank 4, or its heads are merged."""
    heads = fw.swapaxes(x, 1, 2) if x.ndim == 4 else x.reshape(*x.shape[:2], num_heads, -1)
    cosines, sines = (each if positions is None else fw.take(each, positions, axis=0) for each in (cosines, sines))
    count = rotary_embedding_dim or heads.shape[-1]
    cosines, sines = (each[:, :, None, : count // 2] for each in (cosines, sines))
    turned, rest = heads[..., :count], heads[..., count:]
    left, right = (turned[..., ::2], turned[..., 1::2]) if interleaved else fw.split(turned, 2, axis=-1)
    pair = cosines * left - sines * right, sines * left + cosines * right
    turned = fw.stack(pair, axis=-1).reshape(turned.shape) if interleaved else fw.concat(pair, axis=-1)
    result = fw.concat((turned, rest), axis=-1)
    return fw.swapaxes(result, 1, 2) if x.ndim == 4 else result.reshape(x.shape)


def _undropped(x: Any, ratio: Any = None, training: Any = None, **options: Any) -> Any:
    """Returns the input, as where no network is trained or the ratio is 0, and that all of it is kept."""
    return x, fw.ones(x.shape, dtype=bool)


OPS: dict[str, Callable[..., Any]] = {
    "Dropout": _undropped,
    "RotaryEmbedding": _rotated,
    "SwiGLU": lambda a, b, *, alpha=1.0: a * fw.sigmoid(alpha * a) * b,
}
