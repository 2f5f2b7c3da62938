"""At tier 0 results are written over dying inputs of their size."""

from __future__ import annotations

from fusewire_kernels.plan.plan import Donation
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import ProgramOp, build
from fusewire_server.programs.tier0_donations import tier0_donations
from tests.server.parts import addition, chain, pair


def test_each_dying_input_makes_place_for_one_result_of_its_size() -> None:
    assert [donation.input for donation in tier0_donations(pair(), [0, 1])] == [0, 1]
    assert len({donation.position for donation in tier0_donations(pair(), [0, 1])}) == 2
    assert tier0_donations(chain(), [0]) == [Donation(0, 0)]
    assert tier0_donations(chain(), []) == []


def test_of_more_dying_inputs_than_results_some_stay() -> None:
    assert tier0_donations(addition(), [0, 1]) == [Donation(0, 0)]


def test_results_of_another_size_may_not() -> None:
    total = ProgramOp(catalogue.BY_NAME["sum"], (0,), ((0,), False))
    assert tier0_donations(build([Spec(dtypes.float32, (2, 2))], [], [total], (0,)), [0]) == []
