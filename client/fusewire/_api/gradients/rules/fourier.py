"""Derivatives of Fourier transforms, which are linear: the cotangents are transforms too.

For sums y[k] of x[j] · exp(−iφjk), the cotangents of the parts of x are those of the sums of g[k] · exp(+iφjk), where g
has the cotangents of the parts of y: the transform in the other direction. A real transform leaves out the frequencies
that are conjugates of others, so that those which are there twice count twice in one direction and half in the other.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from fusewire._api.functions.elementwise.choices import where
from fusewire._api.gradients.rules.parts import numbers_along
from fusewire._api.gradients.rules.rule import Rule
from fusewire._api.gradients.use import Use
from fusewire._api.ops.several_results import apply_for_several
from fusewire._recording.record_op import apply
from fusewire_protos.ops.catalogue import BY_NAME


def _of_part(part: int, g: Any, use: Use) -> Any:
    (inverse,) = use.attributes
    return use.shared(lambda: apply_for_several(BY_NAME["fft"], _halves(g), (not inverse,)))[part]


def _of_real(g: Any, use: Use) -> Any:
    real, imag = _halves(g)
    is_odd = use.spec(0).shape[-1] % 2 == 1
    once = _is_there_once(real, is_odd=is_odd)
    return apply(BY_NAME["irfft"], [where(once, each, each * 0.5) for each in (real, imag)], (is_odd,))


def _of_part_of_real(part: int, g: Any, use: Use) -> Any:
    found = use.shared(lambda: apply_for_several(BY_NAME["rfft"], [g]))[part]
    return where(_is_there_once(found, is_odd=use.attributes[0]), found, found * 2.0)


def _halves(packed: Any) -> list[Any]:
    """Returns the cotangents of the real and of the imaginary parts."""
    points = packed.shape[-1] // 2
    return [packed[..., :points], packed[..., points:]]


def _is_there_once(x: Any, *, is_odd: bool) -> Any:
    """Returns which frequencies are their own negatives: 0, and the last one of an even length."""
    numbers = numbers_along(x, x.ndim - 1)
    return numbers == 0 if is_odd else (numbers == 0) | (numbers == x.shape[-1] - 1)


FOURIER = {
    "fft": Rule((partial(_of_part, 0), partial(_of_part, 1))),
    "rfft": Rule((_of_real,)),
    "irfft": Rule((partial(_of_part_of_real, 0), partial(_of_part_of_real, 1))),
}
