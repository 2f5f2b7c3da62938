"""Records an op that computes several arrays, and takes them out of its result."""

from __future__ import annotations

from fusewire._api.array import Array
from fusewire._recording.record_op import apply_to_one
from fusewire_protos.ops.op import Attributes, Op


def apply_for_several(op: Op, x: Array, attributes: Attributes = ()) -> list[Array]:
    """Returns the arrays that `op` computes of `x`. Raises what the op's rules raise."""
    packed = apply_to_one(op, x, attributes)
    assert op.results is not None, f"{op.name} computes one array"
    parts = op.results((x.shape,), attributes).parts()
    return [packed[..., part.start : part.start + part.length].reshape(part.shape) for part in parts]
