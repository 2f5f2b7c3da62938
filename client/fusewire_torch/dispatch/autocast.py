"""`torch.autocast("fusewire")`: which ops compute in the lower precision, and which in float32.

The lists are those that PyTorch documents for its other devices ("Autocast Op Reference").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map

from fusewire_torch.dispatch.overloads import Op, functional_of
from fusewire_torch.storage import DEVICE

_KEY = "AutocastPrivateUse1"

_IN_LOWER_PRECISION = (
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "baddbmm",
    "bmm",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d.input",
    "conv_transpose3d.input",
    "convolution",
    "linear",
    "matmul",
    "mm",
    "mv",
    "prelu",
    "scaled_dot_product_attention",
)
_IN_FLOAT32 = (
    "acos",
    "asin",
    "cosh",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cumprod",
    "cumsum",
    "dist",
    "erfinv",
    "exp",
    "expm1",
    "group_norm",
    "hinge_embedding_loss",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_softmax.int",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "nll_loss",
    "norm.Scalar",
    "norm.ScalarOpt_dim",
    "pow.Scalar",
    "pow.Tensor_Scalar",
    "pow.Tensor_Tensor",
    "prod",
    "prod.dim_int",
    "reciprocal",
    "rsqrt",
    "sinh",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax.int",
    "softplus",
    "sum",
    "sum.dim_IntList",
    "tan",
    "triplet_margin_loss",
)


def register_autocast(library: torch.library.Library, rest: torch.library.Library) -> None:
    """Registers the casts with PyTorch. Every op beside the lists takes its operands as they are."""
    rest.fallback(torch.library.fallthrough_kernel, _KEY)
    for name in _IN_LOWER_PRECISION:
        library.impl(name, _casting(functional_of(name), _lower_precision), _KEY)
    for name in _IN_FLOAT32:
        library.impl(name, _casting(functional_of(name), lambda: torch.float32), _KEY)


def _lower_precision() -> torch.dtype:
    return torch.get_autocast_dtype(DEVICE)


def _casting(op: Op, wanted: Callable[[], torch.dtype]) -> Callable[..., Any]:
    """Returns the op over its operands cast to the wanted dtype. Integers and float64 are left as they are."""

    def kernel(*arguments: Any, **options: Any) -> Any:
        dtype = wanted()

        def cast(value: Any) -> Any:
            is_cast = isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype != torch.float64
            return value.to(dtype) if is_cast else value

        with torch._C._DisableAutocast():
            return op(*tree_map(cast, arguments), **tree_map(cast, options))

    return kernel
