"""Clusters: every row and column is computed once, and all that a block keeps fits its shared memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_kernels.fusion.persistent.cluster_shape import MOST_SHARED_BYTES, cluster_shape
from fusewire_kernels.ir.cluster_shape import THREADS, ClusterShape


def of_one_product(rows: int, inner: int) -> ClusterShape | None:
    return cluster_shape(rows, [inner], [(inner, inner)], [inner])


@given(st.integers(1, 1200), st.integers(1, 1200))
def test_a_shape_covers_the_product_and_fits(rows: int, inner: int) -> None:
    shape = of_one_product(rows, inner)
    if shape is None:
        return
    assert (shape.clusters - 1) * shape.height < rows <= shape.clusters * shape.height
    # Every block has a column: the first thread of each expects the bytes of the next iteration.
    assert (shape.blocks - 1) * shape.width(inner) < inner <= shape.blocks * shape.width(inner)
    assert shape.blocks <= 8
    assert shape.groups * shape.threads_a_group <= THREADS
    assert shape.shared_bytes <= MOST_SHARED_BYTES


@given(st.integers(1, 1200), st.integers(1, 1000))
def test_fewer_columns_are_computed_by_the_first_threads_of_the_same_blocks(most: int, fewer: int) -> None:
    fewer = min(most, fewer)
    shape = cluster_shape(1, [most, fewer], [(most, fewer), (fewer, most)], [most, fewer])
    if shape is not None:
        assert 1 <= shape.width(fewer) <= shape.width(most) <= shape.threads_a_group
        assert fewer <= shape.blocks * shape.width(fewer)


@pytest.mark.parametrize(("products", "most"), [(1, 664), (2, 464), (3, 384), (4, 320), (8, 217)])
def test_more_products_have_fewer_columns(products: int, most: int) -> None:
    exchanged = min(products, 2)
    shapes = [
        cluster_shape(1, [columns], [(columns, columns)] * products, [columns] * exchanged)
        for columns in (most, most + 16)
    ]
    assert [shape is None for shape in shapes] == [False, True]


@pytest.mark.parametrize(("rows", "clusters"), [(1, 1), (15, 15), (16, 8), (64, 11), (256, 43)])
def test_few_rows_have_a_cluster_each_and_more_rows_share_one(rows: int, clusters: int) -> None:
    shape = of_one_product(rows, 256)
    assert shape is not None
    assert shape.clusters == clusters


@pytest.mark.parametrize(("rows", "inner"), [(1, 1024), (1025, 64), (1024, 256), (64, 512)])
def test_what_is_too_large_for_clusters_has_no_shape(rows: int, inner: int) -> None:
    assert of_one_product(rows, inner) is None


@pytest.mark.parametrize(
    ("rows", "inner", "most"), [(1, 256, 0), (1, 512, 0), (16, 256, 0), (64, 256, 7), (16, 512, 1)]
)
def test_only_products_of_many_multiplications_limit_how_many_clusters_follow_one_another(
    rows: int, inner: int, most: int | None
) -> None:
    shape = of_one_product(rows, inner)
    assert shape is not None
    assert shape.most_in_turn == most
