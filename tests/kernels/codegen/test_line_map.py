"""Which lines of a text compute which values."""

from __future__ import annotations

from fusewire_kernels.codegen.line_map import line_map

_TEXT = """void fw_k(const int64_t *sizes) {
    const float v0 = a0[i0];
    fw_take_sum_f32(l4, lane, v0);
    const float v12 = fw_tanh_f32(v0); const float v2 = v12 - v0;
    o0[i0] = v2;
}
"""


def test_lines_that_declare_or_reduce_are_mapped_and_no_others() -> None:
    assert [*line_map(_TEXT)] == [(2, 0), (3, 4), (4, 12), (4, 2)]


def test_a_text_without_values_has_no_map() -> None:
    assert [*line_map("")] == []
