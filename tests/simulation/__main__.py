"""``python -m tests.simulation``."""

import sys

from tests.simulation.sim import main

if __name__ == "__main__":
    sys.exit(main())
