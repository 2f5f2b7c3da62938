"""Runs a gated recurrent unit over sequences, one step after another.

Source: K. Cho et al., Learning phrase representations using RNN encoder-decoder for statistical machine translation,
EMNLP 2014.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Cell(NamedTuple):
    """Weights of the input (width, 3 · units) and of the state (units, 3 · units), and the biases of both."""

    of_input: Any
    of_state: Any
    input_bias: Any
    state_bias: Any


def cell(width: int, units: int, seed: int = 0) -> Cell:
    """Returns random weights, as NumPy arrays of float64."""
    random = np.random.default_rng(seed)
    return Cell(
        random.standard_normal((width, 3 * units)) / width**0.5,
        random.standard_normal((units, 3 * units)) / units**0.5,
        np.zeros(3 * units),
        np.zeros(3 * units),
    )


def _sigmoid(xp: Any, x: Any) -> Any:
    return 1.0 / (1.0 + xp.exp(-x))


def states(xp: Any, cell: Cell, inputs: Any) -> Any:
    """Returns the states (steps, batch, units) for inputs (steps, batch, width)."""
    steps, batch, _ = inputs.shape
    units = cell.of_state.shape[0]
    state, found = xp.zeros((batch, units)), []
    for step in range(steps):
        given = inputs[step] @ cell.of_input + cell.input_bias
        kept = state @ cell.of_state + cell.state_bias
        update = _sigmoid(xp, given[:, :units] + kept[:, :units])
        reset = _sigmoid(xp, given[:, units : 2 * units] + kept[:, units : 2 * units])
        fresh = xp.tanh(given[:, 2 * units :] + reset * kept[:, 2 * units :])
        state = update * state + (1.0 - update) * fresh
        found.append(state)
    return xp.stack(found)


if __name__ == "__main__":
    import fusewire as fw

    with fw.connect():
        inputs = fw.random.default_rng(0).standard_normal((200, 16, 32))
        print(states(fw, Cell(*map(fw.asarray, cell(32, 64))), inputs)[-1, 0, :5].numpy())
