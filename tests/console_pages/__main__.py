"""``make console-pages [ARGS="--keep DIR"]``: the console in Chromium."""

import sys

from tests.console_pages.stage import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
