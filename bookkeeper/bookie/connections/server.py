"""All connections of one bookie: how many there may be, what they share, and which clients are too slow."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

from bookkeeper.access.principal import NOBODY, Principal
from bookkeeper.bookie.bookie import Bookie
from bookkeeper.bookie.connections.admission import Admission, Share
from bookkeeper.bookie.connections.connection_audit import ConnectionAudit
from bookkeeper.bookie.connections.flow_control import FlowControl, Slowness
from bookkeeper.bookie.connections.request_log import RequestLog
from bookkeeper.bookie.connections.server_metrics import ServerMetrics
from bookkeeper.bookie.ownership.ledger_permissions import LedgerPermissions
from bookkeeper.errors import MalformedFrameError
from bookkeeper.metrics import Metrics
from bookkeeper.net.receive_memory import NO_LIMIT, RECEIVE_BUFFER, ReceiveMemory
from bookkeeper.rate_limited_log import RateLimitedLogger

log = logging.getLogger(__name__)

SWEEP_S: Final = 5.0
"""Seconds between two checks for slow clients."""

CROWDED_FRAME_S: Final = 2.0
"""Seconds a client may take for the rest of a large frame while others wait for the memory that it holds."""

CROWDED_SWEEP_S: Final = 0.5
"""Seconds between two checks for slow clients while somebody waits for memory."""

ENDED_CONNECTIONS_MAX: Final = 500
"""Freed memory goes back to the system after this many connections have ended."""

RELEASED_BYTES_MAX: Final = 16 * 1024 * 1024
"""Freed memory goes back to the system after unfinished frames have released this many bytes."""

CLOSE_GRACE_S: Final = 1.0
"""Seconds that a stopping bookie waits for connections to close in order; then it cuts them off."""

_SLACK: Final = 4096
"""Bytes more than a chunk has, so that its records fit in any case."""

_REASONS: Final = {
    Slowness.FRAME: "it did not send the rest of a frame in time",
    Slowness.REPLIES: "it did not read its replies in time",
}


class OpenConnection(Protocol):
    """A connection, as the others of its bookie see it."""

    host: str
    """The peer's address, for log lines."""
    account: str
    """The peer's address as limits count it (:func:`~bookkeeper.ids.counted_address`)."""
    flow: FlowControl
    share: Share | None
    """What its client has in progress."""

    def on_access(self) -> None:
        """The permissions of its client may have changed."""

    @property
    def keeps_memory(self) -> bool:
        """Whether it holds more of an unfinished frame than every connection may."""

    @property
    def is_polling(self) -> bool:
        """Whether its client waits in a long poll."""

    def close(self, error: BaseException | None = None) -> None:
        """End after what was written is sent."""

    def abort(self, error: BaseException | None = None) -> None:
        """End now."""


class Connections:
    """All connections of one bookie."""

    def __init__(
        self,
        bookie: Bookie,
        admission: Admission,
        metrics: Metrics,
        *,
        frame_max: int,
        connections_max: int,
        connections_per_host_max: int,
        connections_per_principal_max: float = math.inf,
        slow_frame_s: float,
        idle_s: float = math.inf,
        receive_bytes: int = NO_LIMIT,
        return_memory: Callable[[], object] = lambda: None,
        audit: ConnectionAudit | None = None,
        access: LedgerPermissions | None = None,
    ) -> None:
        """
        Args:
            idle_s: a connection is closed after so many seconds without a byte from its client and without a request
                that waits; a client that needs one connects again.
            return_memory: gives freed memory back to the system; called after many connections have ended.
            access: decides what clients may do; None: everything.
        """
        self.bookie = bookie
        self.admission = admission
        self.counts = ServerMetrics(metrics)
        self.frame_max = frame_max
        self.connections: dict[OpenConnection, None] = {}
        self._scratch = bytearray(RECEIVE_BUFFER + _SLACK)
        self.memory = ReceiveMemory(receive_bytes)
        self._return_memory = return_memory
        self._ended = 0
        """Connections that have ended since memory was last given back."""
        self._connections_max = connections_max
        self._per_host_max = connections_per_host_max
        self._per_principal_max = connections_per_principal_max
        self._per_principal: Counter[str] = Counter()
        """How many connections each principal has, by name, whatever its credentials and roles."""
        self._principals: dict[OpenConnection, Principal] = {}
        """The client of each connection, once it is known."""
        self._per_host: Counter[str] = Counter()
        self._slow_frame_s = slow_frame_s
        self._idle_s = idle_s
        self._sweeper: asyncio.TimerHandle | None = None
        self.audit = audit or ConnectionAudit()
        self.access = access
        if access is not None:
            access.on_change(self._on_access)
            admission.enforce_shares(access.is_on)
        self.warnings = RateLimitedLogger(log, lambda: asyncio.get_running_loop().time())
        self.request_log = RequestLog(lambda: asyncio.get_running_loop().time())

    def scratch(self, chunk: int) -> bytearray:
        """Shared memory for the records of a chunk of so many bytes, valid until the next chunk: the engine copies
        them. It grows to the size of the largest frame with the first chunk that needs more than usual."""
        if chunk + _SLACK > len(self._scratch):
            self._scratch = bytearray(max(chunk, self.frame_max) + _SLACK)
        return self._scratch

    def start(self) -> None:
        """Watch for clients that are too slow, until :meth:`close`."""
        self._sweep_later()

    def close(self) -> None:
        """End every connection after sending what was written."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for connection in list(self.connections):
            connection.close()

    async def close_and_wait(self) -> None:
        """Close every connection and wait for its end, for ``CLOSE_GRACE_S`` at most; then cut it off."""
        loop = asyncio.get_running_loop()
        if self.bookie.ledger_keys is not None:
            self.bookie.ledger_keys.close()
        if self.access is not None:
            self.access.close()
        self.close()
        end = loop.time() + CLOSE_GRACE_S
        while self.connections and loop.time() < end:  # noqa: ASYNC110  # seldom, and soon over
            await asyncio.sleep(0.001)
        for connection in list(self.connections):
            connection.abort()
        while self.connections and loop.time() < end + CLOSE_GRACE_S:  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    # -- reports of connections ---------------------------------------------------------------------------

    def on_opened(self, connection: OpenConnection) -> bool:
        """Count a new connection. Returns False if too many are open."""
        if len(self.connections) >= self._connections_max or self._per_host[connection.account] >= self._per_host_max:
            self.counts.connections_refused.add()
            self.warnings.warning(
                "refused a connection from %s: too many are open, in all or from that address", connection.host
            )
            return False
        self.connections[connection] = None
        self._per_host[connection.account] += 1
        self.counts.connections.value = len(self.connections)
        return True

    def on_admitted(self, connection: OpenConnection, who: Principal) -> bool:
        """Count a connection whose client is now known. Returns False if that principal has too many: where the access
        policy is on, one principal cannot use up the connections of the others."""
        follows = self.access is not None and self.access.is_on and who != NOBODY
        if follows and self._per_principal[who.name] >= self._per_principal_max:
            self.counts.connections_refused.add()
            return False
        if who != NOBODY:
            connection.share = self.admission.share_of(who.name)
        self._principals[connection] = who
        self._per_principal[who.name] += 1
        return True

    def on_ended(self, connection: OpenConnection, error: BaseException | None) -> None:
        if connection not in self.connections:
            return
        del self.connections[connection]
        self._ended += 1
        if (who := self._principals.pop(connection, None)) is not None:
            self._per_principal[who.name] -= 1
            if not self._per_principal[who.name]:
                del self._per_principal[who.name]
        self._per_host[connection.account] -= 1
        if not self._per_host[connection.account]:
            del self._per_host[connection.account]
        self.counts.connections.value = len(self.connections)
        if isinstance(error, MalformedFrameError):
            self.counts.malformed.add()
            self.warnings.warning("closed the connection from %s: %.200s", connection.host, error)

    def _on_access(self) -> None:
        self.admission.enforce_shares(self.access is not None and self.access.is_on)
        for connection in list(self.connections):
            connection.on_access()

    # -- clients that are too slow ------------------------------------------------------------------------

    def _sweep_later(self) -> None:
        loop = asyncio.get_running_loop()
        gap = min(SWEEP_S, self._slow_frame_s, self._idle_s)
        self._sweeper = loop.call_later(min(gap, CROWDED_SWEEP_S) if self.memory.crowded else gap, self._sweep)

    def _sweep(self) -> None:
        now = asyncio.get_running_loop().time()
        limit = now - self._slow_frame_s
        crowded = now - min(CROWDED_FRAME_S, self._slow_frame_s) if self.memory.crowded else limit
        for connection in list(self.connections):
            slowness = connection.flow.slowness(crowded if connection.keeps_memory else limit, limit)
            if slowness is not None:
                self.counts.too_slow.add()
                self.warnings.warning("closed the connection from %s: %s", connection.host, _REASONS[slowness])
                connection.abort(TimeoutError(_REASONS[slowness]))
            elif not connection.is_polling and connection.flow.silence_s(now) >= self._idle_s:
                self.counts.idle.add()
                connection.close()
        self._return_freed_memory()
        self._sweep_later()

    def _return_freed_memory(self) -> None:
        """Give memory back to the system after many connections have ended: the process would keep freed memory that
        lies between memory in use."""
        memory = self.memory
        if self._ended >= ENDED_CONNECTIONS_MAX or memory.peak - memory.held >= RELEASED_BYTES_MAX:
            self._ended, memory.peak = 0, memory.held
            self._return_memory()
