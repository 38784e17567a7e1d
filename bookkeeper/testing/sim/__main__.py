"""``python -m bookkeeper.testing.sim``."""

import sys

from bookkeeper.testing.sim.sim import main

if __name__ == "__main__":
    sys.exit(main())
