"""The stub of the functions made from the catalogue."""

from __future__ import annotations

import ast
from pathlib import Path

import fusewire as fw
from fusewire._api.catalogue.op_functions import functions_of
from fusewire._api.catalogue.stub import stub_of
from fusewire_protos.ops.catalogue import OPS

_COMMITTED = Path(fw.__file__).parent / "_api" / "catalogue" / "catalogued.pyi"


def test_the_committed_stub_is_the_catalogues() -> None:
    assert _COMMITTED.read_text(encoding="utf-8") == stub_of(functions_of(OPS)), "`make stubs` writes it anew"


def test_the_stub_declares_each_function_with_its_parameters_and_docstring() -> None:
    tree = ast.parse(stub_of(functions_of(OPS)))
    declared = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert list(declared) == list(functions_of(OPS))
    assert ast.get_docstring(declared["tanh"]) == fw.tanh.__doc__
    assert ast.unparse(declared["tanh"].args) == "x: Any, /, *, out: Any=None, where: Any=True"
    of_max = ast.unparse(declared["max"].args)
    assert of_max.startswith("x: Any, /, axis: Axis=None, *, keepdims: bool=False, initial: Any=None")
