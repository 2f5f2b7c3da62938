"""Makes `python -m fusewire_cli …` the same as `fusewire …`."""

import sys

from fusewire_cli.main import main

if __name__ == "__main__":
    sys.exit(main())
