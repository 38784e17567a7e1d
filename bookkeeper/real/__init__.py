"""The seams bound to the operating system: the only room that touches time, chance, files, sockets and threads.

``run(main())`` and ``system_seams()`` are what the edge of a program needs.

clock, disk, net, workers     the seams: time and chance, files, sockets, threads
tls, private, watched_file    keys and trust; files of one owner alone, read again when they change
memory, descriptors           this process: its memory, how many files it may open
supervisor, unix_socket       what is told to systemd; lines over a local socket
ready_sockets                 which sockets of another library's thread are ready
location_sources              where bookies stand, from a file or a script
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from bookkeeper.real.clock import SystemClock, SystemRng
from bookkeeper.real.descriptors import allow_descriptors
from bookkeeper.real.disk import PosixDisk, is_open_file
from bookkeeper.real.memory import (
    give_back_freed_memory,
    keep_freed_memory,
    memory_limit,
    names_secrets,
    no_core_dumps,
)
from bookkeeper.real.net import AsyncioNet, notice_dead_peers
from bookkeeper.real.private import (
    append_private,
    exchange_private,
    make_private,
    new_private_file,
    read_private,
    read_secret,
    replace_private,
    require_own,
)
from bookkeeper.real.ready_sockets import ready_sockets
from bookkeeper.real.supervisor import NotifySocket
from bookkeeper.real.tls import FileTls
from bookkeeper.real.watched_file import WatchedFile
from bookkeeper.real.workers import ThreadWorkers
from bookkeeper.seams import Seams

__all__ = [
    "FileTls",
    "NotifySocket",
    "SystemClock",
    "SystemRng",
    "WatchedFile",
    "allow_descriptors",
    "append_private",
    "exchange_private",
    "give_back_freed_memory",
    "is_open_file",
    "keep_freed_memory",
    "make_private",
    "memory_limit",
    "names_secrets",
    "new_private_file",
    "no_core_dumps",
    "notice_dead_peers",
    "read_private",
    "read_secret",
    "ready_sockets",
    "replace_private",
    "require_own",
    "run",
    "system_seams",
]

T = TypeVar("T")

YOUNG_OBJECTS: Final = 10_000
"""How many new objects make the collector look for circles among them. An append in flight is two or three."""


def system_seams() -> Seams:
    """The operating system, as seams."""
    return Seams(clock=SystemClock(), rng=SystemRng(), net=AsyncioNet(), disk=PosixDisk(), workers=ThreadWorkers())


def run(main: Coroutine[Any, Any, T], *, debug: bool | None = None) -> T:
    """``asyncio.run`` on uvloop where it is installed, on asyncio's own loop elsewhere.

    For the edge of a program: it also tells the process's garbage collector that what was imported stays. If it is
    interrupted before ``main`` has begun, ``main`` is closed: nobody is told of a coroutine that was never awaited.
    """
    try:
        _calm_collector()
        with asyncio.Runner(debug=debug, loop_factory=_loop_factory()) as runner:
            return runner.run(main)
    finally:
        main.close()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's, or None for asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _calm_collector() -> None:
    """Python's default looks at every 700 new objects: with a thousand appends in flight it sees each twice, in vain.

    That was a tenth of a client's CPU. Once per process: what is frozen is never looked at again.
    """
    if gc.get_threshold()[0] < YOUNG_OBJECTS:
        gc.freeze()
        gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
