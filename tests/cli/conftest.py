"""What the tests of the command have in common."""

from collections.abc import Iterator

import pytest

from fusewire._connect import TLS_CA_VARIABLE
from fusewire._transport.token import TOKEN_VARIABLE
from tests.inspected import Inspected, inspected_server


@pytest.fixture
def inspected(monkeypatch: pytest.MonkeyPatch) -> Iterator[Inspected]:
    for variable in (TLS_CA_VARIABLE, TOKEN_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    with inspected_server() as server:
        yield server
