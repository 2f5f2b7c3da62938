"""Equal independent groups as instances of one launch."""

from __future__ import annotations

from fusewire_kernels.build import design
from fusewire_kernels.fusion.horizontal import GroupedLaunch
from fusewire_protos.programs.program import Program
from tests.kernels.programs import Writer


def _launches(program: Program) -> list[GroupedLaunch]:
    return design(program, for_gpu=False).launches


def test_equal_independent_groups_are_one_launch() -> None:
    writer = Writer()
    inputs = [writer.input(3) for _ in range(4)]
    results = [writer.tanh(x) for x in inputs]
    assert [len(launch.groups) for launch in _launches(writer.program(*results))] == [4]


def test_groups_of_other_sizes_are_other_launches_of_the_same_kernel() -> None:
    writer = Writer()
    x, y = writer.input(3), writer.input(4)
    first, second = _launches(writer.program(writer.tanh(x), writer.tanh(y)))
    assert first.lowered.kernel.key == second.lowered.kernel.key


def test_equal_groups_that_wait_for_one_another_are_launched_in_turn() -> None:
    writer = Writer()
    x, w = writer.input(3, 3), writer.input(3, 3)
    assert len(_launches(writer.program(writer.matmul(writer.matmul(x, w), w)))) == 2


def test_chains_of_equal_products_that_end_together_share_launches() -> None:
    writer = Writer()
    x, weights = writer.input(4, 4), [writer.input(4, 4) for _ in range(4)]
    late = writer.sum(writer.tanh(x), axes=(1,), keepdims=True)
    heads = [x, writer.multiply(x, late)]
    ends = [
        writer.matmul(writer.matmul(head, first), second)
        for head, first, second in zip(heads, weights[:2], weights[2:], strict=True)
    ]
    assert [len(launch.groups) for launch in _launches(writer.program(*ends))] == [1, 2, 2]


def test_chains_that_begin_together_share_launches_though_one_is_longer() -> None:
    writer = Writer()
    x, weights = writer.input(4, 4), [writer.input(4, 4) for _ in range(4)]
    ends = [writer.matmul(writer.matmul(x, weight), weight) for weight in weights]
    last = writer.sum(ends[0], axes=(1,), keepdims=False)
    assert [len(launch.groups) for launch in _launches(writer.program(last, *ends[1:]))] == [4, 4, 1]
