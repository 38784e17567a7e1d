"""``python -m bookkeeper.admin``: the command ``bk``."""

from bookkeeper.admin.console_script import main

main()
