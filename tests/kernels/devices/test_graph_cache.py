"""Which launches are captured as graphs, and which graphs are kept."""

from __future__ import annotations

import pytest

from fusewire_kernels.devices.graph_cache import (
    MOST_GRAPHS,
    MOST_KEYS,
    MOST_NODES,
    USES_BEFORE,
    GraphCache,
    PlanGraphs,
    graph_sizes,
)

PLAN = PlanGraphs(8)


def never() -> str:
    raise AssertionError("captured again")


def use(cache: GraphCache[str], key: object, times: int = USES_BEFORE + 1, nodes: int = 8) -> str | None:
    """Uses a key so often; returns the last answer."""
    return [cache.use(key, nodes, lambda: f"graph of {key}", PLAN) for _ in range(times)][-1]


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
    answers = [cache.use("a", 8, lambda: "graph", PLAN) for _ in range(USES_BEFORE + 1)]
    assert answers == [None] * USES_BEFORE + ["graph"]


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
    assert use(cache, 0, USES_BEFORE) == "graph of 0"


def test_more_plans_in_turn_than_are_kept_are_never_captured() -> None:
    cache, _ = cache_and_dropped()
    for _ in range(10):
        for key in range(MOST_KEYS + 1):
            assert cache.use(key, 8, never, PLAN) is None


def test_what_found_no_memory_is_launched_and_captured_later() -> None:
    cache, dropped = cache_and_dropped()
    for _ in range(USES_BEFORE):
        cache.use("a", 8, never, PLAN)
    assert cache.use("a", 8, lambda: None, PLAN) is None
    assert [cache.use("a", 8, never, PLAN) for _ in range(USES_BEFORE)] == [None] * USES_BEFORE
    assert cache.use("a", 8, lambda: "graph", PLAN) == "graph"
    assert (cache.captured, dropped) == (1, [])


def test_of_more_plans_in_turn_than_have_graphs_few_are_captured() -> None:
    cache, _ = cache_and_dropped()
    rounds = 40
    for _ in range(rounds):
        for key in range(2 * MOST_GRAPHS):
            cache.use(key, 8, lambda: "graph", PLAN)
    assert 0 < cache.kept <= MOST_GRAPHS
    assert cache.captured < 2 * MOST_GRAPHS


def test_a_plan_tells_of_its_graphs_and_why_it_has_none() -> None:
    cache, _ = cache_and_dropped()
    plan, other = PlanGraphs(8), PlanGraphs(8)
    assert "have not come 3 times" in plan.why_none
    for _ in range(USES_BEFORE + 1):
        cache.use("a", 8, lambda: "graph", plan)
    assert (plan.captured, plan.kept, plan.why_none) == (1, 1, "")
    for key in range(MOST_GRAPHS):
        for _ in range(USES_BEFORE + 1):
            cache.use(key, 8, lambda: "graph", other)
    assert (plan.captured, plan.evicted, plan.kept) == (1, 1, 0)
    assert "more lately" in plan.why_none
    assert other.captured == MOST_GRAPHS


@pytest.mark.parametrize("nodes", [0, 4000])
def test_a_plan_of_too_few_or_too_many_launches_says_so(nodes: int) -> None:
    assert f"makes {nodes} launches" in PlanGraphs(nodes).why_none
