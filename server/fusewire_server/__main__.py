"""`python -m fusewire_server COMMAND …`: the server's commands without the client's."""

import sys

from fusewire_server.commands import main

if __name__ == "__main__":
    sys.exit(main())
