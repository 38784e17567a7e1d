"""The console script ``bk``.

Python needs some tenths of a second to load the command. A Ctrl-C in that time ends the process as any other program:
without a traceback. This module therefore imports nothing but what it needs for that.
"""

from __future__ import annotations

import os
import signal
import sys

SERVERS = {"bookie", "standalone", "gateway", "autorecovery", "zookeeper"}
"""Verbs whose processes stay. Whoever waits for one reads in its log how far its start is."""
_MODES = {"webhdfs", "grpc", "run"}


def is_server(words: list[str]) -> bool:
    """Whether a command of these words is going to serve, as far as that can be told without loading anything."""
    verb, *rest = words or [""]
    asks = {"-h", "--help"} & set(rest)
    return verb in SERVERS and not asks and (not rest or rest[0].startswith("-") or rest[0] in _MODES)


def main() -> None:
    """Load the command, and run it. A Ctrl-C is the command's from then on."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not if the shell has us ignore it
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from bookkeeper.admin.standard_output import name_standard_output, open_what_is_closed

    open_what_is_closed()
    if is_server(sys.argv[1:]):
        os.write(2, b"starting: importing\n")
    from bookkeeper.admin.cli import main as command

    name_standard_output()
    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command()
