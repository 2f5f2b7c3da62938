"""A step of an LSTM and of a GRU, and their gradients: each is one kernel.

The formulas are those of `torch.nn.LSTM` and `torch.nn.GRU`. What a step keeps for its gradient is a tensor of the
gates, whose layout is this file's own.
"""

from __future__ import annotations

from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.storage import array_of
from fusewire_torch.table import Table

TABLE = Table()


@TABLE.value("_thnn_fused_lstm_cell")
def _lstm_cell(
    input_gates: torch.Tensor,
    hidden_gates: torch.Tensor,
    cx: torch.Tensor,
    input_bias: torch.Tensor | None = None,
    hidden_bias: torch.Tensor | None = None,
) -> tuple[Array, Array, Array]:
    """Returns the new hidden and cell state, and the gates: input, forget, cell and output, side by side."""
    gates = array_of(input_gates) + array_of(hidden_gates)
    if input_bias is not None and hidden_bias is not None:
        gates = gates + (array_of(input_bias) + array_of(hidden_bias))
    raw = _parts(gates, 4)
    entering, kept, cell, leaving = fw.sigmoid(raw[0]), fw.sigmoid(raw[1]), fw.tanh(raw[2]), fw.sigmoid(raw[3])
    cy = kept * array_of(cx) + entering * cell
    return leaving * fw.tanh(cy), cy, fw.concat([entering, kept, cell, leaving], axis=1)


@TABLE.value("_thnn_fused_lstm_cell_backward_impl")
def _lstm_cell_backward(
    grad_hy: torch.Tensor | None,
    grad_cy: torch.Tensor | None,
    cx: torch.Tensor,
    cy: torch.Tensor,
    workspace: torch.Tensor,
    has_bias: bool,
) -> Any:
    """Returns the gradients of the gates, of the cell state, and of a bias."""
    entering, kept, cell, leaving = _parts(array_of(workspace), 4)
    squashed = fw.tanh(array_of(cy))
    to_cy: Any = 0.0 if grad_cy is None else array_of(grad_cy)
    to_leaving = None
    if grad_hy is not None:
        given = array_of(grad_hy)
        to_cy = to_cy + given * leaving * (1 - squashed * squashed)
        to_leaving = given * squashed * (1 - leaving) * leaving
    to_gates = fw.concat(
        [
            to_cy * cell * (1 - entering) * entering,
            to_cy * array_of(cx) * (1 - kept) * kept,
            to_cy * entering * (1 - cell * cell),
            leaving * 0 if to_leaving is None else to_leaving,
        ],
        axis=1,
    )
    return to_gates, to_cy * kept, fw.sum(to_gates, axis=0) if has_bias else None


@TABLE.value("_thnn_fused_gru_cell")
def _gru_cell(
    input_gates: torch.Tensor,
    hidden_gates: torch.Tensor,
    hx: torch.Tensor,
    input_bias: torch.Tensor | None = None,
    hidden_bias: torch.Tensor | None = None,
) -> tuple[Array, Array]:
    """Returns the new hidden state; and the gates, the state before, and the hidden part of the new value."""
    of_input, of_hidden, before = array_of(input_gates), array_of(hidden_gates), array_of(hx)
    if input_bias is not None and hidden_bias is not None:
        of_input, of_hidden = of_input + array_of(input_bias), of_hidden + array_of(hidden_bias)
    ins, hiddens = _parts(of_input, 3), _parts(of_hidden, 3)
    reset, update = fw.sigmoid(ins[0] + hiddens[0]), fw.sigmoid(ins[1] + hiddens[1])
    new = fw.tanh(ins[2] + reset * hiddens[2])
    return new + update * (before - new), fw.concat([reset, update, new, before, hiddens[2]], axis=1)


@TABLE.value("_thnn_fused_gru_cell_backward")
def _gru_cell_backward(grad_hy: torch.Tensor, workspace: torch.Tensor, has_bias: bool) -> Any:
    """Returns the gradients of both kinds of gates, of the state before, and of both biases."""
    given = array_of(grad_hy)
    reset, update, new, before, hidden = _parts(array_of(workspace), 5)
    to_update = given * (before - new) * (1 - update) * update
    to_new = given * (1 - update) * (1 - new * new)
    to_reset = to_new * hidden * (1 - reset) * reset
    to_input = fw.concat([to_reset, to_update, to_new], axis=1)
    to_hidden = fw.concat([to_reset, to_update, to_new * reset], axis=1)
    biases = (fw.sum(to_input, axis=0), fw.sum(to_hidden, axis=0)) if has_bias else (None, None)
    return to_input, to_hidden, given * update, *biases


def _parts(array: Array, count: int) -> list[Array]:
    """Returns equal parts along the second axis."""
    width = array.shape[1] // count
    return [array[:, part * width : (part + 1) * width] for part in range(count)]
