"""Nested values come apart and together again, in one form."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusewire as fw
from fusewire._api.recorded_once.nested import Form, flatten, unflatten
from fusewire.testing import session_in_memory


class Pair(NamedTuple):
    left: Any
    right: Any


class Names(dict[str, Any]):
    """A dict of a class of its own."""


leaves = st.one_of(st.integers(), st.none(), st.text(max_size=3))
nested = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.builds(Pair, inner, inner),
        st.dictionaries(st.integers(0, 5), inner, max_size=3),
        st.dictionaries(st.text(max_size=2), inner, max_size=3).map(Names),
    ),
    max_leaves=12,
)


def classes_of(value: Any) -> Any:
    """The classes of all containers in a value, which equality does not compare."""
    if isinstance(value, dict):
        return type(value), [classes_of(each) for each in value.values()]
    return (type(value), [classes_of(each) for each in value]) if isinstance(value, list | tuple) else None


@pytest.mark.parametrize("value", [Counter("ab"), defaultdict(int, a=1)])
def test_a_dict_that_its_items_do_not_make_is_refused(value: Any) -> None:
    with pytest.raises(fw.ArgumentError, match=f"a {type(value).__name__} of arrays"):
        flatten([value])


@given(nested)
def test_a_value_comes_together_as_it_was(value: Any) -> None:
    parts, form = flatten(value)
    again = unflatten(form, parts)
    assert again == value
    assert classes_of(again) == classes_of(value)


@given(nested)
def test_other_leaves_take_the_places_of_the_first(value: Any) -> None:
    parts, form = flatten(value)
    others = [object() for _ in parts]
    assert flatten(unflatten(form, others)) == (others, form)


def test_leaves_are_in_the_order_in_which_they_are_written() -> None:
    value = {"b": [1, (2, 3)], "a": Pair(4, {0: 5})}
    assert flatten(value)[0] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1, 2), [1, 2]),
        ((1, 2), (1, 2, 3)),
        ((1, 2), Pair(1, 2)),
        ((1, (2,)), (1, 2)),
        ({"a": 1}, {"b": 1}),
        ({"a": 1, "b": 2}, {"b": 1, "a": 2}),
        ({"a": 1}, OrderedDict(a=1)),
        ((), []),
        ([], 1),
    ],
)
def test_values_of_other_containers_lengths_or_keys_have_other_forms(one: Any, other: Any) -> None:
    assert flatten(one)[1] != flatten(other)[1]


def test_equal_forms_hold_any_leaves_and_may_be_keys() -> None:
    assert flatten((1, {"a": "x"}))[1] == flatten((None, {"a": 2.5}))[1]
    assert len({flatten((1, 2))[1], flatten((3, 4))[1]}) == 1


def test_what_is_no_container_is_a_leaf() -> None:
    assert flatten("text") == (["text"], Form(None))
    assert unflatten(Form(None), [7]) == 7


def test_an_empty_container_has_no_leaves() -> None:
    parts, form = flatten(((), [], {}))
    assert (parts, unflatten(form, [])) == ([], ((), [], {}))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "_"),
        ((1, [2, 3], ()), "(_, [_, _], ())"),
        ((1,), "(_,)"),
        ({"a": 1, 2: Pair(3, 4)}, "{'a': _, 2: Pair(left=_, right=_)}"),
    ],
)
def test_a_form_is_shown_as_python_shows_its_values(value: Any, text: str) -> None:
    assert str(flatten(value)[1]) == text


def test_complex_numbers_come_apart_as_two_parts() -> None:
    host = np.array([1 + 2j, 3.0])
    with session_in_memory() as session:
        array: Any = session.array(host)
        for value, parts in ((array, array.parts), (host, (host.real, host.imag))):
            found, form = flatten({"z": value, "x": 1})
            assert unflatten(form, [*array.parts, 1])["z"].tolist() == host.tolist()
            assert [*found[2:], str(form)] == [1, "{'z': _+_j, 'x': _}"]
            for part, expected in zip(found, parts, strict=False):
                np.testing.assert_array_equal(np.asarray(part), np.asarray(expected))
