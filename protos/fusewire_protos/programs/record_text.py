"""Writes the records of a plan as lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from fusewire_protos.programs.records import OpForm, Records, ops_of_groups

MOST_LINES = 400  # of each of the lists below

_ONE_LAUNCH = "one launch runs many iterations"


def record_lines(
    names: Sequence[str], instances: Sequence[int], records: Records, sentences: Mapping[str, str]
) -> Iterator[str]:
    """Yields lists of lines, one behind another, each of at most `MOST_LINES` items.

    The first list has a line for each launch. The others tell what no launch computes, which ops were not fused and
    why, once for all pairs of equal names, which launches are separate, and how a loop's iterations run. An op is
    called by its name and its index in the program, as in "add #3". `instances` are the numbers of instances of each
    launch, and `sentences` those of the reasons by code.
    """
    called = [f"{name} #{index}" for index, name in enumerate(names)]
    yield from _bounded([*_launch_lines(called, instances, records)], "launches")
    yield from _without_launch(called, records)
    yield from _bounded([*_unfused_lines(names, called, records, sentences)], "pairs")
    separate = [
        f"launch {each.launch} separate from launch {each.other}, which reads input {each.input} too: "
        f"{sentences[each.reason]}"
        for each in records.separate
    ]
    yield from _bounded(separate, "launches")
    yield from [f"iterations change input {number} in place" for number in records.updated]
    if records.persistent:
        yield _ONE_LAUNCH
    elif records.why_launched:
        yield f"each iteration is launched: {records.why_launched}"


def _bounded(lines: list[str], what: str) -> list[str]:
    if len(lines) <= MOST_LINES:
        return lines
    return [*lines[:MOST_LINES], f"… and {len(lines) - MOST_LINES} {what} more"]


def _launch_lines(called: Sequence[str], instances: Sequence[int], records: Records) -> Iterator[str]:
    groups = [" + ".join([called[op] for op in ops]) for ops in ops_of_groups(records.ops, sum(instances))]
    first = 0
    for launch, count in enumerate(instances):
        own = groups[first : first + count]
        yield f"launch {launch}: {own[0]}" if count == 1 else f"launch {launch}: {count} × ({'; '.join(own)})"
        first += count


def _without_launch(called: Sequence[str], records: Records) -> Iterator[str]:
    """Yields a line for each form of ops that no launch computes."""
    of_form: dict[OpForm, list[str]] = {}
    for name, record in zip(called, records.ops, strict=False):
        if not record.groups:
            of_form.setdefault(record.form, []).append(name)
    for form in sorted(of_form):
        ops, more = of_form[form][:MOST_LINES], len(of_form[form]) - MOST_LINES
        yield f"no launch ({form}): {', '.join(ops)}" + (f" … and {more} more" if more > 0 else "")


def _unfused_lines(
    names: Sequence[str], called: Sequence[str], records: Records, sentences: Mapping[str, str]
) -> Iterator[str]:
    kinds = [(names[each.consumer], names[each.producer], each.reason) for each in records.unfused]
    times = Counter(kinds)
    for kind, (consumer, producer, reason) in zip(kinds, records.unfused, strict=True):
        count = times.pop(kind, 0)
        if count:
            often = f" ({count} times)" if count > 1 else ""
            yield f"{called[consumer]} not fused with {called[producer]}: {sentences[reason]}{often}"
