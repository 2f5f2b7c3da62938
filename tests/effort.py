"""How many random examples a test takes, in the usual run and in a deep one."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

_USUAL_EXAMPLES = 100
_DEEP_EXAMPLES = 1000

# Machines that run tests are busy: how long one example takes says nothing. The usual run takes the same examples each
# time, so that a change fails for what it changed; a deep run takes new ones, and prints how a failure is had again.
USUAL = settings(deadline=None, max_examples=_USUAL_EXAMPLES, derandomize=True)
DEEP = settings(USUAL, max_examples=_DEEP_EXAMPLES, derandomize=False, print_blob=True)


def of_a_hundred(examples: int) -> settings:
    """So many examples for each hundred of the profile: for what takes long."""
    count = examples * _profile_examples() // _USUAL_EXAMPLES
    return settings(max_examples=count, suppress_health_check=[HealthCheck.too_slow])


def seeds(usual: int) -> range:
    """So many seeds, and more in a deep run: for what is drawn by a seed that the name of the test tells."""
    return range(usual * _profile_examples() // _USUAL_EXAMPLES)


def _profile_examples() -> int:
    """What the profile in force asks for."""
    return settings().max_examples
