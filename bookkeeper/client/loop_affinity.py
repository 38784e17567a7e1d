"""Objects that belong to one event loop, and the error for a use from elsewhere.

Futures, timers and connections of one loop mean nothing in another; a process that was forked has its parent's objects
and none of its connections. asyncio says so in words about futures, or the call waits for ever.
"""

from __future__ import annotations

import asyncio

from bookkeeper.errors import IllegalOperationError


def require_loop(loop: asyncio.AbstractEventLoop, what: str, instead: str) -> None:
    """``what`` belongs to ``loop``, which is to be the one that runs here; else its user should do ``instead``.

    Raises:
        IllegalOperationError: it is not.
    """
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:  # none: a thread without one, or a child that was forked inside of one
        here = None
    if here is not loop:
        raise IllegalOperationError(
            f"{what} belongs to the event loop in which it was made, and was used "
            + ("in another one" if here is not None else "where none runs, in another thread or a forked process")
            + f": {instead}. Programs with threads use bookkeeper.sync; a forked process connects for itself"
        )
