"""The keys of an order in which equal elements stand side by side, complex ones too."""

from __future__ import annotations

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import isnan


def keys_of(x: Array) -> list[Array]:
    """Returns the keys by which `lexsort` brings equal elements side by side. Complex ones have NumPy's order then.

    That is by the real part, then by the other. Behind these are those whose imaginary part is NaN, then whose real one
    is, and both.
    """
    if not x.dtype.is_complex:
        return [x]
    real, imag = x.real, x.imag
    return [imag, real, isnan(real) * 2 + isnan(imag)]
