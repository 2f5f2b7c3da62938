"""`python -m fusewire_server.front_ends`: one front end. Its server starts it."""

import os
import signal
import sys

from fusewire_protos import grpc_environment

if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # they may reach the whole group of processes; the server decides
    os.environ.update(grpc_environment.lacking(os.environ))

    from fusewire_server.front_ends.process import main  # it imports gRPC, which reads the environment

    sys.exit(main())
