"""A small recurrent loop, as functions, inline and in NumPy, and which programs it became."""

from __future__ import annotations

from typing import Any

import numpy as np

import fusewire as fw
from fusewire_protos.programs.program import Program
from tests.client.peer import Peer

H = np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 8)
W = np.linspace(-0.5, 0.5, 64, dtype=np.float32).reshape(8, 8)
STEPS = 300


def cell(h: Any, w: Any, b: Any, r: Any) -> Any:
    """One step of a small recurrent loop: a product and five pointwise ops."""
    z = h @ w
    z = z + b
    z = z * 0.5
    z = -z
    z = fw.tanh(z)
    return z + r


def operands(session: fw.Session) -> tuple[fw.Array, ...]:
    return session.array(H), session.array(W), session.array(H + 1), session.array(H * 2)


def loop_of_calls(session: fw.Session) -> fw.Array:
    return loop_on(*operands(session))


def loop_on(h: fw.Array, w: fw.Array, b: fw.Array, r: fw.Array) -> fw.Array:
    for _ in range(STEPS):
        h = cell(h, w, b, r)
    return h


def inline_loop(session: fw.Session) -> fw.Array:
    h, w, b, r = operands(session)
    for _ in range(STEPS):
        z = h @ w
        z = z + b
        z = z * 0.5
        z = -z
        z = fw.tanh(z)
        h = z + r
    return h


def inline_loop_that_prints(session: fw.Session) -> fw.Array:
    h, w, b, r = operands(session)
    for _ in range(STEPS):
        z = h @ w
        z = z + b
        repr(z), z.shape, z.dtype, len(z)
        z = z * 0.5
        z = -z
        z = fw.tanh(z)
        h = z + r
    return h


def expected_loop() -> Any:
    h = H
    for _ in range(STEPS):
        h = np.tanh(-((h @ W + (H + 1)) * np.float32(0.5))) + H * 2
    return h


def whole_bodies(peer: Peer) -> dict[Program, int]:
    """The programs that are no fragments, and how often each was used."""
    numbers = {new.number for new in peer.server.new_programs if not new.is_fragment}
    used = [segment.program for segment in peer.server.segments if segment.program in numbers]
    return {peer.server.programs[number]: used.count(number) for number in numbers}
