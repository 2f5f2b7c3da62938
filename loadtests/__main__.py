"""Runs the command of the load tests."""

import sys

from loadtests.command_line import main

if __name__ == "__main__":
    sys.exit(main())
