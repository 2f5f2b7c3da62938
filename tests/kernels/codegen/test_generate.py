"""Sources: the text of noted kernels does not change unnoticed, and equal kernels give equal text."""

from __future__ import annotations

import re

import pytest

from fusewire_kernels.codegen.cuda.entry import WAIT
from fusewire_kernels.codegen.dialect import DIALECTS
from fusewire_kernels.codegen.generate import generate
from fusewire_kernels.ir.kernel import ProductKernel
from tests.golden_files import check_text
from tests.kernels.codegen.kernels_of_note import NOTED

ELEMENT = re.compile(r"\b([ao]\d+|result|target)\[")  # of an input or an output


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", NOTED)
def test_the_source_of_a_noted_kernel_is_as_kept(name: str, dialect: str) -> None:
    first, *others = generate(NOTED[name], dialect)
    check_text(f"kernels/{name}.{DIALECTS[dialect].ending}", first.text)
    for source in others if not isinstance(NOTED[name], ProductKernel) else ():
        check_text(f"kernels/{name}_{source.key.split('_')[-1]}.{DIALECTS[dialect].ending}", source.text)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_source_defines_the_function_its_key_names(dialect: str) -> None:
    for kernel in NOTED.values():
        for source in generate(kernel, dialect):
            assert source.key.startswith(kernel.key)
            assert f" {source.key}(" in source.text


@pytest.mark.parametrize("name", NOTED)
def test_a_kernel_of_a_captured_graph_touches_no_array_before_it_has_waited(name: str) -> None:
    for source in generate(NOTED[name], "cuda"):
        before, after = source.text.split(WAIT)
        assert not ELEMENT.search(before)
        assert ELEMENT.search(after)
        assert "slots[" not in after


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(ValueError, match="opencl"):
        generate(NOTED["total"], "opencl")
