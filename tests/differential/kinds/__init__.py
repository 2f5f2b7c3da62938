"""Says for each covered name how its calls are drawn."""

from __future__ import annotations

from tests.differential.kinds import creation, elementwise, places, products, reductions, shapes
from tests.differential.kinds.patterns import Kind

_GROUPS = (elementwise, reductions, places, shapes, products, creation)
KINDS: dict[str, Kind] = {name: kind for group in _GROUPS for name, kind in group.KINDS.items()}
