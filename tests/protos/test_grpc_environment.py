"""What gRPC is told before it is imported."""

import os
import subprocess
import sys

import pytest

from fusewire_protos import grpc_environment

OURS = ("GRPC_ENABLE_FORK_SUPPORT", "GRPC_VERBOSITY", "GRPC_EXPERIMENTS")
USE_GRPC = 'import grpc; grpc.insecure_channel("127.0.0.1:1").close()'
# A call with TLS to a peer that does not speak TLS.
FAIL_A_HANDSHAKE = """
import socket, threading, grpc

def answer_without_tls():
    accepted = listener.accept()[0]
    accepted.sendall(b"no TLS")
    accepted.recv(65536)
    accepted.close()

listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=answer_without_tls).start()
channel = grpc.secure_channel("127.0.0.1:%d" % listener.getsockname()[1], grpc.ssl_channel_credentials())
try:
    channel.unary_unary("/service/method")(b"", timeout=20)
except grpc.RpcError as error:
    assert error.code() is grpc.StatusCode.UNAVAILABLE, error
"""


def test_it_is_told_all_that_we_want(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_environment, "version", lambda _: "1.85.1")
    assert tuple(grpc_environment.lacking({})) == OURS


def test_what_somebody_else_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_environment, "version", lambda _: "1.85.1")
    assert tuple(grpc_environment.lacking({OURS[2]: "tcp_frame_size_tuning"})) == OURS[:2]


def test_a_version_not_seen_yet_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_environment, "version", lambda _: "1.86.0rc1")
    assert tuple(grpc_environment.lacking({})) == OURS[:2]


@pytest.mark.parametrize("program", [USE_GRPC, FAIL_A_HANDSHAKE], ids=["use", "handshake"])
def test_the_installed_grpc_writes_nothing(program: str) -> None:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")}
    environment = bare | grpc_environment.lacking(bare)
    used = subprocess.run(
        [sys.executable, "-c", program], check=True, env=environment, capture_output=True, text=True, timeout=60
    )
    assert used.stderr == ""
