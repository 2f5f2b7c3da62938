"""What all tests share."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

from fusewire_kernels import build
from fusewire_kernels.verify import verify_pass
from fusewire_protos import grpc_environment
from tests.effort import DEEP, USUAL

os.environ.update(grpc_environment.lacking(os.environ))  # as wherever Fusewire runs, whichever test imports gRPC first

build.after_pass = verify_pass

settings.register_profile("fusewire", USUAL)
settings.register_profile("deep", DEEP)  # `pytest --hypothesis-profile deep`, for whoever has an hour
settings.load_profile("fusewire")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The smoke test first: whoever broke everything learns it at once."""
    items.sort(key=lambda item: item.path.name != "test_smoke.py")


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A self-signed certificate of this machine, and its key, as files."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the openssl command to make a certificate")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    command += [
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-keyout",
        str(key),
        "-out",
        str(cert),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    return cert, key
