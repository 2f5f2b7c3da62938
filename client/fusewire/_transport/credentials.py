"""The certificates that a client trusts."""

from __future__ import annotations

import ssl
from pathlib import Path

import grpc

from fusewire._errors import ConfigurationError


def system_roots() -> Path:
    """Returns the file of the certificates that the system trusts. Raises ConfigurationError if OpenSSL finds none."""
    paths = ssl.get_default_verify_paths()
    if paths.cafile is None:
        raise ConfigurationError(
            f"no file of the system's certificates at {paths.openssl_cafile}: set {paths.openssl_cafile_env}"
        )
    return Path(paths.cafile)


def tls_credentials(ca_file: Path) -> grpc.ChannelCredentials:
    """Returns credentials that trust the certificates of a PEM file. Raises ConfigurationError if there are none."""
    trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # checks the file, because gRPC would only log its errors
    try:
        certificates = ca_file.read_bytes()
        trusted.load_verify_locations(cafile=ca_file)
    except ssl.SSLError:
        raise ConfigurationError(f"tls_ca = {ca_file}: no certificate in PEM, or one that cannot be read") from None
    except OSError as reason:
        raise ConfigurationError(f"tls_ca = {ca_file}: {reason.strerror}") from None
    return grpc.ssl_channel_credentials(certificates)
