"""What a name that there is not here says."""

from __future__ import annotations

import re
from types import ModuleType

import numpy as np
import pytest

import fusewire as fw
from fusewire._api.missing_names import instead_of


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("arrange", r"'arrange': did you mean arange\?"),
        ("concatenat", r"did you mean concatenate\?"),
        ("i0", r"NumPy computes it from values, np\.i0\(x\.numpy\(\)\)"),
        ("rec", r"np\.rec\.…\(x\.numpy\(\)\)"),
        ("longdouble", "is no dtype here; the dtypes are bool, int8"),
        ("common_type", r"write fw\.result_type"),
        ("zzz", r"no attribute 'zzz'$"),
        ("_maximum", r"no attribute '_maximum'$"),
    ],
)
def test_a_missing_name_says_what_to_write(name: str, text: str) -> None:
    with pytest.raises(AttributeError, match=text):
        getattr(fw, name)


def test_what_to_write_instead_names_what_there_is() -> None:
    written = [instead_of(name) for name in dir(np)]
    named = {name for text in written for name in re.findall(r"fw\.(\w+)", text)}
    assert named
    assert [name for name in named if not hasattr(fw, name)] == []


@pytest.mark.parametrize(
    ("namespace", "name", "hint"),
    [(fw, "linag", "did you mean linalg?")],
    ids=["misspelt"],
)
def test_a_namespace_says_what_to_write(namespace: ModuleType, name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(hint)):
        getattr(namespace, name)
