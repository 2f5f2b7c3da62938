"""Updates values when a row goes to the device: inputs are donated or released, results become usable. Pure."""

from __future__ import annotations

from fusewire_server.sessions.effects import Effects
from fusewire_server.sessions.session import Row, Value, ValueState
from fusewire_server.sessions.values import forget, make_ready, release_if_dead

Donations = tuple[tuple[int, int], ...]  # (input number, position of the live result that is written over it)

_NONE: frozenset[Value] = frozenset()


def leave_inputs(row: Row, effects: Effects, *, may_donate: bool) -> Donations:
    """Removes the row as reader of its inputs. An input that dies is donated if `may_donate`, else released."""
    donated = _donations(row) if may_donate else ()
    donors = {row.inputs[number] for number, _ in donated} if donated else _NONE
    for value in row.inputs:
        value.readers -= 1
        if value in donors:
            forget(row.session, value)
        else:
            release_if_dead(row.session, value, effects.released)
    return donated


def publish_outputs(row: Row, effects: Effects) -> None:
    """Makes the row's results ready, because later orders to the device may use them."""
    for value in row.outputs:
        if value.state is not ValueState.FAILED:
            make_ready(value, effects.reads)
            release_if_dead(row.session, value, effects.released)
        else:
            effects.released.append(value)


def _donations(row: Row) -> Donations:
    """Returns the donations of the row's plan whose inputs die. Without a plan there are none: it may begin again."""
    loaded = row.entry.loaded
    if loaded is None or not loaded.plan.donations:
        return ()
    dying = [number for number, value in enumerate(row.inputs) if _is_last_read(value)]
    if not dying:
        return ()
    inputs, positions = set(dying), set(range(len(row.outputs)))
    chosen: list[tuple[int, int]] = []
    for number, position in loaded.plan.donations:
        if number in inputs and position in positions:
            chosen.append((number, position))
            inputs.discard(number)
            positions.discard(position)
    return tuple(chosen)


def _is_last_read(value: Value) -> bool:
    """Returns whether a row that is about to run is the value's only reader, and has the value as one input only."""
    return not value.is_named and value.readers == 1 and value.state is ValueState.READY
