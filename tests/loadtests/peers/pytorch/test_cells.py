"""What the peer asks of torch for each cell, with NumPy in torch's place: this needs neither torch nor a GPU."""

from __future__ import annotations

import pytest

from loadtests.peers.pytorch.cells import TorchCells
from loadtests.workloads.cells import Blocks, Cell, Conv2d, Mlp, Norm, Product, Split
from loadtests.workloads.loops import NUMPY, check_close
from tests.loadtests.peers.numpy_as_torch import numpy_as_torch

_PRODUCTS = (Product(8, 16, 16), Product(3, 5, 9), Product(3, 5, 9, is_transposed=True))
_CELLS = (Mlp(8, 64, 4), Conv2d(2, 3, 5), Split(4, 8), Blocks(3, 4, 16), *_PRODUCTS)


@pytest.mark.parametrize("cell", _CELLS, ids=lambda cell: cell.name)
def test_the_fastest_form_of_a_cell_comes_to_the_result_of_numpy(cell: Cell) -> None:
    loop = cell.loop()
    expected = loop.read(loop.run(loop.operands, range(1), NUMPY))
    check_close(TorchCells(numpy_as_torch()).result(cell), expected, cell.name, tolerance=2e-3)


def test_the_peer_of_the_layer_norm_is_a_copy() -> None:
    cell = Norm(8, 16)
    check_close(TorchCells(numpy_as_torch()).result(cell), cell.loop().operands[0][:8], "a copy")


@pytest.mark.parametrize("cell", [*_CELLS, Norm(8, 16)], ids=lambda cell: cell.name)
def test_the_time_of_a_step_is_that_of_the_graph_divided_by_its_steps(cell: Cell) -> None:
    assert TorchCells(numpy_as_torch()).device_us(cell, 20) == 50.0


def test_products_are_true_float32() -> None:
    torch = numpy_as_torch()
    TorchCells(torch)
    assert torch.backends.cuda.matmul.allow_tf32 is False
    assert torch.backends.cudnn.allow_tf32 is False
