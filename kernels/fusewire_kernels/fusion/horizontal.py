"""Fuses horizontally: equal groups that do not wait for one another become the instances of one launch.

Each group has a level. Groups of one level do not wait for one another, so the groups of one level with the same kernel
and sizes share a launch. Launches run level by level. Levels are counted from the first groups, which wait for none, or
from the last groups, for which none waits. Chains of equal groups that begin together meet in the first case, and
chains that end together meet in the second. The case with fewer launches is taken.
"""

from __future__ import annotations

from typing import NamedTuple

from fusewire_kernels.fusion.fusion import Fusion
from fusewire_kernels.fusion.lowering import Instance, Lowered


class GroupedLaunch(NamedTuple):
    """A launch of groups that share the kernel `lowered`. `groups` are indices into the fusion's groups."""

    lowered: Lowered
    groups: tuple[int, ...]


def schedule(fusion: Fusion, instances: list[Instance]) -> list[GroupedLaunch]:
    """Returns the launches of all groups, in the order in which the launches run."""
    from_first = _launches(_levels_from_first(fusion), instances)
    from_last = _launches(_levels_from_last(fusion), instances)
    fewest = min(from_first, from_last, key=len)  # the first of two that are equally few
    return [GroupedLaunch(instances[groups[0]].lowered, tuple(groups)) for groups in fewest]


def _launches(levels: list[int], instances: list[Instance]) -> list[list[int]]:
    members: dict[tuple[int, str, tuple[int, ...]], list[int]] = {}
    for group, (lowered, *_) in enumerate(instances):
        members.setdefault((levels[group], lowered.kernel.key, lowered.sizes), []).append(group)
    return sorted(members.values(), key=lambda groups: (levels[groups[0]], groups[0]))


def _levels_from_first(fusion: Fusion) -> list[int]:
    levels: list[int] = []
    for waits_for in fusion.waits_for:
        levels.append(1 + max([levels[other] for other in waits_for], default=0))
    return levels


def _levels_from_last(fusion: Fusion) -> list[int]:
    levels = [0] * len(fusion.groups)
    for group in range(len(levels) - 1, -1, -1):
        for other in fusion.waits_for[group]:
            levels[other] = min(levels[other], levels[group] - 1)
    return levels
