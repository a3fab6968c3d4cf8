"""`python -m batchspec`."""

import sys

from batchspec.cli import main

if __name__ == "__main__":
    sys.exit(main())
