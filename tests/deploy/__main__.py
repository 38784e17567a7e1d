"""``make deploy``: what is in deploy/, checked by its own tools."""

import sys

from tests.deploy.tools import main

if __name__ == "__main__":
    sys.exit(main())
