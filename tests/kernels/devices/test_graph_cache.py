"""Which launches are captured as graphs, and which graphs are kept."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

import pytest

from fusewire_kernels.devices.graph_cache import (
    MOST_GRAPHS,
    MOST_KEYS,
    MOST_NODES,
    USES_BEFORE,
    GraphCache,
    PlanGraphs,
    graph_rows,
    graph_sizes,
)

PLAN = PlanGraphs(8)


USES_UNTIL = USES_BEFORE + 2  # with a capture that is done at once: one use begins it, and the next has the graph


def never() -> Future[str | None]:
    raise AssertionError("captured again")


def done(graph: str | None) -> Callable[[], Future[str | None]]:
    """A capture that is done as it begins."""

    def capture() -> Future[str | None]:
        future: Future[str | None] = Future()
        future.set_result(graph)
        return future

    return capture


def use(cache: GraphCache[str], key: object, times: int = USES_UNTIL, nodes: int = 8) -> str | None:
    """Uses a key so often; returns the last answer."""
    return [cache.use(key, nodes, done(f"graph of {key}"), PLAN) for _ in range(times)][-1]


def cache_and_dropped() -> tuple[GraphCache[str], list[str]]:
    dropped: list[str] = []
    return GraphCache(dropped.append), dropped


@pytest.mark.parametrize(
    ("nodes", "sizes"), [(0, ()), (1, (128, 16)), (3, (42, 5)), (8, (16, 2, 1)), (200, (1,)), (4000, ())]
)
def test_graphs_have_enough_launches_to_pay_and_no_more_than_memory_allows(nodes: int, sizes: tuple[int, ...]) -> None:
    assert graph_sizes(nodes) == sizes


def test_launches_run_before_they_are_captured() -> None:
    cache, _ = cache_and_dropped()
    answers = [cache.use("a", 8, done("graph"), PLAN) for _ in range(USES_UNTIL)]
    assert answers == [None] * (USES_BEFORE + 1) + ["graph"]


def test_launches_are_made_one_by_one_while_their_graph_is_captured() -> None:
    cache, _ = cache_and_dropped()
    use(cache, "a", USES_BEFORE)
    capture: Future[str | None] = Future()
    assert cache.use("a", 8, lambda: capture, PLAN) is None
    assert [cache.use("a", 8, never, PLAN) for _ in range(3)] == [None] * 3
    assert cache.captured == 0
    capture.set_result("graph")
    assert cache.use("a", 8, never, PLAN) == "graph"
    assert cache.captured == 1


def test_a_capture_that_is_no_longer_worth_it_is_given_up() -> None:
    cache, dropped = cache_and_dropped()
    use(cache, "a", USES_BEFORE)
    capture: Future[str | None] = Future()
    cache.use("a", MOST_NODES, lambda: capture, PLAN)
    use(cache, "b")
    assert capture.cancelled()
    assert (cache.captured, cache.kept, dropped) == (1, 1, [])


def test_a_capture_that_fails_is_one_without_memory() -> None:
    cache, _ = cache_and_dropped()
    use(cache, "a", USES_BEFORE)
    capture: Future[str | None] = Future()
    capture.set_exception(RuntimeError("the device refused work"))
    cache.use("a", 8, lambda: capture, PLAN)
    assert cache.use("a", 8, never, PLAN) is None
    assert use(cache, "a") == "graph of a"


@pytest.mark.parametrize(
    ("rows", "of_graph"),
    [(1, 1), (2, 2), (3, 3), (4, 4), (5, 6), (9, 12), (13, 16), (16, 16), (17, 24), (33, 48), (49, 60)],
)
def test_a_graph_serves_rows_up_to_a_power_of_two_or_three_quarters_of_one(rows: int, of_graph: int) -> None:
    assert graph_rows(rows, 60) == of_graph


def test_a_captured_graph_is_used_from_then_on() -> None:
    cache, dropped = cache_and_dropped()
    use(cache, "a")
    assert cache.use("a", 8, never, PLAN) == "graph of a"
    assert (cache.captured, cache.kept, dropped) == (1, 1, [])


def test_the_graph_used_least_recently_is_dropped() -> None:
    cache, dropped = cache_and_dropped()
    for key in range(MOST_GRAPHS):
        use(cache, key)
    cache.use(0, 8, never, PLAN)
    use(cache, "new")
    assert dropped == ["graph of 1"]
    assert (cache.captured, cache.kept, cache.evicted) == (MOST_GRAPHS + 1, MOST_GRAPHS, 1)


def test_all_graphs_together_have_no_more_nodes_than_allowed() -> None:
    cache, dropped = cache_and_dropped()
    for key in range(3):
        use(cache, key, nodes=MOST_NODES // 2)
    assert dropped == ["graph of 0"]


def test_a_dropped_graph_is_captured_again_only_after_as_many_uses_as_a_new_one() -> None:
    cache, _ = cache_and_dropped()
    for key in range(MOST_GRAPHS + 1):
        use(cache, key)
    assert cache.use(0, 8, never, PLAN) is None
    assert use(cache, 0, USES_BEFORE + 1) == "graph of 0"


def test_more_plans_in_turn_than_are_kept_are_never_captured() -> None:
    cache, _ = cache_and_dropped()
    for _ in range(10):
        for key in range(MOST_KEYS + 1):
            assert cache.use(key, 8, never, PLAN) is None


def test_what_found_no_memory_is_launched_and_captured_later() -> None:
    cache, dropped = cache_and_dropped()
    for _ in range(USES_BEFORE):
        cache.use("a", 8, never, PLAN)
    assert cache.use("a", 8, done(None), PLAN) is None
    assert [cache.use("a", 8, never, PLAN) for _ in range(USES_BEFORE + 1)] == [None] * (USES_BEFORE + 1)
    assert use(cache, "a", 2) == "graph of a"
    assert (cache.captured, dropped) == (1, [])


def test_of_more_plans_in_turn_than_have_graphs_few_are_captured() -> None:
    cache, _ = cache_and_dropped()
    rounds = 40
    for _ in range(rounds):
        for key in range(2 * MOST_GRAPHS):
            cache.use(key, 8, done("graph"), PLAN)
    assert 0 < cache.kept <= MOST_GRAPHS
    assert cache.captured < 2 * MOST_GRAPHS


def test_a_plan_tells_of_its_graphs_and_why_it_has_none() -> None:
    cache, _ = cache_and_dropped()
    plan, other = PlanGraphs(8), PlanGraphs(8)
    assert "have not come 3 times" in plan.why_none
    for _ in range(USES_UNTIL):
        cache.use("a", 8, done("graph"), plan)
    assert (plan.captured, plan.kept, plan.why_none) == (1, 1, "")
    for key in range(MOST_GRAPHS):
        for _ in range(USES_UNTIL):
            cache.use(key, 8, done("graph"), other)
    assert (plan.captured, plan.evicted, plan.kept) == (1, 1, 0)
    assert "more lately" in plan.why_none
    assert other.captured == MOST_GRAPHS


@pytest.mark.parametrize("nodes", [0, 4000])
def test_a_plan_of_too_few_or_too_many_launches_says_so(nodes: int) -> None:
    assert f"makes {nodes} launches" in PlanGraphs(nodes).why_none
