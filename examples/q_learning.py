"""Learns to walk through a windy grid: many agents learn side by side by Q-learning, each with its own table.

Source: C. Watkins and P. Dayan, Q-learning, Machine Learning 8 (1992); the grid is example 6.5 of Sutton and Barto,
Reinforcement Learning (2018).
"""

from __future__ import annotations

from typing import Any

import numpy as np

ROWS, COLUMNS, ACTIONS = 7, 10, 4
WIND = np.array([0, 0, 0, 1, 1, 1, 2, 2, 1, 0])
START, GOAL = 3 * COLUMNS, 3 * COLUMNS + 7
_MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))
RATE, DISCOUNT, EXPLORING = 0.5, 1.0, 0.1


def successors() -> Any:
    """Returns the place after each place and action, a NumPy array (places · actions,) of int64."""
    places = np.arange(ROWS * COLUMNS)
    rows, columns = places // COLUMNS, places % COLUMNS
    after = [
        np.clip(rows + down - WIND[columns], 0, ROWS - 1) * COLUMNS + np.clip(columns + right, 0, COLUMNS - 1)
        for down, right in _MOVES
    ]
    return np.stack(after, axis=1).reshape(-1)


def learnt(xp: Any, after: Any, uniform: Any, chosen: Any) -> Any:
    """Returns the tables (agents, places, actions) of agents after steps.

    `uniform` and `chosen` (steps, agents) decide where an agent explores, and which action it then takes.
    """
    steps, agents = uniform.shape
    table = xp.zeros((agents, ROWS * COLUMNS, ACTIONS))
    place = xp.full((agents,), START)
    for step in range(steps):
        values = xp.take_along_axis(table, place[:, None, None], axis=1)[:, 0, :]
        action = xp.where(uniform[step] < EXPLORING, chosen[step], values.argmax(axis=1))
        following = xp.take(after, place * ACTIONS + action)
        there = xp.take_along_axis(table, following[:, None, None], axis=1)[:, 0, :].max(axis=1)
        is_goal = following == GOAL
        target = -1.0 + DISCOUNT * xp.where(is_goal, 0.0, there)
        now = xp.take_along_axis(values, action[:, None], axis=1)[:, 0]
        here = (xp.arange(ROWS * COLUMNS)[None, :, None] == place[:, None, None]) & (
            xp.arange(ACTIONS)[None, None, :] == action[:, None, None]
        )
        table = xp.where(here, (now + RATE * (target - now))[:, None, None], table)
        place = xp.where(is_goal, START, following)
    return table


def walk(table: Any, most: int = 100) -> int:
    """Returns how many steps the best actions of a NumPy table take from the start to the goal, at most `most`."""
    place, after = START, successors()
    for step in range(most):
        if place == GOAL:
            return step
        place = int(after[place * ACTIONS + int(table[place].argmax())])
    return most


def draws(steps: int, agents: int, seed: int = 0) -> tuple[Any, Any]:
    """Returns what decides where agents explore, as NumPy arrays."""
    random = np.random.default_rng(seed)
    return random.uniform(size=(steps, agents)), random.integers(0, ACTIONS, (steps, agents))


if __name__ == "__main__":
    import fusewire as fw

    with fw.connect():
        tables = learnt(fw, fw.asarray(successors()), *map(fw.asarray, draws(15_000, 64)))
        print("steps to the goal:", sorted(walk(table) for table in tables.numpy()))
