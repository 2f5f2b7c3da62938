"""Measures how much a reader of the metrics slows a server down: `rnn` with and without a scrape each second.

The sessions of the scenario run all the time. The time is divided into windows of a second, and these into pairs. In
one window of each pair the metrics are read; which one it is changes from pair to pair. The figure is the upper end of
the 95 % interval of the slowdown, so noise mostly makes it larger.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from loadtests.load import worker
from loadtests.load.load_test import check_first_steps
from loadtests.load.options import Options
from loadtests.load.target.server import ServerUnderLoad, own_server
from loadtests.load.worker import FUSEWIRE, Assignment, Taken
from loadtests.measuring.errors import LoadFailed
from loadtests.measuring.figure import Figure
from loadtests.measuring.pairs import paired_ratio
from loadtests.measuring.timing import elapsed_ns, summarise, take_turns
from loadtests.measuring.workers import Fleet
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.scenarios.catalogue import find_scenarios
from loadtests.system.context import Context
from loadtests.system.service import Service

_PAIRS = 60
_WINDOW_S = 1.0
_SCRAPED_AT_S = 0.25
_PROCESSES = 4
_WARM_UP_S = 5.0
_PLANNING_DEADLINE_S = 90.0  # the clients take the processors from the planner


def _measure(context: Context) -> tuple[Figure, ...]:
    scenario = find_scenarios()["rnn"]
    options = Options(scenario, scenario.sessions, _PROCESSES)
    with own_server(context.backend) as server, _sessions(options, server) as fleet:
        assert server.service is not None
        fleet.ask("open")
        check_first_steps(options, fleet.ask("first_steps"), FUSEWIRE)
        load = _Load(fleet, server.service)
        load.warm_up()
        ways = {
            "without": lambda: [load.steps_per_s(is_scraped=False)],
            "with": lambda: [load.steps_per_s(is_scraped=True)],
        }
        measured = take_turns(_PAIRS, ways)
        fleet.ask("end")
        fleet.ask("close")
    return (_figure(measured, load.scrapes_ms, load.scraped_bytes),)


def _sessions(options: Options, server: ServerUnderLoad) -> Fleet:
    name, sessions, seed = options.scenario.name, options.sessions, options.seed
    shares = options.shares()
    return Fleet(
        worker.serve, [(Assignment(name, FUSEWIRE, server.access, share, sessions, seed),) for share in shares]
    )


class _Load:
    """A load that runs all the time, and is measured in windows."""

    def __init__(self, fleet: Fleet, service: Service) -> None:
        self._fleet = fleet
        self._service = service
        self.scrapes_ms: list[float] = []
        self.scraped_bytes = 0
        fleet.ask("begin", time.monotonic_ns())

    def warm_up(self) -> None:
        time.sleep(_WARM_UP_S)
        self._service.wait_until_planned(_PLANNING_DEADLINE_S)

    def steps_per_s(self, *, is_scraped: bool) -> float:
        """Returns the rate of all sessions in a window, in which the metrics are read or not."""
        self._take()
        began_ns = time.monotonic_ns()
        _sleep_until(began_ns, _SCRAPED_AT_S)
        if is_scraped:
            self.scrapes_ms.append(elapsed_ns(self._scrape) / 1e6)
        _sleep_until(began_ns, _WINDOW_S)
        ended_ns = time.monotonic_ns()
        steps = sum(len(taken.samples.ended_within(began_ns, ended_ns)) for taken in self._take())
        return steps / ((ended_ns - began_ns) / 1e9)

    def _scrape(self) -> None:
        self.scraped_bytes = len(self._service.metrics())

    def _take(self) -> list[Taken]:
        taken: list[Taken] = self._fleet.ask("take")
        errors = [error for each in taken for error in each.errors.values()]
        if errors:
            raise LoadFailed(errors[0])
        return taken


def _sleep_until(began_ns: int, at_s: float) -> None:
    time.sleep(max(at_s - (time.monotonic_ns() - began_ns) / 1e9, 0))


def _figure(steps_per_s: Mapping[str, Sequence[float]], scrapes_ms: Sequence[float], scraped_bytes: int) -> Figure:
    alone, scraped = steps_per_s["without"], steps_per_s["with"]
    slowdown = paired_ratio(scraped, alone)
    speed, scraped_speed = summarise(alone).median, summarise(scraped).median
    return Figure(
        name="scraping",
        what="slowdown of rnn by a scrape each second, upper end of the 95 % interval",
        value=(slowdown.high - 1) * 100,
        unit="%",
        notes=(
            f"slowdown {slowdown.ratio:.4f}, 95 % interval {slowdown.low:.4f} … {slowdown.high:.4f}",
            f"{len(alone)} pairs of windows: {speed:,.0f} steps/s, with scrapes {scraped_speed:,.0f}",
            f"a scrape takes {summarise(scrapes_ms).median:.1f} ms and reads {scraped_bytes:,} bytes",
        ),
        raw={**steps_per_s, "scrapes_ms": scrapes_ms},
    )


SCRAPING = Microbenchmark(("scraping",), _measure)
