"""Shell: one connection to each cluster for each process, and patience while a cluster does not answer.

Readers are pickled into every task and hold nothing; what they need to reach a cluster is kept here, in the module of
the process that they come to.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from bookkeeper.errors import BookKeeperError
from bookkeeper.sync import BookKeeper
from segments import StreamMetadataError, StreamUnavailableError, sync

T = TypeVar("T")
C = TypeVar("C", sync.Namespace, BookKeeper)

_PAUSE_MIN_S: Final = 0.1
_PAUSE_MAX_S: Final = 3.0

_lock: Final = threading.Lock()
_namespaces: Final[dict[tuple[int, str], sync.Namespace]] = {}
_clients: Final[dict[tuple[int, str], BookKeeper]] = {}
"""(process, address) -> its connection. A fork takes the module along, and none of the connections."""


def namespace(uri: str, *, fresh: bool = False) -> sync.Namespace:
    """The streams of the cluster at this address, through this process's connection.

    Args:
        fresh: make the connection anew; whoever still uses the former one gets errors.

    Raises: BookKeeperError, StreamError.
    """
    return _shared(_namespaces, uri, sync.connect, fresh)


def client(uri: str, *, fresh: bool = False) -> BookKeeper:
    """The ledgers of the cluster, likewise. Raises BookKeeperError."""
    return _shared(_clients, uri, BookKeeper.connect, fresh)


def _shared(kept: dict[tuple[int, str], C], uri: str, connect: Callable[[str], C], fresh: bool) -> C:
    key = (os.getpid(), uri)
    with _lock:
        known = kept.get(key)
        if known is not None and not fresh:
            return known
        kept.pop(key, None)
    if known is not None:
        known.close()
    made = connect(uri)
    with _lock:
        other = kept.setdefault(key, made)
    if other is not made:
        made.close()
    return other


def patiently(call: Callable[[], T], patience_s: float, forget: Callable[[], object] | None = None) -> T:
    """Call again while the cluster's metadata or bookies do not answer.

    Args:
        call: has no effect that may not be repeated.
        patience_s: for so long.
        forget: called before each further attempt.

    Raises: what the last attempt has raised.
    """
    began, pause = time.monotonic(), _PAUSE_MIN_S
    while True:
        try:
            return call()
        except (StreamUnavailableError, StreamMetadataError, BookKeeperError, OSError) as error:
            if not _may_pass(error) or time.monotonic() - began + pause > patience_s:
                raise
        time.sleep(pause)
        pause = min(2 * pause, _PAUSE_MAX_S)
        if forget is not None:
            forget()


def _may_pass(error: Exception) -> bool:
    """Whether the same call may succeed later."""
    return not isinstance(error, BookKeeperError) or error.retryable
