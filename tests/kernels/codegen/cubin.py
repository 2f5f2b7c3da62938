"""Reads what CUDA's compiler says of a kernel in a compiled file: its registers, its local memory and its code."""

from __future__ import annotations

import struct
from typing import NamedTuple

_VALUES = 4  # the form of an entry that is followed by its values
_REGISTERS, _STACK_BYTES = 0x2F, 0x12  # the attributes of an entry


class Demand(NamedTuple):
    """What a thread of a kernel needs. Local memory holds what finds no register."""

    registers: int
    local_bytes: int


def demand(cubin: bytes) -> Demand:
    """Returns what the only kernel of a file needs."""
    found = dict(_entries(_section(cubin, ".nv.info\0")))
    return Demand(found[_REGISTERS], found[_STACK_BYTES])


def code_bytes(cubin: bytes) -> int:
    """Returns the size of the machine code of the only kernel of a file."""
    return len(_section(cubin, ".text."))


def _section(cubin: bytes, wanted: str) -> bytes:
    """Returns the first section whose name begins with `wanted`."""
    (table,) = struct.unpack_from("<Q", cubin, 40)
    count, names = struct.unpack_from("<HH", cubin, 60)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + number * 64) for number in range(count)]
    first_name = headers[names][4]
    for name, _, _, _, offset, size in headers:
        if cubin[first_name + name :].startswith(wanted.encode()):
            return cubin[offset : offset + size]
    raise AssertionError(f"a compiled file has a section {wanted}")


def _entries(section: bytes) -> list[tuple[int, int]]:
    """Returns the attribute and the second value, which belongs to the kernel that the first names, of each entry."""
    entries, at = [], 0
    while at < len(section):
        form, attribute, size = struct.unpack_from("<BBH", section, at)
        at += 4
        if form == _VALUES:
            if size >= 8:
                entries.append((attribute, struct.unpack_from("<II", section, at)[1]))
            at += size
    return entries
