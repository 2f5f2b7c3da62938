"""Which dtype of Fusewire a dtype of PyTorch is."""

from __future__ import annotations

import torch

from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType

FUSEWIRE_OF: dict[torch.dtype, DType] = {
    torch.bool: dtypes.bool_,
    torch.uint8: dtypes.uint8,
    torch.int8: dtypes.int8,
    torch.int16: dtypes.int16,
    torch.int32: dtypes.int32,
    torch.int64: dtypes.int64,
    torch.float16: dtypes.float16,
    torch.bfloat16: dtypes.bfloat16,
    torch.float32: dtypes.float32,
    torch.float64: dtypes.float64,
    torch.complex64: dtypes.complex64,
    torch.complex128: dtypes.complex128,
}
TORCH_OF: dict[DType, torch.dtype] = {ours: theirs for theirs, ours in FUSEWIRE_OF.items()}


def fusewire_of(dtype: torch.dtype) -> DType:
    """Returns Fusewire's dtype. Raises TypeError if it has none, in the words that other devices use."""
    try:
        return FUSEWIRE_OF[dtype]
    except KeyError:
        raise TypeError(f'device "fusewire" has no dtype {dtype}; it has {", ".join(map(str, FUSEWIRE_OF))}') from None
