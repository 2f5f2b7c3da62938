"""Rows in registers: what is loaded, kept and computed in which pass, and which kernels read their rows again."""

from __future__ import annotations

from fusewire_kernels.codegen.cuda.geometry import LONGEST_SHORT_ROW
from fusewire_kernels.codegen.cuda.register_rows import ELEMENTS, MOST_THREADS, Pass, RegisterRows, register_rows
from fusewire_kernels.codegen.generate import generate
from fusewire_kernels.codegen.statements import analyse
from fusewire_kernels.ir.kernel import Argument, ArgumentKind, Kernel, LoopKernel, Node, Store, Stride
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from tests.kernels.codegen.kernels_of_note import NOTED
from tests.kernels.problems import node

f32, f64, i64 = dtypes.float32, dtypes.float64, dtypes.int64
_ROW = (Stride.ANY, Stride.UNIT)
_TOTAL = (Stride.UNIT, Stride.ZERO)


def _array(dtype: DType, *strides: Stride) -> Argument:
    return Argument(ArgumentKind.ARRAY, dtype, strides)


def _kernel(inputs: int, nodes: list[Node], *stored: int, dtype: DType = f32) -> LoopKernel:
    """A kernel over rows that stores whole rows of the values `stored`."""
    arguments = tuple([_array(dtype, *_ROW) for _ in range(inputs)])
    stores = tuple([Store(value, _array(dtype, *_ROW)) for value in stored])
    return LoopKernel(1, True, arguments, tuple(nodes), stores)


def _rows(kernel: Kernel) -> RegisterRows | None:
    assert isinstance(kernel, LoopKernel)
    return register_rows(analyse(kernel))


def test_the_elements_of_the_longest_row_have_a_thread() -> None:
    assert MOST_THREADS * ELEMENTS == LONGEST_SHORT_ROW


def test_softmax_loads_its_row_once_and_keeps_the_exponential_in_its_place() -> None:
    rows = _rows(NOTED["softmax_rows"])
    assert rows is not None
    assert rows.passes == (
        Pass(targets=(0, 0), loaded=(0,), held=(0,), made=(), kept=()),  # the greatest, and where it is
        Pass(targets=(3,), loaded=(), held=(0,), made=(2, 3), kept=(3,)),  # the sum of the exponentials
        Pass(targets=(5,), loaded=(), held=(3,), made=(5,), kept=()),
    )
    assert rows.array_of[0] == rows.array_of[3]
    assert (rows.arrays, rows.words, rows.blocks) == (("float",), 1, 2)


def test_a_short_computation_is_done_again_and_a_later_input_is_read_when_it_is_needed() -> None:
    nodes = [
        node("negative", (0,), f32),
        node("reduce", (2,), f32, detail="sum"),
        node("subtract", (2, 3), f32),
        node("multiply", (4, 1), f32),
    ]
    rows = _rows(_kernel(2, nodes, 5))
    assert rows is not None
    assert [each.made for each in rows.passes] == [(2,), (1, 2, 4, 5)]
    assert [each.loaded for each in rows.passes] == [(0,), ()]


def test_a_kernel_that_stores_only_totals_has_an_empty_last_pass() -> None:
    total = Store(1, _array(f32, *_TOTAL))
    kernel = LoopKernel(1, True, (_array(f32, *_ROW),), (node("reduce", (0,), f32, detail="sum"),), (total,))
    rows = _rows(kernel)
    assert rows is not None
    assert rows.passes[-1] == Pass((), (), (), (), ())


def test_kernels_that_keep_more_run_one_block_at_a_time() -> None:
    nodes = [node("add", (0, 1), f32), node("reduce", (2,), f32, detail="sum"), node("divide", (2, 3), f32)]
    rows = _rows(_kernel(2, nodes, 4))
    assert rows is not None
    assert (rows.words, rows.blocks) == (2, 1)


def test_a_double_takes_two_registers() -> None:
    nodes = [node("reduce", (0,), f64, detail="sum"), node("divide", (0, 1), f64)]
    rows = _rows(_kernel(1, nodes, 2, dtype=f64))
    assert rows is not None
    assert rows.words == 2


def test_rows_with_too_many_inputs_or_too_much_work_are_read_again() -> None:
    added = [node("add", (0, 1), f32), node("add", (3, 2), f32), node("reduce", (4,), f32, detail="sum")]
    assert _rows(_kernel(3, [*added, node("divide", (4, 5), f32)], 6)) is None
    tanhs = [node("reduce", (0,), f32, detail="sum"), *[node("tanh", (number,), f32) for number in (0, 2, 3, 4)]]
    assert _rows(_kernel(1, tanhs, 5)) is None


def test_rows_of_which_elements_are_gathered_are_read_again() -> None:
    table = Argument(ArgumentKind.GATHERED, f32, (Stride.ZERO, Stride.ZERO))
    picked = (node("gather", (1,), f32, operand_dtype=i64, detail=0), node("reduce", (2,), f32, detail="sum"))
    kernel = LoopKernel(1, True, (table, _array(i64, *_ROW)), picked, (Store(3, _array(f32, *_TOTAL)),))
    assert _rows(kernel) is None


def test_a_row_in_registers_is_read_in_one_place_of_the_text() -> None:
    sources = generate(NOTED["softmax_rows"], "cuda")
    assert [source.key.rpartition("_")[2] for source in sources] == ["whole", "short", "narrow", "long", "few"]
    assert [source.text.count("__ldg(") for source in sources] == [1, 1, 1, 0, 0]


def test_a_number_by_which_several_passes_divide_is_declared_once() -> None:
    whole, short, narrow, *_ = generate(NOTED["softmax_of_quotients"], "cuda")
    assert [source.text.count("fw_divisor_f32 d1 =") for source in (whole, short, narrow)] == [1, 1, 1]
    assert all(source.text.count("fw_divide_by_f32(v0, d1)") > 1 for source in (whole, short, narrow))


def test_a_number_that_divides_a_row_has_its_reciprocal_computed_once_a_row() -> None:
    whole, *_, long, _ = generate(NOTED["softmax_rows"], "cuda")
    _, _, last_pass = whole.text.partition("const fw_divisor_f32 d4 = fw_as_divisor_f32(v4);")
    assert "const float v5 = fw_divide_by_f32(v3, d4);" in last_pass
    assert "fw_divisor" not in long.text


def test_rows_of_whole_chunks_are_not_tested_for_their_end() -> None:
    whole, short, *_ = generate(NOTED["softmax_rows"], "cuda")
    assert "count" not in whole.text
    assert "if (step >= count) break;" in short.text


def test_columns_and_points_have_no_rows() -> None:
    assert _rows(NOTED["softmax_columns"]) is None
    assert _rows(NOTED["pointwise"]) is None
