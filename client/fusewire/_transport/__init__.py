"""Carries frames and large values."""

import os

from fusewire_protos import grpc_environment

os.environ.update(grpc_environment.lacking(os.environ))  # before any file of this folder imports gRPC
