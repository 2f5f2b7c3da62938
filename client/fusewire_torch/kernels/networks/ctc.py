"""The loss of connectionist temporal classification (Graves et al., 2006), and its gradient.

The forward variables are logarithms of sums over all paths, found step by step; a step is recorded for each time. What
is impossible has a logarithm of -1e30, so that gradients stay finite. Lengths in tensors are read, which waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.storage import array_of
from fusewire_torch.table import Table

TABLE = Table()

_NEVER = -1e30
_IMPOSSIBLE_LOSS = 1e29


@TABLE.value("_ctc_loss", "_ctc_loss.Tensor")
def _ctc_loss(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[Array, Array]:
    """Returns the loss of each of [time, batch, classes]. The second result is not used by the gradient here."""
    array = array_of(log_probs)
    losses = _losses(targets, input_lengths, target_lengths, blank)(array)
    is_impossible = losses > _IMPOSSIBLE_LOSS
    losses = fw.where(is_impossible, 0.0 if zero_infinity else fw.inf, losses).astype(array.dtype, copy=False)
    return losses, fw.zeros((0,), array.dtype, device=array.session)


@TABLE.value("_ctc_loss_backward", "_ctc_loss_backward.Tensor")
def _ctc_loss_backward(
    grad: torch.Tensor,
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Any,
    target_lengths: Any,
    neg_log_likelihood: torch.Tensor,
    log_alpha: torch.Tensor,
    blank: int,
    zero_infinity: bool = False,
) -> Array:
    """Returns the gradient as PyTorch defines it: with the probabilities that a softmax ahead takes away again."""
    array, given = array_of(log_probs), array_of(grad)
    losses, back = fw.vjp(_losses(targets, input_lengths, target_lengths, blank), array)
    (slope,) = back(fw.ones_like(losses))
    times = fw.arange(array.shape[0], device=array.session)
    is_heard = fw.expand_dims(times, -1) < array.session.array(np.asarray(_numbers(input_lengths), "int64"))
    whole: Array = (slope + fw.exp(array)) * fw.expand_dims(is_heard.astype(array.dtype), -1)
    scaled: Array = whole * given.reshape((1, -1, 1))
    if not zero_infinity:
        return scaled
    known: Array = fw.where((losses > _IMPOSSIBLE_LOSS).reshape((1, -1, 1)), 0, scaled)
    return known.astype(array.dtype, copy=False)


def _losses(targets: torch.Tensor, input_lengths: Any, target_lengths: Any, blank: int) -> Callable[[Array], Array]:
    """Returns the function of log probabilities that returns the negative log likelihood of each target."""
    inputs, lengths = _numbers(input_lengths), _numbers(target_lengths)
    places = 2 * max(lengths, default=0) + 1
    labels = _labels(targets, lengths, places, blank)
    ahead = fw.concat([fw.full((len(lengths), min(2, places)), blank, "int64", device=labels.session), labels], axis=1)
    is_jump = fw.logical_and(labels != blank, labels != ahead[:, :places])
    ends = labels.session.array(np.asarray(lengths, "int64").reshape(-1, 1) * 2)
    heard = labels.session.array(np.asarray(inputs, "int64").reshape(-1, 1))
    numbers = fw.arange(places, device=labels.session)

    def losses(array: Array) -> Array:
        shape = (array.shape[0], len(lengths), places)
        spoken = fw.take_along_axis(array, fw.broadcast_to(fw.expand_dims(labels, 0), shape), axis=2)
        begin = fw.logical_and(numbers < 2, numbers <= ends)
        alpha = fw.where(begin, spoken[0], _NEVER).astype(array.dtype)
        for time in range(1, array.shape[0]):
            jumped = fw.where(is_jump, _shifted(alpha, 2), _NEVER).astype(array.dtype)
            following = _sum_of(alpha, _shifted(alpha, 1), jumped) + spoken[time]
            alpha = fw.where(time < heard, following, alpha)
        last = fw.take_along_axis(alpha, ends, axis=1)
        ahead_of_last = fw.take_along_axis(alpha, fw.maximum(ends - 1, 0), axis=1)
        ahead_of_last = fw.where(ends == 0, _NEVER, ahead_of_last).astype(array.dtype)
        return -_sum_of(last, ahead_of_last)[:, 0]

    return losses


def _numbers(lengths: Any) -> list[int]:
    return [int(each) for each in (lengths.tolist() if isinstance(lengths, torch.Tensor) else lengths)]


def _labels(targets: torch.Tensor, lengths: Any, places: int, blank: int) -> Array:
    """Returns the labels [batch, places] with a blank before, between and behind those of each target."""
    given = array_of(targets).astype("int64", copy=False)
    most, flat = (places - 1) // 2, given.reshape(-1)
    widths = [targets.shape[1]] * len(lengths) if targets.dim() == 2 else list(lengths)
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]]).astype("int64").reshape(-1, 1)
    within = np.arange(most).reshape(1, -1)
    is_label = within < np.asarray(lengths).reshape(-1, 1)
    found = np.where(is_label, starts + within, 0)
    blanks = fw.full((len(lengths), places), blank, "int64", device=given.session)
    if not flat.size or not most:
        return blanks
    labels = fw.where(given.session.array(is_label), fw.take(flat, given.session.array(found)), blank)
    return blanks.at[:, 1::2].set(labels)


def _shifted(alpha: Array, count: int) -> Array:
    """Returns alpha moved behind by so many places; what enters is impossible."""
    if alpha.shape[1] <= count:
        return alpha * 0 + _NEVER
    return fw.pad(alpha[:, :-count], [(0, 0), (count, 0)], constant_values=_NEVER)


def _sum_of(*logarithms: Array) -> Array:
    """Returns the logarithm of the sum of numbers, of which logarithms are given."""
    greatest = logarithms[0]
    for each in logarithms[1:]:
        greatest = fw.maximum(greatest, each)
    total: Any = 0.0
    for each in logarithms:
        total = total + fw.exp(each - greatest)
    logarithm: Array = fw.log(total) + greatest
    return logarithm
