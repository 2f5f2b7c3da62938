"""Which names stand on which page of the reference."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import fusewire as fw
import fusewire.testing
from fusewire._api import functions
from fusewire._api.catalogue import catalogued
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.op import Category


@dataclass(frozen=True)
class Entry:
    """A name, what it stands for, and how its example is called: `sum`, `Array.sum`, `random.key`."""

    name: str
    value: Any
    key: str

    @property
    def title(self) -> str:
        """The name behind its class: the page says which module it is of."""
        namespace, _, name = self.key.partition(".")
        return name if namespace in _NAMESPACES else self.key


@dataclass(frozen=True)
class Page:
    """A page of the reference: `name`.md, with the sentence that says what is on it."""

    name: str
    title: str
    summary: str
    entries: tuple[Entry, ...]


# Where the functions stand that are made from the catalogue alone.
_PAGE_OF_CATEGORY = {
    Category.POINTWISE: "pointwise",
    Category.REDUCTION: "reductions",
    Category.COMPOSITE: "reductions",
    Category.PRODUCT: "products",
}
_NAMESPACES = ("fft", "linalg", "random", "testing")
_SESSIONS = ("connect", "default_session", "replay", "SessionStats", "Replayed", "Trigger")
_EXPLANATIONS = ("explain", "Explanation", "ProgramExplanation", "ExplainedOp", "Unfused")
_PROFILES = ("profile", "Profile")
_PROFILE_MEMBERS = ("save", "save_trace", "summary", "timeline")
_LOOPS = ("fori_loop", "function")
_GRADIENTS = ("grad", "value_and_grad", "vjp")
# A session has more members, by which arrays and recorders call it.
_SESSION_MEMBERS = ("array", "cancel", "close", "explain", "id", "is_open", "line_of", "ready", "stats")


def pages() -> tuple[Page, ...]:
    """Returns all pages that list names of the namespace."""
    return (
        *_topics(),
        _arrays(),
        _sessions(),
        _explanations(),
        _profiles(),
        _loops(),
        _gradients(),
        _mathematics("fft", fw.fft),
        _mathematics("linalg", fw.linalg),
        _random(),
        _strides(),
        _constants(),
        _errors(),
        _testing(),
    )


def _topics() -> list[Page]:
    """A page a topic of functions, and one for the elementwise functions of one op."""
    names: dict[str, list[str]] = {"pointwise": []}
    summaries = {"pointwise": "Elementwise functions that are one op each."}
    for module in pkgutil.walk_packages(functions.__path__, f"{functions.__name__}."):
        topic = importlib.import_module(module.name)
        page = module.name.rpartition(".")[2]
        summaries[page] = (topic.__doc__ or "").partition("\n")[0]
        if listed := [name for name in getattr(topic, "__all__", ()) if name in fw.__all__]:
            names[page] = listed
    names["namespace_info"] = ["__array_namespace_info__"]  # the only topic whose name is a hidden one
    for name in catalogued.__all__:
        names[_PAGE_OF_CATEGORY[BY_NAME[name].category]].append(name)
    return [_page(topic, summaries[topic], _named(sorted(names[topic]), fw)) for topic in sorted(names)]


def _arrays() -> Page:
    entries = _named([name for name in dir(fw.Array) if not name.startswith("_")], fw.Array, "Array.")
    whole = Entry("Array", fw.Array, "Array")
    return _page("array", "`Array`: its operators, attributes and methods.", [whole, *entries])


def _sessions() -> Page:
    members = _named(_SESSION_MEMBERS, fw.Session, "Session.")
    entries = [*_named(_SESSIONS[:3], fw), Entry("Session", fw.Session, "Session"), *members]
    return _page("sessions", "Sessions: how they begin, and what they tell.", [*entries, *_named(_SESSIONS[3:], fw)])


def _explanations() -> Page:
    return _page(
        "explaining", "What became of your ops: kernels, launches, lines and hints.", _named(_EXPLANATIONS, fw)
    )


def _profiles() -> Page:
    members = _named(_PROFILE_MEMBERS, fw.Profile, "Profile.")
    return _page("profiling", "Where the time of a program goes.", [*_named(_PROFILES, fw), *members])


def _loops() -> Page:
    return _page("recorded_once", "Loops and functions that are recorded once.", _named(_LOOPS, fw))


def _gradients() -> Page:
    return _page("gradients", "Gradients of functions of arrays.", _named(_GRADIENTS, fw))


def _mathematics(name: str, namespace: Any) -> Page:
    summary = (namespace.__doc__ or "").partition("\n")[0]
    return _page(name, summary, _named(namespace.__all__, namespace, f"{name}."))


def _random() -> Page:
    entries = _named(fw.random.__all__, fw.random, "random.")
    draws = [name for name in dir(fw.random.Generator) if not name.startswith("_")]
    members = _named(sorted(draws), fw.random.Generator, "random.Generator.")
    summary = (fw.random.__doc__ or "").partition("\n")[0]
    return _page("random", summary, [*entries, *members])


def _strides() -> Page:
    tricks = fw.lib.stride_tricks
    entries = _named(tricks.__all__, tricks, "lib.stride_tricks.")
    return _page("stride_tricks", (tricks.__doc__ or "").partition("\n")[0], entries)


def _constants() -> Page:
    names = [name for name in fw.__all__ if isinstance(getattr(fw, name), fw.DType | float | str | None)]
    return _page(
        "constants", "Dtypes, constants and versions.", [Entry("DType", fw.DType, "DType"), *_named(names, fw)]
    )


def _errors() -> Page:
    names = [name for name in fw.__all__ if isinstance(getattr(fw, name), type)]
    errors = [name for name in names if issubclass(getattr(fw, name), fw.FusewireError)]
    return _page("errors", "The errors that a program may get.", _named(errors, fw))


def _testing() -> Page:
    summary = (fusewire.testing.__doc__ or "").partition("\n")[0]
    return _page("testing", summary, _named(fusewire.testing.__all__, fusewire.testing, "testing."))


def _page(name: str, summary: str, entries: Iterable[Entry]) -> Page:
    return Page(name, name.replace("_", " ").capitalize(), summary, tuple(entries))


def _named(names: Sequence[str], owner: Any, prefix: str = "") -> list[Entry]:
    return [Entry(name, getattr(owner, name), prefix + name) for name in names]
