"""Fuses horizontally: equal groups that do not wait for one another become the instances of one launch.

The level of a group is the length of the longest chain of groups that it waits for. Groups of one level are
independent, so those with the same kernel and sizes share a launch. Launches run level by level.
"""

from __future__ import annotations

from typing import NamedTuple

from fusewire_kernels.fusion.fusion import Fusion
from fusewire_kernels.fusion.lowering import Instance, Lowered


class GroupedLaunch(NamedTuple):
    """The groups that run in one launch, as indices into the fusion's groups, and the kernel they share."""

    lowered: Lowered
    groups: tuple[int, ...]


def schedule(fusion: Fusion, instances: list[Instance]) -> list[GroupedLaunch]:
    """The launches that run all groups, as few as the levels allow, in the order in which they run."""
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
