"""Which sockets of a thread can be read or written, for libraries that bring their own threads.

One system call, and no descriptor of its own; ``select.select`` takes no descriptor above 1023.
"""

from __future__ import annotations

import math
import select
from collections.abc import Sequence
from typing import Protocol, TypeVar


class HasFileno(Protocol):
    """A socket, or anything else that stands for a descriptor."""

    def fileno(self) -> int: ...


S = TypeVar("S", bound=HasFileno)

_READ = select.POLLIN | select.POLLPRI
_WRITE = select.POLLOUT


def ready_sockets(readers: Sequence[S], writers: Sequence[S], timeout_s: float | None) -> tuple[list[S], list[S]]:
    """Wait until one of the sockets is ready, ``timeout_s`` seconds at most (None: for ever).

    A socket that has failed is ready for whatever was asked: using it tells the error.

    Returns:
        those of ``readers`` and of ``writers`` that are ready; nothing when the time is up.

    Raises:
        ValueError: a socket is closed, or the time is negative.
    """
    if timeout_s is not None and timeout_s < 0:
        raise ValueError("timeout must be non-negative")
    wanted: dict[int, int] = {}
    for sockets, events in ((readers, _READ), (writers, _WRITE)):
        for each in sockets:
            number = each.fileno()
            if number < 0:
                raise ValueError("a closed socket is never ready")
            wanted[number] = wanted.get(number, 0) | events
    poll = select.poll()
    for number, events in wanted.items():
        poll.register(number, events)
    found = dict(poll.poll(None if timeout_s is None else math.ceil(timeout_s * 1000)))
    return (
        [each for each in readers if found.get(each.fileno(), 0) & ~_WRITE],
        [each for each in writers if found.get(each.fileno(), 0) & ~_READ],
    )
