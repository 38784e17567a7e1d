"""``python -m bookkeeper.bookie``: the same as ``bk bookie``."""

from bookkeeper.bookie.command import bookie

if __name__ == "__main__":
    bookie()
