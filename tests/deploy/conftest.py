"""What the tests of containers share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deploy.deployment import Deployment, deployed


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(tmp_path_factory.mktemp("project")) as deployment:
        yield deployment
