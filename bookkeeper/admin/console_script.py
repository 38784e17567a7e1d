"""The console script ``bk``.

Python needs some tenths of a second to load the command. A Ctrl-C in that time ends the process as any other program:
without a traceback. This module therefore imports nothing but what it needs for that.
"""

from __future__ import annotations

import signal


def main() -> None:
    """Load the command, and run it. A Ctrl-C is the command's from then on."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not if the shell has us ignore it
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from bookkeeper.admin.standard_output import name_standard_output, open_what_is_closed

    open_what_is_closed()
    from bookkeeper.admin.cli import main as command

    name_standard_output()
    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command()
