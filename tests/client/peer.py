"""A session whose server is in this process and computes with the NumPy twins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire import Session
from fusewire._connect import open_session
from fusewire.testing.memory_server import CREDIT, LIMITS, MemoryServer
from fusewire.testing.memory_transport import MemoryTransport
from fusewire_kernels.reference import twin
from fusewire_protos import dtypes
from fusewire_protos.credit import Amount
from fusewire_protos.frames import Entry
from fusewire_protos.program import Program
from fusewire_protos.v1 import fusewire_pb2 as wire

Host = npt.NDArray[Any]


class Peer(NamedTuple):
    """Both ends of a session in memory."""

    session: Session
    transport: MemoryTransport
    server: MemoryServer


def execute(program: Program, inputs: Sequence[Host], scalars: Sequence[Any], starts: Sequence[int]) -> Sequence[Host]:
    """All results of a program, op by op."""
    values = list(inputs)
    values += [
        np.asarray(value).astype(dtypes.to_numpy(dtype)) for dtype, value in zip(program.scalars, scalars, strict=True)
    ]
    remaining = list(starts)
    for op, operands, attributes in program.ops:
        count = op.starts(attributes)
        own, remaining = remaining[:count], remaining[count:]
        values.append(twin(op)(np, [values[operand] for operand in operands], attributes, own))
    return values[program.first_result :]


def connect(
    *,
    credit: Amount = CREDIT,
    limits: wire.Limits = LIMITS,
    is_manual: bool = False,
    holds_completion: bool = False,
    debug: bool = False,
) -> Peer:
    """A session on a server in memory."""
    server = MemoryServer(execute, credit=credit, limits=limits, holds_completion=holds_completion)
    transport = MemoryTransport(server, is_manual=is_manual)
    return Peer(open_session(transport, debug=debug, timeout=10), transport, server)


def entries(peer: Peer, kind: type[Entry]) -> list[Any]:
    """What of this kind the server was sent, in order."""
    return [entry for entry in peer.server.entries if isinstance(entry, kind)]
