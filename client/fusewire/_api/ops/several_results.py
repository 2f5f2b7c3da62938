"""Records an op that computes several arrays, and takes them out of its result."""

from __future__ import annotations

from collections.abc import Sequence

from fusewire._api.array import Array
from fusewire._recording.record_op import apply
from fusewire_protos.ops.op import Attributes, Op


def apply_for_several(op: Op, operands: Sequence[Array], attributes: Attributes = ()) -> list[Array]:
    """Returns the arrays that `op` computes of its operands. Raises what the op's rules raise."""
    packed: Array = apply(op, operands, attributes)
    assert op.results is not None, f"{op.name} computes one array"
    parts = op.results(tuple([each.shape for each in operands]), attributes).parts()
    return [packed[..., part.start : part.start + part.length].reshape(part.shape) for part in parts]
