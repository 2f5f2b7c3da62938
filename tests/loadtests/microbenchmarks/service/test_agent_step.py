"""The agent whose steps are measured: two of them, with the same policy, act alike."""

from __future__ import annotations

import numpy as np

from loadtests.microbenchmarks.service.agent_step import Agent
from loadtests.scenarios import library


def test_agents_with_the_same_policy_come_to_the_same_scores_and_each_step_to_others() -> None:
    one, other = Agent(library.numpy()), Agent(library.numpy())
    seen = [one.scores]
    for _ in range(5):
        one.step()
        other.step()
        seen.append(one.scores)
    np.testing.assert_array_equal(one.scores, other.scores)
    assert len({scores.tobytes() for scores in seen}) == 6
