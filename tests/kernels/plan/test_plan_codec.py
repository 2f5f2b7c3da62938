"""Plans survive the border between processes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire_kernels.build import build_plan, design
from fusewire_kernels.plan.plan_codec import decode_plan, encode_plan
from tests.kernels.plan_runner import plan_without_text
from tests.kernels.programs import Writer, random_program


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32))
def test_a_plan_comes_back_as_it_was(seed: int) -> None:
    plan = plan_without_text(design(random_program(seed).program, for_gpu=False))
    assert decode_plan(encode_plan(plan)) == plan


def test_texts_constants_and_words_come_back() -> None:
    writer = Writer()
    x, epsilon = writer.input(3, 4), writer.scalar()
    plan = build_plan(writer.program(writer.layer_norm(x, epsilon, axes=(1,))), "c")
    assert decode_plan(encode_plan(plan)) == plan
