"""The seams bound to the operating system: the only room that touches time, chance, files, sockets and threads.

``run(main())`` and ``system_seams()`` are what the edge of a program needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from bookkeeper.real.clock import SystemClock, SystemRng
from bookkeeper.real.disk import PosixDisk
from bookkeeper.real.net import AsyncioNet
from bookkeeper.real.workers import ThreadWorkers
from bookkeeper.seams import Seams

__all__ = [
    "AsyncioNet",
    "PosixDisk",
    "SystemClock",
    "SystemRng",
    "ThreadWorkers",
    "run",
    "system_seams",
]

T = TypeVar("T")


def system_seams() -> Seams:
    """The operating system, as seams."""
    return Seams(clock=SystemClock(), rng=SystemRng(), net=AsyncioNet(), disk=PosixDisk(), workers=ThreadWorkers())


def run(main: Coroutine[Any, Any, T], *, debug: bool | None = None) -> T:
    """``asyncio.run`` on uvloop where it is installed, on asyncio's own loop elsewhere."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main, debug=debug)
    with asyncio.Runner(debug=debug, loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)
