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

CROWD: Final = 500
"""Freed memory goes back to the system after this many connections have ended."""

CROWD_BYTES: Final = 16 * 1024 * 1024
"""Freed memory goes back to the system after unfinished frames have released this many bytes."""

GOODBYE_S: Final = 1.0
"""Seconds that a stopping bookie waits for connections to end properly; then it cuts them off."""

_BESIDES: Final = 4096
"""Bytes beyond those of a chunk, so that its records have room in any case."""

_WHY: Final = {
    Slowness.FRAME: "it did not send the rest of a frame in time",
    Slowness.REPLIES: "it did not read its replies in time",
}


class OpenConnection(Protocol):
    """What is asked of a connection, whatever it says to its client."""

    host: str
    """The peer's address, for log lines."""
    account: str
    """The address as it counts (:func:`~bookkeeper.ids.counted_address`)."""
    flow: FlowControl
    share: Share | None
    """What its client has in progress."""

    def on_access(self) -> None:
        """What its client may do has changed."""

    @property
    def keeps_memory(self) -> bool:
        """Does it keep more of an unfinished frame than every connection may?"""

    @property
    def waits(self) -> bool:
        """Does its client wait for news of a ledger, in a long poll?"""

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
        give_back: Callable[[], object] = lambda: None,
        audit: ConnectionAudit | None = None,
        access: LedgerPermissions | None = None,
    ) -> None:
        """``access`` knows what clients may do; None: everything. ``give_back`` returns freed memory to the system. It
        is called after many connections have ended.

        After ``idle_s`` seconds without a byte from its client, and without a request that waits, a connection is
        closed: there is no client any more that needs it, or it makes another one."""
        self.bookie = bookie
        self.admission = admission
        self.counts = ServerMetrics(metrics)
        self.frame_max = frame_max
        self.connections: dict[OpenConnection, None] = {}
        self._scratch = bytearray(RECEIVE_BUFFER + _BESIDES)
        self.memory = ReceiveMemory(receive_bytes)
        self._give_back = give_back
        self._ended = 0
        """Connections that have ended since memory was last given back."""
        self._connections_max = connections_max
        self._per_host_max = connections_per_host_max
        self._per_principal_max = connections_per_principal_max
        self._per_principal: Counter[str] = Counter()
        """By name: one with several certificates or tokens, of other roles, is one."""
        self._principals: dict[OpenConnection, Principal] = {}
        """Whose each connection is, once its client is known."""
        self._per_host: Counter[str] = Counter()
        self._slow_frame_s = slow_frame_s
        self._idle_s = idle_s
        self._sweeper: asyncio.TimerHandle | None = None
        self.audit = audit or ConnectionAudit()
        self.access = access
        if access is not None:
            access.on_change(self._on_access)
            admission.set_shares(access.is_on)
        self.complaints = RateLimitedLogger(log, lambda: asyncio.get_running_loop().time())
        self.requests = RequestLog(lambda: asyncio.get_running_loop().time())

    def scratch(self, chunk: int) -> bytearray:
        """Where the records of a chunk of so many bytes are built, which take less; the engine copies them before
        the next chunk comes. Memory for the largest frame is taken with the first chunk that needs more than usual."""
        if chunk + _BESIDES > len(self._scratch):
            self._scratch = bytearray(max(chunk, self.frame_max) + _BESIDES)
        return self._scratch

    def begin(self) -> None:
        """Watch for clients that are too slow, until :meth:`close`."""
        self._sweep_later()

    def close(self) -> None:
        """End every connection after sending what was written."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for connection in list(self.connections):
            connection.close()

    async def hang_up(self) -> None:
        """Close every connection and wait for its end. Encrypted ones get time to close TLS, then they are cut off."""
        loop = asyncio.get_running_loop()
        if self.bookie.ledger_keys is not None:
            self.bookie.ledger_keys.close()
        if self.access is not None:
            self.access.close()
        self.close()
        end = loop.time() + GOODBYE_S
        while self.connections and loop.time() < end:  # noqa: ASYNC110  # seldom, and soon over
            await asyncio.sleep(0.001)
        for connection in list(self.connections):
            connection.abort()
        while self.connections and loop.time() < end + GOODBYE_S:  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    # -- what connections tell ----------------------------------------------------------------------------

    def opened(self, connection: OpenConnection) -> bool:
        """Count a new connection. Returns False if too many are open."""
        if len(self.connections) >= self._connections_max or self._per_host[connection.account] >= self._per_host_max:
            self.counts.connections_refused.add()
            self.complaints.warning(
                "refused a connection from %s: too many are open, in all or from that address", connection.host
            )
            return False
        self.connections[connection] = None
        self._per_host[connection.account] += 1
        self.counts.connections.value = len(self.connections)
        return True

    def admitted(self, connection: OpenConnection, who: Principal) -> bool:
        """Count a connection whose client is known now. Returns False if he has too many: where the access policy is
        followed, one principal does not take the connections of the others."""
        follows = self.access is not None and self.access.is_on and who != NOBODY
        if follows and self._per_principal[who.name] >= self._per_principal_max:
            self.counts.connections_refused.add()
            return False
        if who != NOBODY:
            connection.share = self.admission.share_of(who.name)
        self._principals[connection] = who
        self._per_principal[who.name] += 1
        return True

    def ended(self, connection: OpenConnection, error: BaseException | None) -> None:
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
            self.complaints.warning("closed the connection from %s: %.200s", connection.host, error)

    def _on_access(self) -> None:
        self.admission.set_shares(self.access is not None and self.access.is_on)
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
                self.complaints.warning("closed the connection from %s: %s", connection.host, _WHY[slowness])
                connection.abort(TimeoutError(_WHY[slowness]))
            elif not connection.waits and connection.flow.silence_s(now) >= self._idle_s:
                self.counts.idle.add()
                connection.close()
        self._tidy_memory()
        self._sweep_later()

    def _tidy_memory(self) -> None:
        """Give memory back to the system after many connections have ended.

        Otherwise the process keeps freed memory that lies between memory in use. A few connections are not worth it.
        """
        memory = self.memory
        if self._ended >= CROWD or memory.peak - memory.held >= CROWD_BYTES:
            self._ended, memory.peak = 0, memory.held
            self._give_back()
