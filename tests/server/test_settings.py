"""Addresses: how they are written, and which of them only this machine reaches."""

import pytest

from fusewire_server.settings import Address, read_address


@pytest.mark.parametrize("text", ["127.0.0.1:7423", "[::1]:0", "gpu.example.org:65535"])
def test_an_address_is_written_as_it_was_read(text: str) -> None:
    assert str(read_address(text)) == text


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
def test_a_loopback_host_is_known(host: str) -> None:
    assert Address(host, 1).is_loopback()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "gpu.example.org", "localhost.example.org"])  # noqa: S104
def test_every_other_host_counts_as_reachable_from_outside(host: str) -> None:
    assert not Address(host, 1).is_loopback()
