"""The console script ``bk``.

Python needs some tenths of a second to load the command. A Ctrl-C in that time ends the process as any other program:
without a traceback. This module therefore imports nothing but what it needs for that.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer


NAME: Final = "standard output"


class NamedOutput(io.FileIO):
    """Writes to a descriptor. Its first error names standard output; what comes after that goes nowhere.

    The system says "No space left on device" and not of what, so a full disk below the output of a command would look
    like one below its data.

    That the reader has gone (``bk ... | head``) is a BrokenPipeError, as ever.
    """

    def __init__(self, descriptor: int, *, lossy: bool = False) -> None:
        """
        Args:
            lossy: what cannot be written is left out, and later writes are tried. So it is with a server: it does not
                end because its log is on a full disk.
        """
        super().__init__(descriptor, "wb", closefd=False)
        self._failed, self._lossy = False, lossy

    def write(self, data: Buffer, /) -> int:
        size = memoryview(data).nbytes
        if self._failed or not size:  # Python writes what is left when it ends; click tries out writers with nothing
            return size
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            if self._lossy:
                return size
            self._failed = True
            named = OSError(error.errno, os.strerror(error.errno or 0), NAME)
            named.add_note("what was printed is not complete")
            raise named from error


def open_what_is_closed() -> None:
    """Open on ``/dev/null`` what is closed of standard input, output and error (``<&- >&- 2>&-``).

    Otherwise the next file or connection gets the number of standard output, and what is printed is written into it.
    """
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # it gets the least number that is free
            os.set_inheritable(opened, True)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, mode, closefd=False))


def name_standard_output(*, server: bool = False) -> None:
    """Let the errors of ``sys.stdout`` name it, and let it show what its encoding lacks as ``\\u0436``: what a command
    did is not to end in a traceback. An output that is not the process's own stays.

    Args:
        server: neither errors of ``sys.stdout`` nor of ``sys.stderr`` count.
    """
    if sys.stdout is sys.__stdout__ and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = _named(sys.stdout, lossy=server)
    if server and sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = _named(sys.stderr, lossy=True)


def _named(plain: io.TextIOWrapper, *, lossy: bool) -> io.TextIOWrapper:
    with suppress(OSError) if lossy else nullcontext():
        plain.flush()
    raw = NamedOutput(plain.fileno(), lossy=lossy)
    unbuffered = plain.write_through
    return io.TextIOWrapper(
        raw if unbuffered else io.BufferedWriter(raw),
        encoding=plain.encoding,
        errors="backslashreplace" if plain.errors == "strict" else plain.errors,
        line_buffering=plain.line_buffering,
        write_through=unbuffered,
    )


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
    from bookkeeper.admin.console_script import name_standard_output, open_what_is_closed

    open_what_is_closed()
    server = is_server(sys.argv[1:])
    if server:
        with suppress(OSError):
            os.write(2, b"starting: importing\n")
    from bookkeeper.admin.cli import main as command

    name_standard_output(server=server or sys.argv[1:2] == ["console"])
    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command()
