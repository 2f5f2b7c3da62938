"""Runs a block of a transformer: attention of several heads, and a network for each place, both around the input.

Source: A. Vaswani et al., Attention is all you need, NeurIPS 2017, with the norms ahead of the parts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

EPSILON = 1e-5


class Block(NamedTuple):
    """Weights: queries, keys and values (width, 3 · width), output (width, width), and the network's two layers."""

    attended: Any
    output: Any
    wide: Any
    narrow: Any


def block(width: int, seed: int = 0) -> Block:
    """Returns random weights, as NumPy arrays of float64."""
    random = np.random.default_rng(seed)
    shapes = ((width, 3 * width), (width, width), (width, 4 * width), (4 * width, width))
    return Block(*[random.standard_normal(shape) / shape[0] ** 0.5 for shape in shapes])


def passed(xp: Any, block: Block, x: Any, heads: int) -> Any:
    """Returns the output (batch, places, width) for an input of this shape. A place sees itself and those before it."""
    x = x + _attention(xp, block, _normed(xp, x), heads)
    hidden = _normed(xp, x) @ block.wide
    return x + (hidden / (1.0 + xp.exp(-1.702 * hidden))) @ block.narrow


def _normed(xp: Any, x: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / xp.sqrt((centred * centred).mean(axis=-1, keepdims=True) + EPSILON)


def _attention(xp: Any, block: Block, x: Any, heads: int) -> Any:
    batch, places, width = x.shape
    parts = (x @ block.attended).reshape(batch, places, 3, heads, width // heads)
    query, key, value = [parts[:, :, part].transpose(0, 2, 1, 3) for part in range(3)]
    scores = query @ key.swapaxes(-1, -2) / (width // heads) ** 0.5
    order = xp.arange(places)
    scores = xp.where(order[None, :] <= order[:, None], scores, -1e9)
    weights = xp.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = weights / weights.sum(axis=-1, keepdims=True) @ value
    return mixed.transpose(0, 2, 1, 3).reshape(batch, places, width) @ block.output


if __name__ == "__main__":
    import fusewire as fw

    with fw.connect():
        x = fw.random.default_rng(0).standard_normal((4, 32, 64))
        print(passed(fw, Block(*map(fw.asarray, block(64))), x, 8)[0, -1, :5].numpy())
