"""Addresses: how they are written, what is none, and which of them only this machine reaches."""

import pytest

from fusewire_protos.address import Address, read_address


@pytest.mark.parametrize(
    "text",
    ["127.0.0.1:7423", "[::1]:0", "[fe80::1%eth0]:1", "gpu_1.example-a.org:65535", "gpu.example.:1", "a" * 63 + ".b:1"],
)
def test_an_address_is_written_as_it_was_read(text: str) -> None:
    assert str(read_address(text)) == text


def test_what_has_been_read_may_be_read_again() -> None:
    assert read_address(Address("::1", 9)) == ("::1", 9)


@pytest.mark.parametrize(
    "raw",
    [
        7423,
        None,
        b"localhost:7423",
        "",
        "localhost",
        "7423",
        ":7423",
        "localhost:",
        "localhost:99999",
        "localhost:-1",
        "localhost:+1",
        "localhost:7_4",
        "localhost:²",
        "localhost:" + "9" * 5000,
        "localhost:7423 ",
        "foo bar:7423",
        "http://localhost:7423",
        "localhost:7423/v1",
        "::1:7423",
        "[localhost]:7423",
        "[::1:7423",
        "ü:7423",
        ".:7423",
        ".gpu:7423",
        "gpu..example:7423",
        "gpu.example..:7423",
        "a" * 64 + ".example:7423",
        "example." + "a" * 64 + ":7423",
    ],
)
def test_anything_else_is_refused_with_what_was_expected(raw: object) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT with a port from 0 to 65535"):
        read_address(raw)


def test_whoever_connects_needs_a_port() -> None:
    with pytest.raises(ValueError, match="a port from 1 to"):
        read_address("localhost:0", least_port=1)
    assert read_address("localhost:1", least_port=1).port == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
def test_a_loopback_host_is_known(host: str) -> None:
    assert Address(host, 1).is_loopback()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "gpu.example.org", "localhost.example.org"])  # noqa: S104
def test_every_other_host_counts_as_reachable_from_outside(host: str) -> None:
    assert not Address(host, 1).is_loopback()
