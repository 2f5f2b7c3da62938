"""Interior buffers share memory as far as their lifetimes allow."""

from __future__ import annotations

import pytest

from fusewire_kernels.build import design
from fusewire_kernels.fusion import needs
from tests.kernels.programs import Writer

_BYTES = 256  # of every buffer here: 8 × 8 float32


def test_a_chain_of_products_needs_two_buffers() -> None:
    writer = Writer()
    x, w = writer.input(8, 8), writer.input(8, 8)
    for _ in range(9):
        x = writer.matmul(x, w)
    assert design(writer.program(x), for_gpu=False).arena.size_bytes == 2 * _BYTES


def test_a_pointwise_result_lies_on_the_operand_that_ends_with_it() -> None:
    writer = Writer()
    x, w = writer.input(8, 8), writer.input(8, 8)
    y = writer.matmul(writer.tanh(writer.matmul(x, w)), w)
    assert design(writer.program(y), for_gpu=False).arena.size_bytes == _BYTES


def test_a_result_that_is_reduced_along_the_way_does_not_lie_on_its_operand() -> None:
    writer = Writer()
    x, w = writer.input(8, 8), writer.input(8, 8)
    y = writer.matmul(writer.softmax(writer.matmul(x, w), axes=(1,)), w)
    assert design(writer.program(y), for_gpu=False).arena.size_bytes == 2 * _BYTES


@pytest.fixture
def _no_epilogues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "MOST_BESIDE_PRODUCT", -1)


@pytest.mark.usefixtures("_no_epilogues")
def test_an_operand_read_in_another_order_is_not_overwritten() -> None:
    writer = Writer()
    x, w = writer.input(8, 8), writer.input(8, 8)
    turned = writer.transpose(writer.matmul(x, w), permutation=(1, 0))
    y = writer.matmul(writer.add(turned, x), w)
    assert design(writer.program(y), for_gpu=False).arena.size_bytes == 2 * _BYTES


@pytest.mark.usefixtures("_no_epilogues")
def test_instances_of_one_launch_share_nothing() -> None:
    writer = Writer()
    x = writer.input(8, 8)
    weights = [writer.input(8, 8) for _ in range(3)]
    products = [writer.matmul(x, weight) for weight in weights]
    total = writer.matmul(writer.add(writer.add(products[0], products[1]), products[2]), x)
    assert design(writer.program(total), for_gpu=False).arena.size_bytes == 3 * _BYTES


def test_live_results_take_nothing_of_the_arena() -> None:
    writer = Writer()
    x = writer.input(8, 8)
    assert design(writer.program(writer.tanh(x), writer.matmul(x, x)), for_gpu=False).arena.size_bytes == 0


def test_memory_given_back_is_joined_with_its_neighbours() -> None:
    writer = Writer()
    x, wide, narrow = writer.input(8, 8), writer.input(8, 24), writer.input(24, 8)
    small = [writer.matmul(x, x) for _ in range(3)]
    y = writer.matmul(writer.matmul(writer.matmul(small[0], small[1]), small[2]), x)
    for _ in range(3):
        y = writer.matmul(writer.matmul(y, wide), narrow)
    assert design(writer.program(y), for_gpu=False).arena.size_bytes <= 5 * _BYTES
