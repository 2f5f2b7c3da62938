"""What `torch.nn.MultiheadAttention` and `TransformerEncoderLayer` call when they evaluate without gradients."""

from __future__ import annotations

from math import sqrt
from typing import Any

import torch
from torch.nn import functional as nn

from fusewire_torch.table import Table

TABLE = Table()


@TABLE.kernel("_native_multi_head_attention")
def _multi_head_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    mask: torch.Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Returns the attention of [batch, length, embed_dim], and its weights if they are needed."""
    parts = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
    heads = [_heads(nn.linear(x, weight, bias), num_head) for x, weight, bias in parts]
    scores = heads[0] @ heads[1].transpose(-2, -1) * (1 / sqrt(embed_dim // num_head))
    weights = torch.softmax(scores if mask is None else scores + _penalties(mask, mask_type, scores), -1)
    joined = (weights @ heads[2]).transpose(1, 2).reshape(query.shape[0], query.shape[1], embed_dim)
    result = nn.linear(joined, proj_weight, proj_bias)
    if not need_weights:
        return result, None
    return result, weights.mean(1) if average_attn_weights else weights


def _heads(x: torch.Tensor, count: int) -> torch.Tensor:
    """Returns [batch, heads, length, width] of [batch, length, heads * width]."""
    return x.reshape(x.shape[0], x.shape[1], count, -1).transpose(1, 2)


def _penalties(mask: torch.Tensor, mask_type: int | None, scores: torch.Tensor) -> torch.Tensor:
    """Returns minus infinity where a mask is true: of places [length, length], of keys [batch, length], or of both."""
    if mask_type == 1:
        mask = mask.reshape(mask.shape[0], 1, 1, mask.shape[-1])
    if mask.dtype is not torch.bool:
        return mask
    return torch.zeros(mask.shape, dtype=scores.dtype, device=scores.device).masked_fill(mask, float("-inf"))


@TABLE.kernel("_transformer_encoder_layer_fwd")
def _encoder_layer(
    src: torch.Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    *weights: Any,
    mask: torch.Tensor | None = None,
    mask_type: int | None = None,
) -> torch.Tensor:
    """Returns what a layer of a transformer's encoder makes of [batch, length, embed_dim]."""
    norm_1, norm_2 = weights[0:2], weights[2:4]
    wide, narrow = weights[4:6], weights[6:8]
    if len(weights) > 8:
        mask, mask_type = (*weights[8:], None)[:2]

    def attend(x: torch.Tensor) -> torch.Tensor:
        attention = (embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias)
        return _multi_head_attention(x, x, x, *attention, mask, need_weights=False, mask_type=mask_type)[0]

    def feed(x: torch.Tensor) -> torch.Tensor:
        hidden = nn.linear(x, *wide)
        return nn.linear(nn.gelu(hidden) if use_gelu else nn.relu(hidden), *narrow)

    def norm(x: torch.Tensor, parameters: Any) -> torch.Tensor:
        return nn.layer_norm(x, (embed_dim,), *parameters, eps)

    if norm_first:
        src = src + attend(norm(src, norm_1))
        return src + feed(norm(src, norm_2))
    src = norm(src + attend(src), norm_1)
    return norm(src + feed(src), norm_2)


@TABLE.kernel("_nested_tensor_from_mask_left_aligned")
def _is_left_aligned(x: torch.Tensor, mask: torch.Tensor) -> bool:
    """Returns False, so that PyTorch makes no nested tensor of a padded batch: the device has none."""
    return False
