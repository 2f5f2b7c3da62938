"""Persistent kernels with a wait of a random time before each send, wait and read."""

from __future__ import annotations

from dataclasses import replace

from fusewire_kernels.plan.plan import KernelSource, Plan

_SEED = "0x5EEDu"


def with_random_waits(source: KernelSource) -> KernelSource:
    """Returns the source of a kernel that waits. It must be compiled apart from other sources."""
    return source._replace(text=f"#define FW_RANDOM_WAITS {_SEED}\n{source.text}")


def plan_with_random_waits(plan: Plan) -> Plan:
    """Returns a plan whose persistent kernel waits."""
    assert plan.persistent is not None
    kernels = list(plan.kernels)
    kernels[plan.persistent.kernel] = with_random_waits(kernels[plan.persistent.kernel])
    return replace(plan, kernels=tuple(kernels))
