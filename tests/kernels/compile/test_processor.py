"""Which kernels that were compiled elsewhere a processor runs."""

from __future__ import annotations

import pytest

from fusewire_kernels.compile.processor import level_of

HASWELL = (
    "fpu vme sse sse2 ss ht syscall nx pdpe1gb rdtscp lm pni pclmulqdq ssse3 fma cx16 sse4_1 sse4_2 movbe popcnt aes "
    "xsave avx f16c rdrand lahf_lm abm bmi1 avx2 bmi2"
)


def _cpuinfo(flags: str) -> str:
    return f"processor\t: 0\nmodel name\t: some\nflags\t\t: {flags}\n\nprocessor\t: 1\nflags\t\t: {flags}\n"


def test_a_processor_with_all_features_runs_the_shipped_kernels() -> None:
    assert level_of("x86_64", _cpuinfo(HASWELL)) == "x86-64-v3"


@pytest.mark.parametrize("feature", ["avx2", "fma", "bmi2", "movbe", "abm", "popcnt"])
def test_a_processor_that_lacks_a_feature_runs_none(feature: str) -> None:
    flags = " ".join(flag for flag in HASWELL.split() if flag != feature)
    assert level_of("x86_64", _cpuinfo(flags)) is None


def test_a_machine_that_tells_nothing_runs_none() -> None:
    assert level_of("x86_64", "") is None


def test_every_arm_processor_of_64_bits_runs_the_shipped_kernels() -> None:
    assert level_of("aarch64", "processor\t: 0\nFeatures\t: fp asimd\n") == "armv8-a"


def test_there_are_none_for_other_machines() -> None:
    assert level_of("riscv64", "isa\t: rv64imafdc\n") is None
