"""What all tests share."""

import pytest
from hypothesis import settings

from tests.effort import DEEP, USUAL

settings.register_profile("fusewire", USUAL)
settings.register_profile("deep", DEEP)  # `pytest --hypothesis-profile deep`, for whoever has an hour
settings.load_profile("fusewire")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The smoke test first: whoever broke everything learns it at once."""
    items.sort(key=lambda item: item.path.name != "test_smoke.py")
