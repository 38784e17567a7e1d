"""Shell: one connection to each cluster for each process, and retries while a cluster does not answer.

Readers are pickled into every task and hold no connection; connections are kept here, in each process's module.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from bookkeeper.errors import BookKeeperError, SessionExpiredError
from segments.errors import StreamUnavailableError

if TYPE_CHECKING:
    from bookkeeper.client.known import KnownCluster
    from bookkeeper.sync import BookKeeper
    from segments import sync
    from segments.read.blocking import KnownStreams

_log = logging.getLogger(__name__)

T = TypeVar("T")


class _Connection(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound="_Connection")

_PAUSE_MIN_S: Final = 0.1
_PAUSE_MAX_S: Final = 3.0

FAILURES: Final = (StreamUnavailableError, BookKeeperError, OSError)
"""What may pass: metadata or bookies that do not answer."""

_lock: Final = threading.Lock()
_namespaces: Final[dict[tuple[int, str], sync.Namespace]] = {}
_known_streams: Final[dict[tuple[int, str], KnownStreams]] = {}
_clients: Final[dict[tuple[int, str], BookKeeper]] = {}
_known_clients: Final[dict[tuple[int, str], BookKeeper]] = {}
"""(process, address) -> its connection. A fork takes the module along, and none of the connections."""


def namespace(uri: str, *, fresh: bool = False) -> sync.Namespace:
    """The streams of the cluster at this address, through this process's connection.

    Args:
        fresh: make the connection anew; whoever still uses the former one gets errors.

    Raises: BookKeeperError, StreamError.
    """
    from segments import sync

    return _shared(_namespaces, uri, sync.connect, fresh)


def known_streams(uri: str, known: KnownCluster, *, fresh: bool = False) -> KnownStreams:
    """The same, for a task that has been told what it must know: it has no session with the metadata store until it
    must ask something. Raises as ``namespace``."""
    from segments.read.blocking import connect_known  # and nothing of streams that a task does not need

    found = _shared(_known_streams, uri, lambda address: connect_known(address, known), fresh)
    found.learn(known)
    return found


def known_client(uri: str, known: KnownCluster, *, fresh: bool = False) -> BookKeeper:
    """The ledgers of the cluster, likewise. Raises BookKeeperError."""
    from bookkeeper.sync import BookKeeper

    found = _shared(_known_clients, uri, lambda address: BookKeeper.connect(address, known=known), fresh)
    found.learn(known)
    return found


def client(uri: str, *, fresh: bool = False) -> BookKeeper:
    """The ledgers of the cluster, likewise. Raises BookKeeperError."""
    from bookkeeper.sync import BookKeeper

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


class RetryTimer:
    """Pauses between the attempts at a call, and their end.

    Args:
        patience_s: counted from the first failure since the last success.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self.succeeded()

    def succeeded(self) -> None:
        """An attempt has succeeded: the time and the pauses begin anew."""
        self._began: float | None = None
        self._pause_s = _PAUSE_MIN_S

    def failed(self, error: Exception) -> None:
        """Wait before the next attempt. Called while ``error`` is handled.

        Raises: ``error``, if it does not pass by itself, or lasts too long.
        """
        now = time.monotonic()
        self._began = now if self._began is None else self._began
        if _is_permanent(error) or now - self._began + self._pause_s > self._patience_s:
            raise error
        _log.warning("asked again in %.1f s: %s", self._pause_s, error)
        time.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, _PAUSE_MAX_S)


def call_with_retries(
    call: Callable[[], T],
    patience_s: float,
    forget: Callable[[], object] | None = None,
    failures: tuple[type[Exception], ...] = FAILURES,
) -> T:
    """Call again while the cluster's metadata or bookies do not answer.

    Args:
        call: has no effect that may not be repeated.
        patience_s: for so long.
        forget: called before each further attempt.
        failures: what may pass.

    Raises: what the last attempt has raised.
    """
    patience = RetryTimer(patience_s)
    while True:
        try:
            return call()
        except failures as error:
            patience.failed(error)
        if forget is not None:
            forget()


def _is_permanent(error: Exception) -> bool:
    """Whether the same call would only fail again."""
    if isinstance(error, BookKeeperError):
        return not (error.retryable or isinstance(error, SessionExpiredError))
    return isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError)
