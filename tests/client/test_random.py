"""`fusewire.random`: what a user finds there, and the program that its docstring shows."""

from __future__ import annotations

import importlib
import pickle
import textwrap
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect


def test_the_module_is_an_attribute_and_can_be_imported() -> None:
    assert importlib.import_module("fusewire.random") is fw.random
    assert all(hasattr(fw.random, name) for name in fw.random.__all__)
    assert pickle.loads(pickle.dumps(fw.random.default_rng)) is fw.random.default_rng  # noqa: S301  # our own bytes


def test_the_programs_of_the_docstring_run() -> None:
    _, _, shown = (fw.random.__doc__ or "").split("\n\n", 2)
    names: dict[str, Any] = {"fw": fw}
    with connect().session:
        exec(textwrap.dedent(shown), names)  # noqa: S102  # our own text
        assert (names["x"].shape, names["x"].dtype) == ((1000, 20), fw.float32)
        assert np.isfinite(names["y"].numpy()).all()


def test_a_function_of_numpys_module_is_a_method_of_a_generator() -> None:
    with pytest.raises(AttributeError, match=r"draw by a generator, fw\.random\.default_rng\(seed\)\.integers\(…\)$"):
        fw.random.integers  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'poissom'$"):
        fw.random.poissom  # type: ignore[attr-defined]  # noqa: B018
