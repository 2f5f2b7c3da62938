"""Groups as kernels: dimensions merged, strides classed, sizes laid out."""

from __future__ import annotations

import pytest

from fusewire_kernels.build import design
from fusewire_kernels.fusion.lowering import Instance, lower
from fusewire_kernels.ir.kernel import ArgumentKind, LoopKernel, ProductKernel, Stride
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Shape
from fusewire_protos.programs.program import Program
from tests.kernels.programs import Writer, random_program

_ZERO, _UNIT, _ANY = Stride.ZERO, Stride.UNIT, Stride.ANY


def _instances(program: Program) -> list[Instance]:
    return design(program, for_gpu=False).instances


def _loops(program: Program) -> tuple[LoopKernel, tuple[int, ...]]:
    (instance,) = _instances(program)
    assert isinstance(instance.lowered.kernel, LoopKernel)
    return instance.lowered.kernel, instance.lowered.sizes


def _product(program: Program) -> tuple[ProductKernel, tuple[int, ...]]:
    (instance,) = _instances(program)
    assert isinstance(instance.lowered.kernel, ProductKernel)
    return instance.lowered.kernel, instance.lowered.sizes


@pytest.mark.parametrize("seed", range(30))
def test_groups_of_known_kinds_are_lowered_like_any_other(seed: int) -> None:
    fusion = design(random_program(seed, most_ops=100).program, for_gpu=False).fusion
    of_no_kind = tuple([value._replace(kind=None) for value in fusion.graph.values])
    assert lower(fusion) == lower(fusion._replace(graph=fusion.graph._replace(values=of_no_kind)))


def test_groups_that_differ_in_their_buffers_alone_are_lowered_once() -> None:
    writer = Writer()
    x, y, bias = writer.input(4, 3), writer.input(4, 3), writer.input(3)
    one, other = _instances(writer.program(writer.tanh(writer.add(x, bias)), writer.tanh(writer.add(y, bias))))
    assert one.lowered is other.lowered
    assert [operand.value for operand in one.read()] == [x, bias]
    assert [operand.value for operand in other.read()] == [y, bias]


@pytest.mark.parametrize("shape", [(24,), (1, 24), (2, 3, 4), (24, 1)], ids=str)
def test_contiguous_arrays_of_any_rank_are_one_loop(shape: Shape) -> None:
    writer = Writer()
    kernel, sizes = _loops(writer.program(writer.tanh(writer.input(*shape))))
    assert (kernel.rank, kernel.has_inner, sizes) == (1, False, (24,))
    assert kernel.inputs[0].strides == (_UNIT,)


def test_a_broadcast_operand_keeps_the_dimensions_it_needs() -> None:
    writer = Writer()
    kernel, sizes = _loops(writer.program(writer.add(writer.input(2, 3, 4), writer.input(4))))
    assert [argument.strides for argument in kernel.inputs] == [(_ANY, _UNIT), (_ANY, _UNIT)]
    assert sizes == (6, 4, 4, 0, 4)


def test_what_broadcasts_along_the_innermost_dimension_is_known_to() -> None:
    writer = Writer()
    kernel, _ = _loops(writer.program(writer.add(writer.input(6, 4), writer.input(6, 1))))
    assert [argument.strides for argument in kernel.inputs] == [(_ANY, _UNIT), (_ANY, _ZERO)]


def test_a_transposed_operand_is_strided() -> None:
    writer = Writer()
    x, y = writer.input(2, 3), writer.input(3, 2)
    kernel, sizes = _loops(writer.program(writer.add(x, writer.transpose(y, permutation=(1, 0)))))
    assert [argument.strides for argument in kernel.inputs] == [(_ANY, _UNIT), (_ANY, _ANY)]
    assert sizes == (2, 3, 3, 1, 2, 3)


def test_a_scalar_result_has_no_loops() -> None:
    writer = Writer()
    kernel, sizes = _loops(writer.program(writer.tanh(writer.input())))
    assert (kernel.rank, sizes) == (0, ())


def test_reduced_trailing_axes_are_the_inner_dimension() -> None:
    writer = Writer()
    kernel, sizes = _loops(writer.program(writer.sum(writer.input(2, 3, 4), axes=(1, 2), keepdims=False)))
    assert (kernel.rank, kernel.has_inner) == (1, True)
    assert sizes == (2, 12, 12, 1)
    assert kernel.stores[0].argument.strides == (_ANY, _ZERO)


def test_reduced_leading_axes_are_strided_inside() -> None:
    writer = Writer()
    kernel, sizes = _loops(writer.program(writer.sum(writer.input(5, 3), axes=(0,), keepdims=False)))
    assert kernel.inputs[0].strides == (_UNIT, _ANY)
    assert sizes == (3, 5, 3)


def test_axes_around_a_reduced_one_stay_two_dimensions() -> None:
    writer = Writer()
    kernel, sizes = _loops(writer.program(writer.sum(writer.input(2, 5, 3), axes=(1,), keepdims=False)))
    assert kernel.inputs[0].strides == (_ANY, _UNIT, _ANY)
    assert kernel.stores[0].argument.strides == (_ANY, _UNIT, _ZERO)
    assert sizes == (2, 3, 5, 15, 3, 3)


def test_what_does_not_move_inside_is_copied_before_it_is_reduced() -> None:
    writer = Writer()
    x = writer.broadcast_to(writer.input(4, 1), shape=(4, 3))
    kernel, _ = _loops(writer.program(writer.sum(x, axes=(1,), keepdims=False)))
    assert [(node.op, node.is_inner) for node in kernel.nodes] == [("cast", True), ("reduce", False)]


def test_one_element_is_an_inner_dimension_of_one() -> None:
    writer = Writer()
    kernel, sizes = _loops(writer.program(writer.sum(writer.input(4, 1), axes=(1,), keepdims=False)))
    assert (kernel.rank, kernel.has_inner, sizes) == (1, True, (4, 1))


def test_a_position_names_the_dimension_it_counts() -> None:
    writer = Writer()
    kernel, _ = _loops(writer.program(writer.eye(rows=3, columns=4, diagonal=0, dtype=dtypes.float32.code)))
    assert kernel.rank == 2
    assert sorted(node.detail for node in kernel.nodes if node.op == "index") == [0, 1]  # type: ignore[type-var]


def test_a_gathered_input_ends_with_the_extent_and_stride_of_its_axis() -> None:
    writer = Writer()
    x, indices = writer.input(5, 3), writer.input(2, dtype=dtypes.int64)
    kernel, sizes = _loops(writer.program(writer.take(x, indices, axis=0)))
    assert [argument.kind for argument in kernel.inputs] == [ArgumentKind.GATHERED, ArgumentKind.ARRAY]
    assert sizes == (2, 3, 0, 5, 3, 1, 3)
    assert kernel.nodes[0].detail == 0


def test_equal_groups_over_other_buffers_are_lowered_to_the_same_kernel() -> None:
    writer = Writer()
    x, y, w = writer.input(4, 4), writer.input(4, 4), writer.input(4, 4)
    a = writer.tanh(writer.matmul(x, w))
    b = writer.tanh(writer.matmul(y, w))
    one, other = _instances(writer.program(a, b))
    assert one.lowered is other.lowered


def test_an_epilogue_has_the_strides_of_its_arrays_and_the_classes_of_their_columns() -> None:
    writer = Writer()
    x, w, bias = writer.input(2, 3, 4), writer.input(4, 5), writer.input(5)
    kernel, sizes = _product(writer.program(writer.add(writer.matmul(x, w), bias)))
    assert kernel.epilogue is not None
    assert [argument.strides for argument in kernel.epilogue.inputs] == [(Stride.ANY, Stride.UNIT)] * 2
    assert sizes == (6, 5, 4, 4, 1, 5, 1, *(0, 1), *(5, 1), 0, 5)


def test_a_product_takes_strides_of_its_operands() -> None:
    writer = Writer()
    x, w = writer.input(5, 8), writer.input(6, 8)
    kernel, sizes = _product(writer.program(writer.matmul(x, writer.transpose(w, permutation=(1, 0)))))
    assert kernel == ProductKernel(dtypes.float32, 0, b_is_unit=False, is_in_fours=True)
    assert sizes == (5, 6, 8, 8, 1, 1, 8)


def test_a_product_knows_a_transposed_left_operand() -> None:
    writer = Writer()
    x, w = writer.input(8, 5), writer.input(8, 6)
    kernel, sizes = _product(writer.program(writer.matmul(writer.transpose(x, permutation=(1, 0)), w)))
    assert kernel == ProductKernel(dtypes.float32, 0, b_is_unit=True, a_is_transposed=True)
    assert sizes == (5, 6, 8, 1, 5, 6, 1)


@pytest.mark.parametrize(
    ("a", "b", "is_in_fours"),
    [((5, 8), (8, 12), True), ((5, 6), (6, 12), False), ((5, 8), (8, 6), False), ((4, 1, 8), (4, 8, 4), True)],
)
def test_a_product_is_in_fours_if_the_lines_of_both_operands_are(a: Shape, b: Shape, is_in_fours: bool) -> None:
    writer = Writer()
    kernel, _ = _product(writer.program(writer.matmul(writer.input(*a), writer.input(*b))))
    assert kernel.is_in_fours is is_in_fours


@pytest.mark.parametrize(("axis", "is_in_fours"), [(0, True), (1, False)])
def test_an_operand_whose_begin_is_a_binding_is_in_fours_if_any_begin_is(axis: int, is_in_fours: bool) -> None:
    writer = Writer()
    x, w = writer.input(16, 16), writer.input(8 if axis else 16, 8)
    kernel, _ = _product(writer.program(writer.matmul(writer.slice(x, (axis,), (8,)), w)))
    assert kernel.is_in_fours is is_in_fours


def test_a_batch_with_one_matrix_is_more_rows() -> None:
    writer = Writer()
    kernel, sizes = _product(writer.program(writer.matmul(writer.input(2, 3, 4), writer.input(4, 5))))
    assert kernel.batch_rank == 0
    assert sizes[:3] == (6, 5, 4)


def test_a_batch_of_matrices_is_one_dimension() -> None:
    writer = Writer()
    kernel, sizes = _product(writer.program(writer.matmul(writer.input(2, 3, 4, 5), writer.input(2, 3, 5, 6))))
    assert kernel == ProductKernel(dtypes.float32, 1, b_is_unit=True)
    assert sizes == (6, 4, 6, 5, 20, 5, 1, 30, 6, 1)


def test_a_batch_that_repeats_one_operand_keeps_its_dimensions() -> None:
    writer = Writer()
    kernel, sizes = _product(writer.program(writer.matmul(writer.input(2, 1, 4, 5), writer.input(3, 5, 6))))
    assert kernel.batch_rank == 2
    assert sizes == (2, 3, 4, 6, 5, 20, 0, 5, 1, 0, 30, 6, 1)


def test_vectors_are_one_row_and_one_column() -> None:
    writer = Writer()
    x, y = [writer.input(4, dtype=dtypes.int32) for _ in range(2)]
    kernel, sizes = _product(writer.program(writer.matmul(x, y)))
    assert kernel == ProductKernel(dtypes.int32, 0, b_is_unit=True)
    assert sizes == (1, 1, 4, 0, 1, 1, 1)


def test_work_and_traffic_are_counted() -> None:
    writer = Writer()
    x, bias = writer.input(4, 3), writer.input(3)
    (instance,) = _instances(writer.program(writer.tanh(writer.add(x, bias))))
    assert instance.lowered.operations == 24
    assert instance.lowered.moved_elements == (12, 3, 12)


def test_a_product_over_windows_has_their_axes_in_its_sizes() -> None:
    writer = Writer()
    x, w = writer.input(2, 3, 6, 7), writer.input(4, 27)
    seen = writer.strided(x, shape=(2, 3, 3, 3, 4, 5), strides=(126, 42, 7, 1, 7, 1))
    kernel, sizes = _product(writer.program(writer.matmul(w, writer.reshape(seen, shape=(2, 27, 20)))))
    assert kernel == ProductKernel(dtypes.float32, 1, True, walks=(3, 2))
    assert kernel.key != ProductKernel(dtypes.float32, 1, True).key
    # The batch, rows, columns and inner; the strides of the kernels; those of the batch, along k and along columns.
    assert sizes == (2, 4, 20, 27, 0, 27, 1, 126, 3, 3, 3, 42, 7, 1, 4, 5, 7, 1)
