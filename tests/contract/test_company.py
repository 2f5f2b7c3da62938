"""Through a real server: what a client gets is what it gets alone, and how it writes its loop changes no program."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pytest

import fusewire as fw
from tests.contract import loops
from tests.contract.loops import LOOPS, STEPS, Loop
from tests.contract.service import Service, serving
from tests.patience import HANGS_S

CLIENTS = 8
_RESULT_WITHIN_S = HANGS_S
_ATTEMPTS = 8
_ROOT = Path(__file__).parents[2]

Array = npt.NDArray[Any]
_Programs = Mapping[str, Mapping[str, Any]]  # of each program, by digest


class Client(NamedTuple):
    """What a client runs, and on which data."""

    name: str
    seed: int

    @property
    def loop(self) -> Loop:
        return LOOPS[self.name]


# ---- bytes ----


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_gives_the_same_bytes_op_by_op_and_by_its_plan(service: Service, name: str) -> None:
    op_by_op = _run_and_plan(service, LOOPS[name], 3)
    assert loops.run(service.target, LOOPS[name], 3) == op_by_op


@pytest.fixture(scope="module")
def without_plans(backend: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server that can load only plans without an arena: those of single ops."""
    environment = {"FUSEWIRE_DEVICE__ARENA_BYTES": "1"}
    with serving(backend, cache=tmp_path_factory.mktemp("cache"), environment=environment) as service:
        yield service


@pytest.mark.parametrize("name", sorted(LOOPS.keys() - {"integers"}))  # whose plan is one kernel and needs no arena
def test_without_its_plan_a_loop_takes_a_launch_for_each_op_and_gives_the_same_bytes(
    service: Service, without_plans: Service, name: str
) -> None:
    before = without_plans.totals()
    op_by_op = loops.run(without_plans.target, LOOPS[name], 3)
    without_plans.wait_until_told()
    after = without_plans.totals()
    assert after["ops"] - before["ops"] == after["launches"] - before["launches"] > STEPS
    _run_and_plan(service, LOOPS[name], 3)
    assert loops.run(service.target, LOOPS[name], 3) == op_by_op


@pytest.fixture(scope="module")
def unhurried(backend: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server that splits no launch because the machine is slow."""
    environment = {"FUSEWIRE_DEVICE__SUBMISSION_S": "60"}
    with serving(backend, cache=tmp_path_factory.mktemp("cache"), environment=environment) as service:
        yield service


@pytest.mark.parametrize("name", LOOPS)
def test_rows_of_one_launch_give_each_client_what_it_gets_alone(unhurried: Service, name: str) -> None:
    clients = [Client(name, seed) for seed in range(CLIENTS)]
    alone = _alone(unhurried, clients)
    # Where a client's first ops are cut is a matter of time. One cut otherwise has its segments in another order, and
    # is joined by few: then all do it again.
    for _ in range(_ATTEMPTS):
        before = unhurried.programs()  # told since all of that ended
        assert _released_together(unhurried, clients) == alone
        unhurried.wait_until_told()
        if CLIENTS in _rows_a_launch(before, unhurried.programs()):
            return
    pytest.fail("no program ran only in launches of all clients")


def test_clients_of_other_programs_change_no_bytes(service: Service) -> None:
    clients = [Client(name, seed) for seed in range(2) for name in LOOPS]
    alone = _alone(service, clients)
    assert _released_together(service, clients) == alone
    with ThreadPoolExecutor(len(clients)) as pool:
        for _ in range(3):
            assert list(pool.map(lambda client: loops.run(service.target, client.loop, client.seed), clients)) == alone


def test_client_processes_get_what_each_gets_alone(service: Service) -> None:
    clients = [Client("recurrence", 0), Client("recurrence", 1), Client("training", 2)]
    alone = _alone(service, clients)
    with ThreadPoolExecutor(len(clients)) as pool:
        assert list(pool.map(lambda client: _in_a_process(service, client), clients)) == alone


# ---- programs ----


def _written_inline(state: fw.Array, weights: fw.Array, shift: fw.Array) -> fw.Array:
    for _ in range(100):
        z = state @ weights
        state = fw.tanh(z) + shift
    state.future()  # while z still has a name
    return state


def _written_as_a_function(state: fw.Array, weights: fw.Array, shift: fw.Array) -> fw.Array:
    for _ in range(100):
        state = _step(state, weights, shift)
    return state


def _step(state: fw.Array, weights: fw.Array, shift: fw.Array) -> fw.Array:
    z = state @ weights
    return fw.tanh(z) + shift


def _printing_shapes(state: fw.Array, weights: fw.Array, shift: fw.Array) -> fw.Array:
    for _ in range(100):
        z = state @ weights
        state = fw.tanh(z) + shift
        assert "32" in f"{state.shape} {z!r}"
    return state


class _Batched(Protocol):
    """A loop over so many rows at once."""

    def __call__(self, session: fw.Session, seed: int, *, batch: int) -> fw.Array: ...


_BODY_OPS = 3
_Written = Callable[[fw.Array, fw.Array, fw.Array], fw.Array]


@pytest.mark.parametrize("written", [_written_as_a_function, _printing_shapes])
def test_a_loop_is_one_program_however_it_is_written(service: Service, written: _Written) -> None:
    used = [_programs_of(service, each) for each in (_written_inline, written)]
    programs = service.programs()
    whole = {digest for digest in set().union(*used) if not programs[digest]["is_fragment"]}
    assert [programs[digest]["ops"] for digest in whole] == [_BODY_OPS]


@pytest.mark.parametrize(("written", "names_left"), [(_written_as_a_function, 0), (_written_inline, 1)])
def test_only_the_state_of_a_loop_becomes_a_buffer(service: Service, written: _Written, names_left: int) -> None:
    with service.connect() as session, service.held():
        state = _run_written(session, written)
        state.future()
        service.wait_until_in_flight(100 * _BODY_OPS)
        service.wait_until(lambda: _names_in_flight(service, state) == names_left, "room for states alone")


@pytest.mark.parametrize("loop", [loops.recurrence, loops.halves])
def test_a_known_program_with_another_batch_size_compiles_nothing(service: Service, loop: _Batched) -> None:
    known, *others = [_kernels_of(service, loop, batch) for batch in (5, 9, 64)]
    assert known
    assert others == [known, known]


# ---- lives ----


def test_references_dropped_before_completion_cost_no_value(service: Service) -> None:
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    with service.connect() as session:
        with service.held():
            x = session.array(data)
            y = x * 2
            z = (y + x) @ x.T
            fetched = z.future()
            service.wait_until_in_flight(4)
            sent_bytes = session.stats.sent_bytes
            del x, y, z
            gc.collect()
            service.wait_until(lambda: session.stats.sent_bytes > sent_bytes, "a frame that tells of their end")
            service.wait_until(lambda: _received_bytes(service) >= session.stats.sent_bytes, "its arrival")
            assert not fetched.done()
        assert np.array_equal(fetched.result(_RESULT_WITHIN_S), (data * 3) @ data.T)
        service.wait_until_told()
        service.wait_until(lambda: service.stats()["memory"]["live_bytes"] == 0, "the return of all memory")


def test_a_client_that_leaves_in_the_middle_changes_nothing_for_others(service: Service) -> None:
    alone = loops.run(service.target, loops.recurrence, 5)
    with service.connect() as session:
        with service.connect() as leaving, service.held():
            fetched = loops.recurrence(session, 5).future()
            loops.recurrence(leaving, 6).future()
            service.wait_until_in_flight(session.stats.in_flight.ops + leaving.stats.in_flight.ops)
            leaving.close()
        assert fetched.result(_RESULT_WITHIN_S).tobytes() == alone


# ---- defined values ----


def _divided(session: fw.Session) -> tuple[fw.Array, list[int]]:
    x, zeros = session.array(np.array([7, -7, 0])), session.array(np.array([0, 0, 0]))
    return fw.concat([x // zeros, x % zeros]), [0] * 6


def _out_of_range(session: fw.Session) -> tuple[fw.Array, list[float]]:
    x = session.array(np.array([1.0, 2.0, 3.0]))
    return fw.take(x, session.array(np.array([-9, 1, 99, 2**62]))), [1.0, 2.0, 3.0, 3.0]


def _not_a_number(session: fw.Session) -> tuple[fw.Array, list[float]]:
    x = session.array(np.array([-1.0, 0.0, np.inf, np.nan], np.float32))
    return fw.log(x), [np.nan, -np.inf, np.inf, np.nan]


def _saturated(session: fw.Session) -> tuple[fw.Array, list[int]]:
    x = session.array(np.array([1e30, -np.inf, np.nan, 2.9]))
    return x.astype(fw.int32), [2**31 - 1, -(2**31), 0, 2]


@pytest.mark.parametrize("ask", [_divided, _out_of_range, _not_a_number, _saturated])
def test_what_has_no_value_elsewhere_has_a_defined_one(
    service: Service, ask: Callable[[fw.Session], tuple[fw.Array, list[Any]]]
) -> None:
    alone = loops.run(service.target, loops.training, 4)
    with service.connect() as asking, service.connect() as other:
        with service.held():
            fetched = loops.training(other, 4).future()
            asked, wanted = ask(asking)
            answer = asked.future()
        np.testing.assert_array_equal(answer.result(_RESULT_WITHIN_S), wanted)
        assert fetched.result(_RESULT_WITHIN_S).tobytes() == alone


# ---- clients ----


def _alone(service: Service, clients: Sequence[Client]) -> list[bytes]:
    """What each gets with nobody else there; in the end all programs are planned."""
    return [_run_and_plan(service, client.loop, client.seed) for client in clients]


def _run_and_plan(service: Service, loop: Loop, seed: int) -> bytes:
    """The bytes of a loop's result; its session stays until its programs are planned: nobody plans for the gone."""
    with service.connect() as session:
        result = loop(session, seed).numpy().tobytes()
        service.wait_until_planned()
    return result


def _released_together(service: Service, clients: Sequence[Client]) -> list[bytes]:
    """What each gets when the work of all is at the server before any of it runs."""
    with ExitStack() as stack:
        sessions = [stack.enter_context(service.connect()) for _ in clients]
        with service.held():
            fetched = [
                client.loop(session, client.seed).future() for client, session in zip(clients, sessions, strict=True)
            ]
            service.wait_until_in_flight(sum(session.stats.in_flight.ops for session in sessions))
        return [future.result(_RESULT_WITHIN_S).tobytes() for future in fetched]


def _in_a_process(service: Service, client: Client) -> bytes:
    command = [sys.executable, "-m", "tests.contract.loops", service.target, client.name, str(client.seed)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=_RESULT_WITHIN_S, check=True)
    return bytes.fromhex(done.stdout)


def _rows_a_launch(before: _Programs, after: _Programs) -> list[float]:
    """The mean of what was launched meanwhile, of each program that is no fragment: whole if all launches are alike."""
    means = []
    for digest, each in after.items():
        known = before.get(digest, {"rows": 0, "submissions": 0})
        submissions = each["submissions"] - known["submissions"]
        if submissions and not each["is_fragment"]:
            means.append((each["rows"] - known["rows"]) / submissions)
    return means


def _received_bytes(service: Service) -> int:
    """From the only session."""
    (session,) = service.sessions()
    return int(session["received_bytes"])


def _names_in_flight(service: Service, state: fw.Array) -> float:
    """How many values of the size of a state are in flight, beside one of each segment."""
    (session,) = service.sessions()
    return float(session["in_flight_bytes"] / state.nbytes - session["in_flight_segments"])


def _kernels_of(service: Service, loop: _Batched, batch: int) -> set[str]:
    """The keys of all kernels that a loop's programs are made of: what has the same key is compiled once.

    The device is held, so that where the loop is cut does not depend on how fast it is.
    """
    with service.connect() as session:
        with service.held():
            last = loop(session, 0, batch=batch).future()
        last.result(_RESULT_WITHIN_S)
        service.wait_until_planned()
        plans = [service.program(digest)["compiled"] for digest in session.stats.programs]
    return {group["kernel"] for plan in plans for group in plan["groups"]}


def _programs_of(service: Service, written: _Written) -> set[str]:
    with service.connect() as session:
        _run_written(session, written).numpy()
        programs = set(session.stats.programs)
    service.wait_until_told()
    return programs


def _run_written(session: fw.Session, written: _Written) -> fw.Array:
    random = np.random.default_rng(1)
    shapes = ((3, 32), (32, 32), (3, 32))
    state, weights, shift = (session.array(random.normal(size=shape).astype(np.float32)) for shape in shapes)
    return written(state, weights, shift)
