"""What computes each call: a twin, a plan whose kernels were found, one that the planner made, or nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from fusewire_kernels.build import build_plan
from fusewire_kernels.devices.base import DeviceInfo
from fusewire_kernels.devices.null import NullDevice, NullPlan
from fusewire_kernels.plan.plan import KernelSource, Plan
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_kernels.unfused.twins import Twin
from fusewire_protos.errors import ConfigurationError, OutOfMemory, ServerFault
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_server.device.unfused.one_ops import MOST_PIECES, NeverComputed, OneOps, OpInPieces, PlannedOp, TwinOp
from tests.server.parts import EXP, NEGATIVE, VECTOR, call_of


class Dialect(NullDevice):
    """A device of a dialect, whose launches compute nothing."""

    def __init__(self, dialect: str | None, *, has_compiler: bool = True) -> None:
        super().__init__()
        self._dialect, self._has_compiler = dialect, has_compiler

    @property
    def info(self) -> DeviceInfo:
        return super().info._replace(dialect=self._dialect, has_compiler=self._has_compiler)


class Files:
    """Finds the compiled files of kernels, or none, and notes how often it was asked."""

    def __init__(self, *, has_files: bool) -> None:
        self.has_files = has_files
        self.asked: list[Sequence[KernelSource]] = []

    def find(self, sources: Sequence[KernelSource]) -> list[str] | None:
        self.asked.append(sources)
        return ["" for _ in sources] if self.has_files else None


@pytest.mark.parametrize("call", [EXP, NEGATIVE], ids=["inexact", "exact"])
@pytest.mark.parametrize("dialect", ["c", "cuda"])
def test_kernels_compute_where_there_are_some(dialect: str, call: OneOpCall) -> None:
    assert isinstance(OneOps(Dialect(dialect), Files(has_files=True).find).find(call), PlannedOp)


@pytest.mark.parametrize("call", [EXP, NEGATIVE], ids=["inexact", "exact"])
def test_without_a_dialect_twins_compute(call: OneOpCall) -> None:
    assert isinstance(OneOps(Dialect(None, has_compiler=False), Files(has_files=True).find).find(call), TwinOp)


def test_without_kernels_a_twin_computes_on_the_host_what_has_one_result() -> None:
    one_ops = OneOps(Dialect("c"), Files(has_files=False).find)
    assert isinstance(one_ops.find(NEGATIVE), TwinOp)
    assert one_ops.find(EXP) is None
    assert OneOps(Dialect("cuda"), Files(has_files=False).find).find(NEGATIVE) is None


def test_without_a_compiler_either_twins_compute_on_the_host_what_has_no_kernels() -> None:
    device = Dialect("c", has_compiler=False)
    assert isinstance(OneOps(device, Files(has_files=False).find).find(EXP), TwinOp)


@pytest.mark.parametrize("dialect", [None, "c", "cuda"])
def test_the_devices_array_library_computes_library_ops(dialect: str | None) -> None:
    matrices = Spec(dtypes.float64, (2, 2))
    one_op = OneOps(Dialect(dialect), Files(has_files=True).find).find(call_of("svdvals", matrices))
    assert isinstance(one_op, TwinOp)
    given, found = np.diag([2.0, 4.0]), np.zeros(2)
    one_op.run(0, [given.ctypes.data], found.ctypes.data, 0, ())
    assert found.tolist() == [4.0, 2.0]


def test_small_matrices_have_a_plan() -> None:
    one_ops = OneOps(Dialect("cuda"), Files(has_files=True).find)
    small, large = [one_ops.find(call_of("inv", Spec(dtypes.float32, (3, side, side)))) for side in (64, 65)]
    assert isinstance(small, PlannedOp)
    assert isinstance(large, TwinOp)


def test_an_op_that_the_devices_library_lacks_is_refused_with_the_reason() -> None:
    class Lacking(Dialect):
        def library_twin(self, call: OneOpCall) -> Twin:
            raise ServerFault(f"this library has no {call.op.name}")

    one_ops = OneOps(Lacking("c"), Files(has_files=True).find)
    for shape in ((2, 2), (100_000, 8, 8)):
        assert one_ops.find(call_of("eig", Spec(dtypes.float64, shape))) == NeverComputed("this library has no eig")


def test_a_decomposition_is_estimated_by_the_third_power_of_its_side() -> None:
    one_ops = OneOps(Dialect("cuda"), Files(has_files=True).find)
    small, large = [one_ops.find(call_of("inv", Spec(dtypes.float32, (side, side)))) for side in (512, 1024)]
    assert isinstance(small, TwinOp)
    assert isinstance(large, TwinOp)
    assert 7 < large.estimate_ns / small.estimate_ns < 9


def test_a_transform_is_estimated_by_its_points() -> None:
    one_ops = OneOps(Dialect("cuda"), Files(has_files=True).find)
    small, long, many = [
        one_ops.find(call_of("rfft", Spec(dtypes.float32, shape))) for shape in ((1 << 12,), (1 << 20,), (256, 1 << 12))
    ]
    assert isinstance(small, TwinOp)
    assert isinstance(long, TwinOp)
    assert isinstance(many, TwinOp)
    assert 300 < long.estimate_ns / small.estimate_ns < 500
    assert 250 < many.estimate_ns / small.estimate_ns < 260


def test_a_batch_of_matrices_is_estimated_by_their_number() -> None:
    one_ops = OneOps(Dialect("cuda"), Files(has_files=True).find)
    few, many = [one_ops.find(call_of("svdvals", Spec(dtypes.float32, (count, 8, 8)))) for count in (1_000, 100_000)]
    assert isinstance(few, TwinOp)
    assert isinstance(many, TwinOp)
    assert 90 < many.estimate_ns / few.estimate_ns < 110


def test_a_large_batch_of_matrices_is_computed_in_pieces_on_a_processor() -> None:
    matrices = np.random.default_rng(0).standard_normal((20_000, 2, 2)).astype(np.float32)
    one_ops = OneOps(Dialect("c"), Files(has_files=True).find)
    one_op = one_ops.find(call_of("svdvals", Spec(dtypes.float32, matrices.shape)))
    assert isinstance(one_op, OpInPieces)
    found = np.zeros(matrices.shape[:2], np.float32)
    for piece in range(one_op.pieces):
        one_op.run(piece, [matrices.ctypes.data], found.ctypes.data, 0, ())
    assert found.tobytes() == np.linalg.svd(matrices, compute_uv=False).tobytes()


def test_a_huge_batch_has_no_more_pieces_than_are_found_in_a_moment() -> None:
    one_ops, matrices = OneOps(Dialect("c"), Files(has_files=True).find), Spec(dtypes.float32, (1 << 30, 1, 1))
    one_op = one_ops.find(call_of("svdvals", matrices))
    assert isinstance(one_op, OpInPieces)
    assert one_op.pieces == MOST_PIECES


def test_a_call_is_prepared_once() -> None:
    files = Files(has_files=True)
    one_ops = OneOps(Dialect("cuda"), files.find)
    assert one_ops.find(EXP) is one_ops.find(call_of("exp", VECTOR))
    assert len(files.asked) == 1


def test_a_planned_op_launches_its_plan_over_the_addresses_and_the_arena() -> None:
    device = Dialect("c")
    tables: list[list[int]] = []
    launch_iteration = device.launch_iteration

    def noted(loaded: NullPlan, slots: np.ndarray) -> None:
        tables.append(slots[0].tolist())
        launch_iteration(loaded, slots)

    device.launch_iteration = noted  # type: ignore[method-assign]
    one_op = OneOps(device, Files(has_files=True).find).find(EXP)
    assert isinstance(one_op, PlannedOp)
    one_op.run(0, (64,), 128, 0, ())
    assert {64, 128} <= {*tables[0]}
    assert [rows for _, rows in device.launched] == [1]


def test_a_call_without_compiled_kernels_is_missing_until_the_planner_brings_them() -> None:
    device = Dialect("cuda")
    one_ops = OneOps(device, Files(has_files=False).find)
    assert one_ops.find(EXP) is None
    loaded = device.load(build_plan(EXP.program(), "cuda", most_rows=1), ())
    one_ops.add(EXP, loaded)
    assert isinstance(one_ops.find(EXP), PlannedOp)
    assert one_ops.find(NEGATIVE) is None


def test_a_refused_call_has_the_reason_for_ever() -> None:
    one_ops = OneOps(Dialect("cuda"), Files(has_files=True).find)
    one_ops.refuse(EXP, "it cannot be")
    assert one_ops.find(EXP) == NeverComputed("it cannot be")


@pytest.mark.parametrize(
    "error", [ConfigurationError("torn"), ServerFault("no such kernel"), OSError("gone"), OutOfMemory("full")]
)
def test_a_compiled_file_that_does_not_load_counts_as_missing(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Plan, __: Sequence[str]) -> NullPlan:
        raise error

    device = Dialect("cuda")
    monkeypatch.setattr(device, "load", fail)
    assert OneOps(device, Files(has_files=True).find).find(EXP) is None


def test_a_call_of_very_many_operands_is_left_to_the_planner() -> None:
    many = OneOpCall(catalogue.BY_NAME["concat"], (VECTOR,) * 65, (0,))
    files = Files(has_files=True)
    assert OneOps(Dialect("cuda"), files.find).find(many) is None
    assert not files.asked


def test_the_call_that_was_found_least_recently_is_forgotten() -> None:
    files = Files(has_files=True)
    one_ops = OneOps(Dialect("cuda"), files.find, most_calls=2)
    calls = [call_of("exp", Spec(dtypes.float32, (size,))) for size in (1, 2, 3)]
    for call in (calls[0], calls[1], calls[0], calls[2], calls[0]):
        one_ops.find(call)
    assert len(files.asked) == 3
    one_ops.find(calls[1])
    assert len(files.asked) == 4
