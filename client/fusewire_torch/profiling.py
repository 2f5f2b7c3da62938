"""Has kernels name the ops that they record by PyTorch's ops, while a profile is on."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from fusewire import Session
from fusewire._profile.profile import NameOps, listeners
from fusewire_torch.connection import CONNECTION
from fusewire_torch.storage import name_ops

_named: WeakKeyDictionary[Session, NameOps] = WeakKeyDictionary()  # of sessions that are profiled


def teach_profiling() -> None:
    """Lets profiles know the names of PyTorch's ops."""
    listeners.append(_on_profile)
    CONNECTION.on_use = _on_use


def _on_profile(session: Session, named: NameOps | None) -> None:
    if named is None:
        _named.pop(session, None)
    else:
        _named[session] = named
    if session is CONNECTION.session:
        _on_use(session)


def _on_use(session: Session) -> None:
    name_ops(_named.get(session))
