"""Standard output, whose errors name it.

The system says "No space left on device" and not of what, so a full disk below the output of a command would look like
one below its data.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

NAME: Final = "standard output"


class NamedOutput(io.FileIO):
    """Writes to a descriptor. Its first error names standard output; what comes after that goes nowhere.

    That the reader has gone (``bk ... | head``) is a BrokenPipeError, as ever.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._failed = False

    def write(self, data: Buffer, /) -> int:
        size = memoryview(data).nbytes
        if self._failed or not size:  # Python writes what is left when it ends; click tries out writers with nothing
            return size
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            self._failed = True
            named = OSError(error.errno, os.strerror(error.errno or 0), NAME)
            named.add_note("what was printed is not complete")
            raise named from error


def name_standard_output() -> None:
    """Let the errors of ``sys.stdout`` name it. One that is closed (``>&-``), or not the process's own, stays."""
    plain = sys.stdout
    if plain is not sys.__stdout__ or not isinstance(plain, io.TextIOWrapper):
        return
    plain.flush()
    raw = NamedOutput(plain.fileno())
    unbuffered = plain.write_through
    sys.stdout = io.TextIOWrapper(
        raw if unbuffered else io.BufferedWriter(raw),
        encoding=plain.encoding,
        errors=plain.errors,
        line_buffering=plain.line_buffering,
        write_through=unbuffered,
    )
