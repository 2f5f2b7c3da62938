"""Recurrent layers. The weights of both directions lie along the first axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fusewire as fw

_Step = Callable[
    ..., tuple[Any, ...]
]  # the parts of a product, and the state before -> the state after, its output first


def _layer(step: Callable[..., tuple[Any, ...]], gates: int, states: int) -> Callable[..., Any]:
    """Returns the entry of a layer, whose step has so many gates and so many parts of a state."""

    def entry(
        x: Any,
        w: Any,
        r: Any,
        b: Any = None,
        lengths: Any = None,
        *rest: Any,
        direction: str = "forward",
        hidden_size: int,
        layout: int = 0,
        **options: Any,
    ) -> Any:
        x = fw.swapaxes(x, 0, 1) if layout else x
        b = fw.zeros((w.shape[0], 2 * gates * hidden_size), dtype=x.dtype) if b is None else b
        given = (*rest, *[None] * (states + 1 - len(rest)))
        ways = []
        for i in range(w.shape[0]):
            is_reverse = direction == "reverse" or i == 1
            first = [fw.zeros((x.shape[1], hidden_size), dtype=x.dtype) if s is None else s[i] for s in given[:states]]
            more = None if given[states] is None else given[states][i]
            ways.append(
                _one_way(step, fw.flip(x, axis=0) if is_reverse else x, (w[i], r[i], b[i], more), first, options)
            )
            ways[-1][0] = fw.flip(ways[-1][0], axis=0) if is_reverse else ways[-1][0]
        outputs, *last = (fw.stack(part, axis=1 if i == 0 else 0) for i, part in enumerate(zip(*ways, strict=True)))
        if layout:
            return outputs.transpose((2, 0, 1, 3)), *(fw.swapaxes(state, 0, 1) for state in last)
        return outputs, *last

    return entry


def _one_way(step: _Step, x: Any, weights: Any, state: Any, options: Any) -> list[Any]:
    """Returns the outputs of all times, and the last state."""
    outputs = []
    for i in range(x.shape[0]):
        state = step(x[i], state, *weights, **options)
        outputs.append(state[0])
    return [fw.stack(outputs), *state]


def _simple(x: Any, state: Any, w: Any, r: Any, b: Any, more: Any) -> tuple[Any, ...]:
    of_input, of_state = fw.split(b, 2)
    return (fw.tanh(x @ w.T + state[0] @ r.T + of_input + of_state),)


def _gated(x: Any, state: Any, w: Any, r: Any, b: Any, more: Any, *, linear_before_reset: int = 0) -> tuple[Any, ...]:
    """Its gates are those of update, reset and the hidden part."""
    (h,) = state
    wz, wr, wh = fw.split(w, 3)
    rz, rr, rh = fw.split(r, 3)
    bz, br, bh, cz, cr, ch = fw.split(b, 6)
    z = fw.sigmoid(x @ wz.T + h @ rz.T + bz + cz)
    reset = fw.sigmoid(x @ wr.T + h @ rr.T + br + cr)
    of_state = reset * (h @ rh.T + ch) if linear_before_reset else (reset * h) @ rh.T + ch
    return ((1 - z) * fw.tanh(x @ wh.T + of_state + bh) + z * h,)


def _long_short(x: Any, state: Any, w: Any, r: Any, b: Any, peepholes: Any) -> tuple[Any, ...]:
    """Its gates are those of input, output, forgetting and the cell; peepholes of the first three see the cell."""
    h, cell = state
    of_input, of_state = fw.split(b, 2)
    i, o, f, c = fw.split(x @ w.T + h @ r.T + of_input + of_state, 4, axis=-1)
    pi, po, pf = (0, 0, 0) if peepholes is None else fw.split(peepholes, 3)
    cell_after = fw.sigmoid(f + pf * cell) * cell + fw.sigmoid(i + pi * cell) * fw.tanh(c)
    return fw.sigmoid(o + po * cell_after) * fw.tanh(cell_after), cell_after


OPS: dict[str, Callable[..., Any]] = {
    "GRU": _layer(_gated, 3, 1),
    "LSTM": _layer(_long_short, 4, 2),
    "RNN": _layer(_simple, 1, 1),
}
