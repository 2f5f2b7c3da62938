"""`python -m fusewire_server.engines`: the engine of one device of several. Its server starts it."""

import os
import sys

from fusewire_protos import grpc_environment
from fusewire_server.processes.child import ignore_signals

if __name__ == "__main__":
    ignore_signals()
    # The planner is started by fork and exec, where gRPC's own handlers would wait for its threads for ever.
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"
    os.environ.update(grpc_environment.lacking(os.environ))

    from fusewire_server.engines.process import main  # it imports gRPC, which reads the environment

    sys.exit(main())
