"""Measures a step of an agent, which waits for its answer, against a gRPC echo with the same settings.

The agent is the scenario `rl`: it uploads what it senses, a tiny policy runs on the server, and it reads the scores of
its actions. `rl_step` goes over gRPC, and `rl_step_local` by local calls. The echo runs in processes of its own, in
turns with the agents. Another echo rests for a millisecond before each round trip. Its processors have gone to sleep by
then, as those of an agent's thread do while another thread works.
"""

from __future__ import annotations

from itertools import pairwise
from time import perf_counter_ns

import fusewire as fw
from loadtests.measuring.figure import Figure, Peer
from loadtests.measuring.timing import summarise, take_turns
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.peers.bare_pair import bare_pair
from loadtests.scenarios import library
from loadtests.scenarios.agents import rl
from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data
from loadtests.system.context import Context
from loadtests.workloads.loops import Floats, check_close

_ROUNDS = 50  # steps or echoes in a turn
_TURNS = 20
_CHECKED_STEPS = 10
_REST_S = 0.001


class Agent:
    """An agent whose policy runs in this library."""

    def __init__(self, xp: Library) -> None:
        self._xp = xp
        self._steps = rl.program(xp, Data(0, 0))
        self.scores: Floats = xp.read(next(self._steps))

    def step(self) -> None:
        self.scores = self._xp.read(self._steps.send(self.scores))


def _measure(context: Context) -> tuple[Figure, ...]:
    with (
        context.session() as (service, session),
        fw.connect(service.target) as local_session,
        bare_pair() as bare,
    ):
        agent, local = Agent(library.fusewire(session)), Agent(library.fusewire(local_session))
        for each in (agent, local):
            _check(each, Agent(library.numpy()))
            _steps_us(each)
        service.wait_until_planned()
        ways = {
            "agent": lambda: _steps_us(agent),
            "local agent": lambda: _steps_us(local),
            "echo": lambda: [time_ns / 1e3 for time_ns in bare.ask("echo", _ROUNDS)],
            "rested echo": lambda: [time_ns / 1e3 for time_ns in bare.ask("echo", _ROUNDS, _REST_S)],
        }
        take_turns(2, ways)
        times_us = take_turns(_TURNS, ways)
    echoes = times_us["echo"], times_us["rested echo"]
    return (
        _figure("rl_step", "an agent's step: upload, policy, read", times_us["agent"], *echoes),
        _figure("rl_step_local", "an agent's step by local calls", times_us["local agent"], *echoes),
    )


def _check(agent: Agent, expected: Agent) -> None:
    """Raises WrongResult if the scores of some steps differ from NumPy's."""
    for _ in range(_CHECKED_STEPS):
        check_close(agent.scores, expected.scores, "the agent's scores", tolerance=2e-3)
        agent.step()
        expected.step()


def _steps_us(agent: Agent) -> list[float]:
    times_ns = [perf_counter_ns()]
    for _ in range(_ROUNDS):
        agent.step()
        times_ns.append(perf_counter_ns())
    return [(ended_ns - began_ns) / 1e3 for began_ns, ended_ns in pairwise(times_ns)]


def _figure(name: str, what: str, ours_us: list[float], echo_us: list[float], rested_us: list[float]) -> Figure:
    ours, echo, rested = summarise(ours_us), summarise(echo_us), summarise(rested_us)
    return Figure(
        name=name,
        what=what,
        value=ours.median,
        unit="µs",
        peer=Peer("an echo with our gRPC settings", echo.median, ours.median / echo.median),
        spread=ours.spread,
        notes=(
            f"8 of 10 echoes within {echo.spread.low:.0f} … {echo.spread.high:.0f} µs",
            f"an echo after a millisecond of rest: {rested.median:.0f} µs",
        ),
        raw={"fusewire": ours_us, "echo": echo_us, "rested echo": rested_us},
    )


AGENT_STEP = Microbenchmark(("rl_step", "rl_step_local"), _measure)
