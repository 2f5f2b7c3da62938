"""One msgpack value out of the bytes of a stranger, in time and space that they pay for."""

from __future__ import annotations

from typing import Any

import msgpack

from fusewire_protos.errors import CaseError

_HARMLESS_BYTES = 256  # so few cannot claim lists that take much room before they prove to be cut off


def unpack_bounded(raw: bytes, longest_array: int) -> Any:
    """As `unpack`, for bytes that are short. Raises what msgpack does."""
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
        raise CaseError("undecodable_frame", f"not msgpack of the agreed form: {type(error).__name__}") from None


def _check_whole(raw: bytes) -> None:
    """Raises ValueError or UnpackException if `raw` is cut off.

    Unpacking may make room for a list as long as its head says before it sees one item, and a few nested heads would
    take gigabytes. Once every item is known to be there, the room needed is some thirty times `raw`, where lists of one
    byte each become tuples.
    """
    unpacker = msgpack.Unpacker(max_buffer_size=max(len(raw), 1))
    unpacker.feed(raw)
    unpacker.skip()
