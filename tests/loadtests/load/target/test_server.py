"""A given server: its inspection gets a token of its own, if there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusewire.testing import serve_subprocess
from loadtests.load.target.server import Access, given_server
from loadtests.measuring.errors import LoadFailed
from tests.deploy.setting_up import set_up


def test_inspection_gets_its_own_token(tmp_path: Path) -> None:
    secrets = set_up(tmp_path)
    use = (secrets.clients / "use.token").read_text(encoding="utf-8").strip()
    inspect = (secrets.watchers / "inspect.token").read_text(encoding="utf-8").strip()
    with serve_subprocess("null", arguments=secrets.server_arguments) as process:
        access = Access(process.grpc, use, secrets.clients / "ca.pem")
        own, same = given_server(access, process.http, inspect).service, given_server(access, process.http).service
        assert own is not None
        assert same is not None
        assert own.stats()["sessions"] == 0
        with pytest.raises(LoadFailed, match="403"):
            same.stats()
