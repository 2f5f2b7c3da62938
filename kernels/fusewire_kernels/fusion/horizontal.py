"""Fuses horizontally: equal groups that do not wait for one another become the instances of one launch.

Each group has a level. The level is 1 if the group waits for no group. Otherwise the level is one more than the highest
level of a group that it waits for. Groups of one level do not wait for one another, so the groups of one level with the
same kernel and sizes share a launch. Launches run level by level.
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
    """Returns the launches of all groups, as few as the levels allow, in the order in which the launches run."""
    members: dict[tuple[int, str, tuple[int, ...]], list[int]] = {}
    levels = _levels(fusion)
    for group, (lowered, _, _) in enumerate(instances):
        members.setdefault((levels[group], lowered.kernel.key, lowered.sizes), []).append(group)
    ordered = sorted(members.values(), key=lambda groups: (levels[groups[0]], groups[0]))
    return [GroupedLaunch(instances[groups[0]].lowered, tuple(groups)) for groups in ordered]


def _levels(fusion: Fusion) -> list[int]:
    levels: list[int] = []
    for waits_for in fusion.waits_for:
        levels.append(1 + max([levels[other] for other in waits_for], default=0))
    return levels
