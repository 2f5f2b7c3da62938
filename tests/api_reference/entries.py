"""The text of one entry: how it is called, what its docstring says, and its example."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from enum import EnumType
from textwrap import dedent
from typing import Any

import fusewire as fw
from tests.api_reference.contents import Entry

# Programs get objects of these classes, and make none.
_NOT_MADE_BY_USERS = (fw.Array, fw.Session, fw.DType, fw.Trigger, fw.FusewireError)
_PLAIN = (bool, int, float, str, tuple, fw.DType, type(None))

Links = Mapping[int, tuple[str, str]]  # id of a function -> its name, and where its entry is


def text_of(entry: Entry, links: Links, example: str | None) -> str:
    """Returns the entry in Markdown. `example` has its result already."""
    parts = [f"## `{entry.title}`", _called(entry), _meaning(entry, links)]
    if example is not None:
        parts.append(f"```python\n{example}\n```")
    return "\n\n".join(part for part in parts if part)


def is_second_name(entry: Entry, links: Links) -> bool:
    """Returns whether another entry has the same function, under the name that the function itself has."""
    name, _ = links.get(id(entry.value), (entry.name, ""))
    return name != entry.name


def _called(entry: Entry) -> str:
    value = entry.value
    if (
        not callable(value)
        or isinstance(value, fw.DType)
        or (isinstance(value, type) and issubclass(value, _NOT_MADE_BY_USERS))
    ):
        return ""
    waits = "async " if inspect.iscoroutinefunction(value) else ""
    return f"```python\n{waits}{entry.title}{signature_of(value)}\n```"


def signature_of(function: Any) -> str:
    """Returns the parameters as the source has them, but `...` for a default that has no short name."""
    signature = inspect.signature(function)
    names = getattr(inspect.unwrap(function), "__globals__", {})
    parameters = [
        each.replace(annotation=_annotation(each.annotation, names), default=_default(each.default))
        for each in signature.parameters.values()
        if each.name != "self"
    ]
    returned = (
        inspect.Signature.empty if isinstance(function, type) else _annotation(signature.return_annotation, names)
    )
    return str(signature.replace(parameters=parameters, return_annotation=returned))


class _Written(str):
    """Text that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _annotation(annotation: Any, names: Mapping[str, Any]) -> Any:
    """Names that a module keeps for itself give way to what they stand for."""
    if annotation is inspect.Signature.empty:
        return annotation
    text = getattr(annotation, "__forward_arg__", annotation)  # a named tuple has these
    public = re.sub(r"\b_\w+", lambda found: str(names.get(found[0], found[0])), str(text))
    return _Written(re.sub(r"\b(builtins|typing)\.", "", public))


def _default(default: Any) -> Any:
    return default if default is inspect.Parameter.empty or isinstance(default, _PLAIN) else _Written("...")


def _meaning(entry: Entry, links: Links) -> str:
    if is_second_name(entry, links):
        name, place = links[id(entry.value)]
        return f"The same as [`{name}`]({place})."
    if isinstance(entry.value, fw.DType | float | str | None):
        return f"`{entry.value!r}`"
    said = _docstring(entry.value)
    if said == _docstring(getattr(fw, entry.name, None)) and entry.value is getattr(fw.Array, entry.name, None):
        return _as_the_function(entry, links)
    if not said:
        raise ValueError(f"{entry.title} has no docstring")
    return "\n\n".join([said, *_about_class(entry.value)])


def _about_class(value: Any) -> Iterator[str]:
    """What the docstring of a class does not say: the members of an enumeration, and the bases of an error."""
    if isinstance(value, EnumType):
        members: Mapping[str, Any] = value.__members__
        yield "\n".join(f"- `{name}` (`{member.value!r}`)" for name, member in members.items())
    elif isinstance(value, type) and issubclass(value, Exception):
        yield f"Derives from {', '.join(f'`{_full_name(base)}`' for base in value.__bases__)}."


def _full_name(error: type) -> str:
    """With its module, unless it is ours or Python's."""
    return f"{error.__module__}.{error.__name__}" if error.__module__.startswith("numpy") else error.__name__


def _docstring(value: Any) -> str:
    """The docstring; indented lines in it are code."""
    return re.sub(r"(?:^    .*\n*)+", _fenced, (inspect.getdoc(value) or "") + "\n", flags=re.MULTILINE).strip()


def _fenced(code: re.Match[str]) -> str:
    return f"```python\n{dedent(code[0]).rstrip()}\n```\n\n"


def _as_the_function(entry: Entry, links: Links) -> str:
    """What a method does that has the docstring of its function."""
    function = getattr(fw, entry.name)
    _, place = links[id(function)]
    return f"As [`fusewire.{entry.name}`]({place}) of the array."
