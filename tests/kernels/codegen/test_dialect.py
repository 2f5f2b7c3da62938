"""Dialects: how each begins a kernel, and what goes together in what one can do."""

from __future__ import annotations

from importlib.resources import files

import pytest

from fusewire_kernels.codegen import preludes
from fusewire_kernels.codegen.dialect import CUDA, DIALECTS, C, dialect_of


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_is_found_by_its_name(name: str) -> None:
    assert dialect_of(name).name == name


def test_an_unknown_dialect_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(ValueError, match="no dialect 'opencl'; there are c and cuda"):
        dialect_of("opencl")


def test_no_two_dialects_share_an_ending() -> None:
    assert len({dialect.ending for dialect in DIALECTS.values()}) == len(DIALECTS)


@pytest.mark.parametrize("name", DIALECTS)
def test_the_files_of_a_prelude_are_there(name: str) -> None:
    assert all(files(preludes).joinpath(file).is_file() for file in DIALECTS[name].prelude)


def test_a_head_has_the_name_the_parameters_and_the_bounds() -> None:
    assert C.head_of("fw_one") == f"void fw_one({C.parameters})"
    assert CUDA.head_of("fw_one", 256) == f'extern "C" __global__ void __launch_bounds__(256) fw_one({CUDA.parameters})'
    with_cluster = CUDA.head_of("fw_one", 128, 4, parameters="int n", cluster_blocks=8)
    bounds = "__cluster_dims__(8, 1, 1) __launch_bounds__(128, 4)"
    assert with_cluster == f'extern "C" __global__ void {bounds} fw_one(int n)'


@pytest.mark.parametrize("name", DIALECTS)
def test_threads_have_an_index_a_barrier_and_bounds_or_there_are_none(name: str) -> None:
    dialect = DIALECTS[name]
    of_threads = (dialect.bounds, dialect.barrier, dialect.index, dialect.count)
    assert all(of_threads) if dialect.for_gpu else not any(of_threads)
