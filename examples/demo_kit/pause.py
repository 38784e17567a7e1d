"""Pausing a process whose cluster has its metadata in SQLite.

A process that is stopped in the middle of a transaction holds SQLite's lock, and nobody can change the metadata until
it is woken or killed. That is SQLite's way, and not what a demo wants to show: it pauses between transactions.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final

_SETTLE_S: Final = 0.05
"""All threads of a process have stopped after so long."""
_OTHERS_S: Final = 2.0
"""Longer than this nobody who runs holds the lock."""
_SCHEME: Final = "sqlite://"


async def pause(stop: Callable[[], None], go_on: Callable[[], None], metadata: str) -> None:
    """Stop a process at a moment at which it does not hold the lock of its cluster's metadata.

    Args:
        stop, go_on: send it the signals.
        metadata: the cluster's address; only one of SQLite makes a difference.
    """
    while True:
        stop()
        await asyncio.sleep(_SETTLE_S)
        if not metadata.startswith(_SCHEME):
            return
        if not await asyncio.to_thread(is_locked, Path(metadata.removeprefix(_SCHEME))):
            return
        go_on()
        await asyncio.sleep(_SETTLE_S)


def is_locked(path: Path, patience_s: float = _OTHERS_S) -> bool:
    """Whether somebody holds a SQLite file's lock, and does not let it go in time."""
    connection = sqlite3.connect(path, timeout=patience_s, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
        return False
    except sqlite3.OperationalError:
        return True
    finally:
        connection.close()
