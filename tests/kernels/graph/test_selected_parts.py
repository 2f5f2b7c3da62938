"""Joined arrays that are read where their parts are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_kernels.build import design
from fusewire_kernels.graph.construction import build_graph
from fusewire_kernels.graph.graph import Form
from fusewire_protos.ops.shapes import Shape
from fusewire_protos.programs.program import Program
from tests.kernels.plan_runner import run_program
from tests.kernels.programs import Writer, meaning, random_inputs
from tests.tolerances import assert_same_numbers


def _rolled(writer: Writer, x: int, axis: int, extent: int, places: int) -> int:
    """x, rolled along an axis: its last elements, then the others. The starts of both slices are bound."""
    last, others = [writer.slice(x, (axis,), (length,)) for length in (places, extent - places)]
    joined: int = writer.concat(last, others, axis=axis)
    return joined


def _has_buffers(program: Program) -> bool:
    return any(value.form is Form.ASSEMBLY for value in build_graph(program, for_gpu=True).values)


def test_a_stencil_of_rolled_arrays_is_one_kernel() -> None:
    writer = Writer()
    x, s = writer.input(6, 9), writer.scalar()
    around = [_rolled(writer, x, *of) for of in ((0, 6, 1), (0, 6, 5), (1, 9, 1), (1, 9, 8))]
    total = writer.add(writer.add(around[0], around[1]), writer.add(around[2], around[3]))
    program = writer.program(writer.add(x, writer.multiply(total, s)))
    assert len(design(program, for_gpu=True).launches) == 1
    starts = [5, 0, 1, 0, 8, 0, 1, 0]
    inputs = random_inputs(program)
    (result,) = run_program(program, inputs, [0.5], starts, for_gpu=True)
    (wanted,) = meaning(program, inputs, [0.5], starts)
    assert_same_numbers(result, wanted)


def test_what_is_rolled_along_two_axes_is_two_kernels() -> None:
    writer = Writer()
    x = writer.input(6, 9)
    program = writer.program(writer.exp(_rolled(writer, _rolled(writer, x, 0, 6, 2), 1, 9, 3)))
    assert len(design(program, for_gpu=True).launches) == 2


@given(st.data())
def test_any_parts_have_the_elements_of_what_they_join(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    axis = data.draw(st.integers(0, rank - 1))
    extents = data.draw(st.lists(st.integers(1, 5), min_size=rank, max_size=rank))
    writer, parts, starts = Writer(), [], []
    lengths = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=5))
    sources = [writer.input(*_with(extents, axis, length + 2)) for length in lengths]
    number = writer.scalar()
    for source, length in zip(sources, lengths, strict=True):
        step, kind = data.draw(st.sampled_from((1, -1))), data.draw(st.sampled_from(("slice", "number", "computed")))
        if kind == "number":
            parts.append(writer.full(number, shape=_with(extents, axis, length), dtype=0))
            continue
        parts.append(writer.slice(source, (axis,), (length,), (step,)))
        starts.append(data.draw(st.integers(0, 2)) + (max(length - 1, 0) if step < 0 else 0))
        if kind == "computed":
            parts[-1] = writer.negative(parts[-1])
    joined = writer.concat(*parts, axis=axis)
    program = writer.program(writer.multiply(joined, number))
    inputs = random_inputs(program)
    (result,) = run_program(program, inputs, [1.5], starts, for_gpu=True)
    (wanted,) = meaning(program, inputs, [1.5], starts)
    assert_same_numbers(result, wanted)


def _with(extents: list[int], axis: int, length: int) -> Shape:
    return (*extents[:axis], length, *extents[axis + 1 :])


@pytest.mark.parametrize("readers", ["product", "live", "softmax", "product of a view"])
def test_what_has_to_be_a_buffer_is_joined(readers: str) -> None:
    writer = Writer()
    x, y = writer.input(4, 4), writer.input(4, 4)
    joined = writer.concat(x, y, axis=0)
    result = {
        "product": lambda: writer.matmul(joined, y),
        "live": lambda: joined,
        "softmax": lambda: writer.softmax(joined, axes=(1,)),
        "product of a view": lambda: writer.matmul(y, writer.transpose(joined, permutation=(1, 0))),
    }[readers]()
    assert _has_buffers(writer.program(result))


def test_what_is_computed_is_computed_in_its_place() -> None:
    writer = Writer()
    x = writer.input(4)
    assert _has_buffers(writer.program(writer.exp(writer.concat(writer.tanh(x), x, axis=0))))


def test_many_parts_are_joined() -> None:
    writer = Writer()
    x = writer.input(4)
    assert not _has_buffers(writer.program(writer.exp(writer.concat(*[x] * 4, axis=0))))
    assert _has_buffers(writer.program(writer.exp(writer.concat(*[x] * 5, axis=0))))
