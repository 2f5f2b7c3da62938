"""The limits of programs, as a client keeps them: by cutting, by frames, and for a single op at the user's line."""

from __future__ import annotations

import numpy as np
import pytest

import fusewire as fw
from fusewire.testing.memory_server import LIMITS
from fusewire_protos.programs.limits import MOST_LEAVES, MOST_LIVE
from fusewire_protos.programs.program import Program
from fusewire_protos.v1 import fusewire_pb2 as wire
from tests.client.peer import Peer, connect
from tests.patience import HANGS_S

MOST_OPS, MOST = 20, 40
PART = np.arange(3, dtype=np.float32)


def limited(*, is_manual: bool = False, **settings: int) -> Peer:
    """A session whose server refuses a program of more."""
    limits = wire.Limits()
    limits.CopyFrom(LIMITS)
    limits.MergeFrom(wire.Limits(**settings))
    return connect(limits=limits, is_manual=is_manual)


def operands_of(program: Program) -> int:
    return sum(len(op.operands) for op in program.ops)


@pytest.mark.parametrize("arity", [2, 3, 7, 19, MOST - 1, MOST])
def test_a_loop_over_ops_of_many_operands_is_cut_into_programs_that_the_server_takes(arity: int) -> None:
    peer = limited(program_operands=MOST)
    value, expected = peer.session.array(PART), PART
    for _ in range(100):
        joined = fw.concat([value] * arity)
        value, expected = joined[-3:] + 1, np.concatenate([expected] * arity)[-3:] + 1
    np.testing.assert_array_equal(value.numpy(timeout=HANGS_S), expected)
    assert max(map(operands_of, peer.server.programs.values())) <= MOST


def test_ops_in_no_loop_are_cut_so_too() -> None:
    peer = limited(program_operands=MOST)
    x = peer.session.array(PART)
    arities = [1 + 7 * index % MOST for index in range(60)]
    totals = [fw.concat([x] * arity).sum() for arity in arities]
    np.testing.assert_array_equal([total.numpy(timeout=HANGS_S) for total in totals], [3 * arity for arity in arities])
    assert max(map(operands_of, peer.server.programs.values())) <= MOST


def test_an_op_of_more_operands_than_a_program_may_have_is_refused_where_it_is_recorded() -> None:
    peer = limited(program_operands=MOST)
    x = peer.session.array(PART)
    with pytest.raises(fw.QuotaExceeded, match=r"^concat of 41 operands; limits\.program_operands = 40$"):
        fw.concat([x] * (MOST + 1))
    assert fw.concat([x] * MOST).sum().numpy(timeout=HANGS_S) == 3 * MOST


@pytest.mark.parametrize("body", [1, 7, MOST_OPS, MOST_OPS + 1, 3 * MOST_OPS])
def test_a_loop_is_cut_into_programs_of_no_more_ops_than_the_server_takes(body: int) -> None:
    peer = limited(program_ops=MOST_OPS)
    value = peer.session.array(PART)
    for _ in range(40):
        for place in range(body):
            value = value + 1 if place % 2 else value - 1
    change = 40 * (body // 2 - (body + 1) // 2)
    np.testing.assert_array_equal(value.numpy(timeout=HANGS_S), PART + change)
    assert max(len(program.ops) for program in peer.server.programs.values()) <= MOST_OPS


@pytest.mark.parametrize("most", [1, 2, 3, 20])
def test_any_number_of_programs_may_travel_at_once(most: int) -> None:
    peer = limited(programs=most, is_manual=True)
    shapes = [(1 + number % 40,) for number in range(64)]
    for _ in range(3):
        arrays = [peer.session.array(np.ones(shape, np.float32)) for shape in shapes]
        futures = [(array + 1).future() for array in arrays]
        peer.transport.run_once()
        for future, shape in zip(futures, shapes, strict=True):
            np.testing.assert_array_equal(future.result(0), np.full(shape, 2, np.float32))


def test_an_op_of_more_operands_than_any_program_has_inputs_is_refused_where_it_is_recorded() -> None:
    peer = connect()
    x = peer.session.array(PART)
    with pytest.raises(fw.QuotaExceeded, match=r"^concat of 4097 operands; the most is 4096$"):
        fw.concat([x] * (MOST_LEAVES + 1))


def test_ops_of_more_inputs_than_a_program_has_are_cut() -> None:
    peer = connect()
    arrays = [peer.session.array(PART) for _ in range(MOST_LEAVES // 2 + 1)]
    totals = [fw.concat(arrays).sum() for _ in range(2)]
    assert [float(total.numpy(timeout=HANGS_S)) for total in totals] == [3 * len(arrays)] * 2
    assert max(len(program.inputs) for program in peer.server.programs.values()) <= MOST_LEAVES


def test_a_body_of_more_inputs_than_a_program_has_is_refused() -> None:
    peer = connect()
    arrays = [peer.session.array(PART) for _ in range(MOST_LEAVES + 1)]

    def body(_: object, value: fw.Array) -> fw.Array:
        for array in arrays:
            value = value + array
        return value

    with pytest.raises(fw.QuotaExceeded, match=r"a body of 4\d\d\d inputs; the most is 4096"):
        fw.fori_loop(2, body, peer.session.array(PART))


def test_a_body_of_more_results_than_a_program_has_is_refused() -> None:
    peer = connect()

    @fw.function
    def body(value: fw.Array) -> list[fw.Array]:
        return [value + 1 for _ in range(MOST_LIVE + 1)]

    with pytest.raises(fw.QuotaExceeded, match=r"a body of 2049 results; the most is 2048"):
        body(peer.session.array(PART))
