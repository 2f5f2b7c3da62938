"""Computes the node tests of ONNX on the server. A case with a node that is not mapped is skipped, and says why."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

import fusewire as fw
from tests.conformance.onnx_graphs import DEFINED, HOLDING_GRAPHS, kinds_of, outputs_of
from tests.conformance.onnx_ops import OPS

_UNMAPPED = tomllib.loads(Path(__file__).with_name("onnx_ops").joinpath("unmapped.toml").read_text(encoding="utf-8"))
_MAPPED = {*OPS, *HOLDING_GRAPHS, *DEFINED, "Constant"}
_DTYPES = (*fw.__array_namespace_info__().dtypes().values(), fw.float16, fw.bfloat16)

with np.errstate(all="ignore"):
    _CASES = load_model_tests(kind="node")


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_node(case: TestCase) -> None:
    """Compares with the outputs that the case comes with, within the case's bounds."""
    _skip_unless_mapped(case)
    versions = {each.domain: each.version for each in case.model.opset_import}
    for inputs, outputs in case.data_sets:
        computed = outputs_of(case.model.graph, inputs, versions=versions)
        for value, expected in zip(computed, outputs, strict=True):
            assert value.dtype == expected.dtype
            np.testing.assert_allclose(value.numpy(), expected, rtol=case.rtol, atol=case.atol, strict=True)


@pytest.mark.parametrize("entry", _UNMAPPED["reasons"], ids=lambda entry: entry["text"])
def test_a_reason_is_of_nodes_that_are_tested_and_not_mapped(entry: dict[str, list[str]]) -> None:
    """No reason outlives what it is about."""
    kinds = set().union(*(kinds_of(case.model.graph) for case in _CASES))
    for text in entry["kinds"]:
        matching = {kind for kind in kinds if re.fullmatch(text, kind)}
        assert matching, f"no case has a node {text}"
        assert not matching & _MAPPED, f"{text} is mapped"


def _skip_unless_mapped(case: TestCase) -> None:
    for kind in sorted(kinds_of(case.model.graph) - _MAPPED):
        pytest.skip(_reason_of(kind))
    for inputs, outputs in case.data_sets:
        for value in (*inputs, *outputs):
            if not isinstance(value, np.ndarray | np.generic):
                pytest.skip("a value that is no array of NumPy's: a sequence, none, or of a dtype that NumPy lacks")
            if value.dtype.name not in {dtype.name for dtype in _DTYPES}:
                pytest.skip("a dtype that is not there")


def _reason_of(kind: str) -> str:
    for entry in _UNMAPPED["reasons"]:
        if any(re.fullmatch(text, kind) for text in entry["kinds"]):
            return str(entry["text"])
    pytest.fail(f"a node {kind} is neither mapped nor has a reason why it is not")
