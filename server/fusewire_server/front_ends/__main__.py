"""`python -m fusewire_server.front_ends`: one front end. Its server starts it."""

import os
import sys

from fusewire_protos import grpc_environment
from fusewire_server.processes.child import ignore_signals

if __name__ == "__main__":
    ignore_signals()
    os.environ.update(grpc_environment.lacking(os.environ))

    from fusewire_server.front_ends.process import main  # it imports gRPC, which reads the environment

    sys.exit(main())
