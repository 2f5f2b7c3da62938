"""Plans whose launches are divided as finely as can be, however short they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fusewire_kernels.fusion import slicing as divide


@contextmanager
def divided_finely() -> Iterator[None]:
    """All launches that can be divided are, into pieces of one step."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divide, "_pieces", lambda _: 1 << 40)
        patch.setattr(divide, "VECTORS", 1)
        patch.setattr(divide, "PRODUCT_ROWS", 1)
        yield
