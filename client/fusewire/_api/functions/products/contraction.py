"""Sums of products that are named by subscripts: `einsum`.

Operands are contracted in pairs, in the order that NumPy finds good. A pair is one matrix product: axes that both have
and the result keeps are batches, and axes that both have and nobody else needs are summed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from fusewire._api.array import Array
from fusewire._api.functions.arrangement.matrices import diagonal
from fusewire._api.functions.arrangement.shapes import broadcast_to
from fusewire._api.ops.operands import arrays_of
from fusewire._api.ops.operations import astype
from fusewire._errors import ArgumentError, ShapeError
from fusewire_protos.ops import dtypes

__all__ = ["einsum"]

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class _Term(NamedTuple):
    """An array whose axes have labels."""

    array: Array
    labels: str


def einsum(subscripts: Any, /, *operands: Any) -> Array:
    """Returns sums of products of elements, over the labels that the result lacks.

    The result has the dtype to which the operands promote. Raises ArgumentError for subscripts that do not fit the
    operands, and ShapeError for a label of two lengths.

        fw.einsum("bik,bkj->bij", x, y)  # a matrix product for each b
        fw.einsum("ii", x)  # the trace
    """
    given = arrays_of(*operands)
    if not isinstance(subscripts, str) or not given:
        raise ArgumentError("einsum takes subscripts as a text, such as 'ij,jk->ik', and then arrays")
    inputs, output = _parsed(subscripts.replace(" ", ""), [each.ndim for each in given])
    dtype = dtypes.promote_all(each.dtype for each in given)
    terms = _of_one_length([_Term(*pair) for pair in zip(given, inputs, strict=True)])
    terms = [_with_distinct(astype(term.array, dtype, copy=False), term.labels) for term in terms]
    for pair in _order(terms, output):
        chosen = [terms.pop(place) for place in sorted(pair, reverse=True)]
        kept = {*output, *"".join(term.labels for term in terms)}
        terms.append(_contracted(chosen, kept))
    (last,) = terms
    summed = _summed(last, set(output))
    result = summed.array.transpose([summed.labels.index(label) for label in output])
    return astype(result, dtype, copy=False)


def _parsed(text: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Returns the labels of each operand and of the result. The axes that an ellipsis stands for get labels too."""
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(ranks):
        raise ArgumentError(f"einsum: {len(inputs)} groups of subscripts in {text!r}, and {len(ranks)} operands")
    unused = [letter for letter in _LETTERS if letter not in text]
    hidden = [
        rank - len(each.replace("...", "")) if "..." in each else 0 for each, rank in zip(inputs, ranks, strict=True)
    ]
    if any(count < 0 for count in hidden):
        raise ArgumentError(f"einsum: {text!r} has more subscripts than an operand has axes")
    names = "".join(unused[: max(hidden)])
    labels = [each.replace("...", names[len(names) - count :]) for each, count in zip(inputs, hidden, strict=True)]
    if arrow:
        output = right.replace("...", names)
    else:
        counts = Counter(left.replace("...", "").replace(",", ""))
        output = names + "".join(sorted(label for label, count in counts.items() if count == 1))
    _check(text, labels, output, ranks)
    return labels, output


def _check(text: str, labels: Sequence[str], output: str, ranks: Sequence[int]) -> None:
    known = set("".join(labels))
    if not known | set(output) <= set(_LETTERS):
        raise ArgumentError(f"einsum: a subscript of {text!r} is no letter")
    if len(set(output)) != len(output) or not set(output) <= known:
        raise ArgumentError(f"einsum: each subscript of the result of {text!r} is that of an operand, and there once")
    for each, rank in zip(labels, ranks, strict=True):
        if len(each) != rank:
            raise ArgumentError(f"einsum: {len(each)} subscripts in {text!r} for an operand of rank {rank}")


def _of_one_length(terms: Sequence[_Term]) -> list[_Term]:
    """Broadcasts axes of length 1. Raises ShapeError for a label of two lengths."""
    lengths: dict[str, int] = {}
    for term in terms:
        for label, length in zip(term.labels, term.array.shape, strict=True):
            if lengths.setdefault(label, length) == 1:
                lengths[label] = length
            if length not in (1, lengths[label]):
                raise ShapeError(f"einsum: subscript {label!r} has lengths {lengths[label]} and {length}")
    shapes = [tuple(lengths[label] for label in term.labels) for term in terms]
    return [
        term if term.array.shape == shape else _Term(broadcast_to(term.array, shape), term.labels)
        for term, shape in zip(terms, shapes, strict=True)
    ]


def _with_distinct(array: Array, labels: str) -> _Term:
    """Takes the diagonal of axes that have one label."""
    for label in labels:
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            array = diagonal(array, 0, first, second)  # as the last axis
            labels = "".join(each for axis, each in enumerate(labels) if axis not in (first, second)) + label
    return _Term(array, labels)


def _order(terms: Sequence[_Term], output: str) -> list[tuple[int, ...]]:
    """Returns which terms are contracted, step by step; the result of a step is the last term of the next."""
    if len(terms) < 3:
        return [tuple(range(len(terms)))] if len(terms) == 2 else []
    hollow = [np.broadcast_to(np.empty(()), term.array.shape) for term in terms]  # their shapes are what is asked for
    text = ",".join(term.labels for term in terms) + "->" + output
    steps: list[tuple[int, ...]] = np.einsum_path(text, *hollow, optimize="greedy")[0][1:]
    # NumPy may contract many at once where no pair is worth it; then pairs are contracted in order.
    pairs_in_order: list[tuple[int, ...]] = [(0, 1), *((0, count) for count in range(len(terms) - 2, 0, -1))]
    return steps if all(len(step) == 2 for step in steps) else pairs_in_order


def _contracted(terms: Sequence[_Term], kept: Collection[str]) -> _Term:
    """Multiplies two terms, and sums the labels that nobody else needs."""
    a, b = (_summed(term, {*kept, *other.labels}) for term, other in zip(terms, reversed(terms), strict=True))
    summed = [label for label in a.labels if label in b.labels and label not in kept]
    batch = [label for label in a.labels if label in b.labels and label in kept]
    rows, columns = ([label for label in own.labels if label not in [*batch, *summed]] for own in (a, b))
    labels = "".join([*batch, *rows, *columns])
    lengths = {**dict(zip(a.labels, a.array.shape, strict=True)), **dict(zip(b.labels, b.array.shape, strict=True))}
    if summed:
        product = _matrices(a, (batch, rows, summed), lengths) @ _matrices(b, (batch, summed, columns), lengths)
    else:
        one: list[str] = []
        product = _matrices(a, (batch, rows, one), lengths) * _matrices(b, (batch, one, columns), lengths)
    return _Term(product.reshape([lengths[label] for label in labels]), labels)


def _matrices(term: _Term, groups: Sequence[Sequence[str]], lengths: dict[str, int]) -> Array:
    """Returns the term with its axes in the order of the groups, each group as one axis."""
    order = [term.labels.index(label) for group in groups for label in group]
    ordered = term.array if order == [*range(len(order))] else term.array.transpose(order)
    return ordered.reshape([math.prod(lengths[label] for label in group) for group in groups])


def _summed(term: _Term, kept: Collection[str]) -> _Term:
    """Sums the axes whose labels nobody needs, in the dtype of the term."""
    axes = [axis for axis, label in enumerate(term.labels) if label not in kept]
    if not axes:
        return term
    total = astype(term.array.sum(axes), term.array.dtype, copy=False)
    return _Term(total, "".join(label for label in term.labels if label in kept))
