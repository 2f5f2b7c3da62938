"""Unpacks one msgpack value from untrusted bytes, in time and memory proportional to their length."""

from __future__ import annotations

from typing import Any

import msgpack

from fusewire_protos.errors import CaseError

_HARMLESS_BYTES = 256  # for so few bytes the unpacker allocates little, even if they are truncated


def unpack_bounded(raw: bytes, longest_array: int) -> Any:
    """Does the same as `unpack`, for bytes that are short or known to be complete. Raises msgpack's own exceptions."""
    return msgpack.unpackb(
        raw,
        use_list=False,
        max_array_len=longest_array,
        max_bin_len=len(raw),
        max_str_len=0,
        max_map_len=0,
        max_ext_len=0,
    )


def unpack(raw: bytes, *, longest_array: int) -> Any:
    """One msgpack value as tuples, ints, floats, bools and bytes. Raises CaseError for anything else."""
    try:
        if len(raw) > _HARMLESS_BYTES:
            _check_whole(raw)
        return unpack_bounded(raw, longest_array)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise CaseError("undecodable_frame", f"not msgpack of the expected form: {type(error).__name__}") from None


def _check_whole(raw: bytes) -> None:
    """Raises ValueError or UnpackException if `raw` is truncated.

    The unpacker may allocate a list of the length that its head claims before it sees an item. So a few nested heads
    could take gigabytes. If all items exist, unpacking takes at most about thirty times the length of `raw`. The worst
    items are lists that take one byte each, because each becomes a tuple.
    """
    unpacker = msgpack.Unpacker(max_buffer_size=max(len(raw), 1))
    unpacker.feed(raw)
    unpacker.skip()
