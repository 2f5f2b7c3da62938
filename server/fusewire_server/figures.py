"""Declares figures: a field of a record says once how it is read, how it is joined with others, and its metric.

The sentence below a field describes it in OpenAPI, in the metrics and in docs/figures.md; the end of its name is its
unit. So a new figure is one declaration. Pure.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, field, fields, is_dataclass, replace
from enum import Enum
from functools import cache, reduce
from inspect import cleandoc, getsource
from itertools import pairwise
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, TypeVar, get_args, get_type_hints

_R = TypeVar("_R")

Read = Callable[[Any], Any] | str
Join = Callable[[Sequence[Any]], Any]
_FIGURE = "figure"
_IN_UNIT = re.compile(r" in n?s\b")


class Described:
    """Base of a record, whose fields are described by the text below each."""

    __slots__ = ()

    __pydantic_config__: ClassVar[dict[str, Any]] = {"use_attribute_docstrings": True}


class Kind(Enum):
    """What a figure tells."""

    COUNTER = "counter"  # what has happened; it never falls, not even when a process ends
    GAUGE = "gauge"  # what is now, and ends with its process
    FACT = "fact"  # what does not change


class Figure(NamedTuple):
    """What a field of a record declares.

    `read` takes the value from what the record is read from: a function, or names with dots between them. `join` joins
    the values of several processes. The name of the metric is without prefix and unit suffix of counters. `labels` are
    the labels of the metric: by name a value, or the values that there may be, where the field is a mapping.
    `metric_value` takes the metric's value from the record, where it is not the field. `label` names the label that the
    metrics inside a nested record get: of a mapping the key, of a tuple the first field, else the name of this field.
    """

    kind: Kind
    read: Read
    join: Join
    metric: str = ""
    labels: Mapping[str, Any] = {}
    metric_value: Callable[[Any], float] | None = None
    label: str = ""


class Declared(NamedTuple):
    """A figure, and the sentence, type and name of its field."""

    name: str
    figure: Figure
    text: str
    type: Any

    @property
    def metric_text(self) -> str:
        """The sentence for a metric, whose times are in seconds."""
        return _IN_UNIT.sub(" in seconds", self.text)


def total(values: Sequence[Any]) -> Any:
    """Adds numbers, and what consists of numbers: field by field, or key by key. None is nothing."""
    return reduce(_added, values)


def first(values: Sequence[Any]) -> Any:
    """Returns the value of the first process."""
    return values[0]


def together(values: Sequence[Iterable[Any]]) -> tuple[Any, ...]:
    """Returns the entries of all, one after another."""
    return tuple([each for entries in values for each in entries])


def newest(values: Sequence[Iterable[Any]]) -> tuple[Any, ...]:
    """Returns the entries of all, which have a time, the newest first."""
    return tuple(sorted(together(values), key=attrgetter("at"), reverse=True))


def greatest(values: Sequence[Any]) -> Any:
    """Returns the greatest value that is known, or None."""
    return max([value for value in values if value is not None], default=None)


def least(values: Sequence[Any]) -> Any:
    """Returns the least value that is known, or None."""
    return min([value for value in values if value is not None], default=None)


def counter(metric: str = "", read: Read = "", **options: Any) -> Any:
    """Declares what only grows. Those of several processes are added."""
    return _declare(Kind.COUNTER, metric, read, {"join": total, "default": 0, **options})


def gauge(metric: str = "", read: Read = "", **options: Any) -> Any:
    """Declares what is now. Those of several processes are added, unless `join` says otherwise."""
    return _declare(Kind.GAUGE, metric, read, {"join": total, "default": 0, **options})


def fact(metric: str = "", read: Read = "", **options: Any) -> Any:
    """Declares what does not change. That of the first process counts, unless `join` says otherwise."""
    return _declare(Kind.FACT, metric, read, {"join": first, "default": "", **options})


def part(default: Any = None, read: Read = "", *, label: str = "") -> Any:
    """Declares a nested record. Those of several processes are joined field by field."""
    return _declare(Kind.FACT, "", read, {"join": joined, "default": default, "label": label})


def itself(source: Any) -> Any:
    """Reads a nested record from what its record is read from."""
    return source


def _declare(kind: Kind, metric: str, read: Read, options: dict[str, Any]) -> Any:
    default = options.pop("default")
    metadata = {_FIGURE: Figure(kind, read, metric=metric, **options)}
    if isinstance(default, dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


@cache
def declared(record: type) -> tuple[Declared, ...]:
    """Returns the figures of a record."""
    types = get_type_hints(record)
    texts = _texts(record.__module__)
    named = [(each.name, f"{record.__name__}.{each.name}", figure_of(each)) for each in fields(record)]
    return tuple([Declared(name, figure, texts.get(path, ""), types[name]) for name, path, figure in named])


@cache
def _texts(module: str) -> dict[str, str]:
    """Returns the sentences below the fields of a module's classes, by `Class.field`."""
    classes = [each for each in ast.parse(getsource(sys.modules[module])).body if isinstance(each, ast.ClassDef)]
    return {
        f"{one.name}.{named.target.id}": cleandoc(text.value.value).replace("\n", " ")
        for one in classes
        for named, text in pairwise(one.body)
        if isinstance(named, ast.AnnAssign) and isinstance(named.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def figure_of(each: Field[Any]) -> Figure:
    """Returns what a field declares. A field that declares nothing is a fact."""
    figure: Figure = each.metadata.get(_FIGURE, Figure(Kind.FACT, "", first))
    return figure


def read(record: type[_R], source: Any) -> _R:
    """Returns a record whose fields are read from the source, nested records too."""
    kind: Any = record
    readers: tuple[Callable[[Any], Any], ...] = _readers(kind)
    return record(*[reader(source) for reader in readers])


def joined(records: Sequence[_R]) -> _R:
    """Returns one record of those of several processes."""
    if len(records) == 1:
        return records[0]
    one: Any = records[0]
    kind: Any = type(one)
    joins: tuple[tuple[str, Join], ...] = _joins(kind)
    whole: _R = replace(one, **{name: join([getattr(each, name) for each in records]) for name, join in joins})
    return whole


def what_stays(record: _R) -> _R:
    """Returns a record of a process that has ended: what it has counted, and nothing of what was then."""
    one: Any = record
    left: _R = replace(one, **{each.name: _stays(each, getattr(one, each.name)) for each in fields(one)})
    return left


def _stays(each: Field[Any], value: Any) -> Any:
    if figure_of(each).kind is Kind.GAUGE:
        factory = each.default_factory
        return factory() if callable(factory) else each.default
    return what_stays(value) if is_dataclass(value) else value


@cache
def _readers(record: Any) -> tuple[Callable[[Any], Any], ...]:
    types = get_type_hints(record)
    return tuple([_reader(each.name, figure_of(each).read, types[each.name]) for each in fields(record)])


def _reader(name: str, how: Read, kind: Any) -> Callable[[Any], Any]:
    taken = attrgetter(how or name) if isinstance(how, str) else how
    if not (isinstance(kind, type) and is_dataclass(kind)):
        return taken

    def nested(source: Any) -> Any:
        value = taken(source)
        return value if isinstance(value, kind) else read(kind, value)

    return nested


@cache
def _joins(record: Any) -> tuple[tuple[str, Join], ...]:
    return tuple([(each.name, figure_of(each).join) for each in fields(record)])


def _added(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, Mapping):
        return {key: _added(one.get(key), other.get(key)) for key in {**one, **other}}
    return joined((one, other)) if is_dataclass(one) else one + other


def nested_record(kind: Any) -> Any:
    """Returns the record that a type is or holds, or None."""
    return next((each for each in (kind, *get_args(kind)) if is_dataclass(each)), None)


def labelled(label: str, name: str, value: Any) -> Iterator[tuple[dict[str, str], Any]]:
    """Yields the records inside a field with the labels that their metrics get."""
    if isinstance(value, Mapping):
        yield from [({label: key}, each) for key, each in value.items()]
    elif isinstance(value, tuple):
        yield from [({label: str(getattr(each, fields(each)[0].name))}, each) for each in value]
    else:
        yield ({label: name} if label else {}), value
