"""Checks that an object is used in the event loop to which it belongs.

Futures, timers and connections of one loop do not work in another. A forked process has its parent's objects and none
of its connections. Without this check asyncio raises an error about futures, or the call waits for ever.
"""

from __future__ import annotations

import asyncio

from bookkeeper.errors import IllegalOperationError


def require_loop(loop: asyncio.AbstractEventLoop, what: str, instead: str) -> None:
    """Check that ``loop``, to which ``what`` belongs, is the loop that runs here. ``instead`` says what to do if not.

    Raises:
        IllegalOperationError: another loop runs here, or none.
    """
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:  # none: a thread without one, or a child that was forked inside of one
        here = None
    if here is not loop:
        raise IllegalOperationError(
            f"{what} belongs to the event loop in which it was made, but was used "
            + ("in another one" if here is not None else "where none runs, in another thread or a forked process")
            + f": {instead}. A program with threads uses bookkeeper.sync; a forked process must connect for itself"
        )
