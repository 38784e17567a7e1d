"""``python -m bookkeeper.admin``: the command ``bk``."""

from bookkeeper.admin.cli import main

main()
