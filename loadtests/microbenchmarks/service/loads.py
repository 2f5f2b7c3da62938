"""Figures from load tests: how well a server serves many sessions, and on a GPU how many steps 15 clients do.

Each figure runs one scenario on a fresh server. `loadtests/README.md` says how a load test measures.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from loadtests.load.load_test import LoadTest
from loadtests.load.options import Options
from loadtests.load.target.server import own_server
from loadtests.measuring.errors import LoadFailed
from loadtests.measuring.figure import Figure, Peer
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.reports.document import Document, document_of
from loadtests.scenarios.catalogue import find_scenarios
from loadtests.system.context import Context

_SECONDS = 6.0
_MOST_PROCESSES = 4
_GPU_SECONDS = 3.0
_GPU_PROCESSES = 15
_GPU_PEERS = {"rl": None, "rnn": "torch"}  # by scenario


class _Load(NamedTuple):
    """A figure that is one field of a load test's result."""

    name: str
    scenario: str
    sessions: int
    field: str
    what: str
    unit: str = ""


_HOLDING = (
    _Load("load_rl", "rl", 100, "p99_to_p50", "100 agents: p99 ÷ p50"),
    _Load("load_mixed", "mixed", 16, "rows_per_ready", "16 clients, 8 programs: rows ÷ clients that were ready"),
    _Load("load_unequal", "unequal", 8, "fairness", "8 clients, rows of 1, 2, 4, 8 × the cost: Jain's index"),
    _Load("load_aggressor", "aggressor", 8, "p99_to_undisturbed", "8 agents beside a greedy client: p99 ÷ without it"),
    _Load("load_bulk", "bulk", 8, "p99_to_undisturbed", "8 agents beside uploads of 1 GiB: p99 ÷ without it"),
    _Load("load_harness", "rnn", 8, "harness_share", "the harness's share of the clients' processor time, rnn"),
)


def _measure(context: Context, held: _Load) -> tuple[Figure, ...]:
    options = _options(held.scenario, held.sessions, min(held.sessions, _MOST_PROCESSES), _SECONDS)
    document = _run(context, options)
    value = document[held.field]
    return (Figure(held.name, held.what, value, held.unit, notes=_notes(document), raw=_raw(document)),)


def _measure_clients(context: Context, scenario: str, peer: str | None) -> tuple[Figure, ...]:
    options = _options(scenario, _GPU_PROCESSES, _GPU_PROCESSES, _GPU_SECONDS)._replace(peer=peer)
    document = _run(context, options)
    return (
        Figure(
            name=_gpu_name(scenario),
            what=f"{scenario}, {_GPU_PROCESSES} clients, steps of all",
            value=document["steps_per_s"],
            unit="steps/s",
            peer=Peer("torch eager", document["peer"]["steps_per_s"], document["steps_to_peer"]) if peer else None,
            notes=_notes(document),
        ),
    )


def _options(scenario: str, sessions: int, processes: int, seconds: float) -> Options:
    return Options(find_scenarios()[scenario], sessions, processes, seconds)


def _run(context: Context, options: Options) -> Document:
    with own_server(context.backend) as server:
        result = LoadTest(options, server, lambda _what, _done, _total: None).run()
    document = document_of(options, result, {}, {})
    if document["problems"]:
        raise LoadFailed("; ".join(document["problems"]))
    return document


def _notes(document: Document) -> tuple[str, ...]:
    speed = f"{document['steps_per_s']:,.0f} steps/s, p50 {document['p50_s'] * 1e3:.2f} ms"
    speed += f", p99 {document['p99_s'] * 1e3:.2f} ms, {document['rows_per_launch']:.2f} rows a launch"
    return (speed if document["settled"] else f"{speed}; the load never settled",)


def _raw(document: Document) -> dict[str, list[float]]:
    measured = [interval for interval in document["timeline"] if interval["is_measured"] and interval["steps"]]
    return {field: [interval[field] for interval in measured] for field in ("steps", "p50_s", "p99_s")}


def _gpu_name(scenario: str) -> str:
    return f"load_{scenario}_{_GPU_PROCESSES}"


LOADS = tuple(Microbenchmark((held.name,), partial(_measure, held=held)) for held in _HOLDING)
RL_CLIENTS, RNN_CLIENTS = (
    Microbenchmark((_gpu_name(scenario),), partial(_measure_clients, scenario=scenario, peer=peer))
    for scenario, peer in _GPU_PEERS.items()
)
