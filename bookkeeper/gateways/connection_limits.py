"""How many may connect, and how long they may take: the machine behind the gateway's port. No clock, no sockets.

ConnectionTable    who is connected: connections in all and of each address (X34), TLS handshakes under way (X7)
ConnectionWatch    what one connection owes, told from the bytes that came and the requests that were taken up
OverdueClock       since when one connection owes that, and whether that is too long (X34)
ObservedTime       the time that OverdueClock goes by

A connection over a limit is closed at once, before anything is kept of it. When the limit of handshakes is reached, the
oldest handshake of the address with most of them makes room for an address with fewer: nobody keeps all others out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from bookkeeper.errors import require_below, require_range
from bookkeeper.net.tls import HANDSHAKE_S

BYTES_PER_S: Final = 1024
"""A body slower than this, measured over the time that its next unit may take, is too slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """The limits that an operator may set."""

    connections_max: int = 10_000
    """Connections at a time; one more is closed."""
    connections_per_host_max: int = 1_000
    """Connections at a time from one address."""
    handshakes_max: int = 256
    """TLS handshakes at a time."""
    handshake_s: float = HANDSHAKE_S
    """Seconds that one TLS handshake may take."""
    slow_s: float = 30.0
    """Seconds for the head of a request, for a chunk of its body that has begun, and for the client to read replies."""
    upload_idle_s: float = 3600.0
    """Seconds that may pass between two chunks of a body: Spark's state stores keep an upload open for a whole task."""

    def __post_init__(self) -> None:
        require_range(self, "connections_max", "connections_per_host_max", "handshakes_max", above=0)
        require_below(self, "connections_per_host_max", "connections_max", or_equal=True)
        require_range(self, "handshake_s", "slow_s", above=0)
        require_below(self, "slow_s", "upload_idle_s", or_equal=True)


@dataclass(frozen=True, slots=True)
class AdmissionVerdict:
    """The verdict on a new connection."""

    refused: str | None = None
    """Why the connection is refused. None: it is admitted."""
    gives_way: int | None = None
    """The number of a connection that must end its handshake to make room."""


_WELCOME: Final = AdmissionVerdict()


class ConnectionTable:
    """The connections there are. The caller gives them numbers."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._hosts: dict[int, str] = {}
        self._per_host: Counter[str] = Counter()
        self._shaking: dict[int, str] = {}
        """The connections in their handshake, the oldest first."""

    def __len__(self) -> int:
        return len(self._hosts)

    @property
    def handshakes(self) -> int:
        return len(self._shaking)

    def arrive(self, number: int, host: str, *, shakes: bool) -> AdmissionVerdict:
        """Judge a new connection from ``host``; with ``shakes`` a handshake comes first (X7, X34)."""
        if len(self._hosts) >= self._limits.connections_max:
            return AdmissionVerdict(f"all {len(self._hosts)} connections that are allowed are in use")
        if self._per_host[host] >= self._limits.connections_per_host_max:
            return AdmissionVerdict(f"all {self._per_host[host]} connections that one address is allowed are in use")
        gives_way: int | None = None
        if shakes and len(self._shaking) >= self._limits.handshakes_max:
            gives_way = self._oldest_of_busiest(host)
            if gives_way is None:
                return AdmissionVerdict(
                    f"all {len(self._shaking)} TLS handshakes that are allowed at a time are under way"
                )
            self.leave(gives_way)
        self._hosts[number] = host
        self._per_host[host] += 1
        if shakes:
            self._shaking[number] = host
        return _WELCOME if gives_way is None else AdmissionVerdict(gives_way=gives_way)

    def shaken(self, number: int) -> None:
        """Note that the handshake of a connection is over."""
        self._shaking.pop(number, None)

    def leave(self, number: int) -> None:
        """Note that a connection is gone. Idempotent."""
        self._shaking.pop(number, None)
        host = self._hosts.pop(number, None)
        if host is not None:
            self._per_host[host] -= 1
            if not self._per_host[host]:
                del self._per_host[host]

    def _oldest_of_busiest(self, host: str) -> int | None:
        counts = Counter(self._shaking.values())
        [(busiest, most)] = counts.most_common(1)
        if counts[host] + 1 >= most:
            return None
        return next(number for number, of in self._shaking.items() if of == busiest)


class Expected(Enum):
    """What a connection waits for."""

    NOTHING = "nothing: the gateway's turn, or the connection is idle, which has its own limit"
    HEAD = "the rest of a request's head"
    UNIT = "the rest of a chunk, or of a body whose length was said"
    CHUNK = "the next chunk of a body"
    END = "that the client closes its side of a connection that the gateway has closed"


@dataclass(frozen=True, slots=True)
class Observation:
    """What one look at a connection shows."""

    owes: Expected
    unit: int = 0
    """Rises with every unit that was finished: requests, chunks."""
    received: int = 0
    """Bytes that came so far."""
    stalls: int | None = None
    """How often the client has stopped reading replies; None while it reads them."""


class ConnectionWatch:
    """What one connection owes, seen from outside the HTTP library.

    ::

        head begun --taken up--> handled --answered--> idle --bytes--> head begun
                                    |  ^
                               waits|  |goes on
                                    v  |
                           a body's next part

    A new connection owes its first request. Bytes that come while the body of the request that was taken up last is
    not complete are that body's; all others begin a head. Between the last byte of a head and the moment in which its
    request is taken up more may come: for so long, which is a turn of the loop, a body looks like a head. Only time is
    measured by it, never size.
    """

    __slots__ = (
        "_asked_at",
        "_handled",
        "_head_begun",
        "_is_complete",
        "_waits",
        "bytes",
        "requests",
        "stalls",
        "units",
    )

    def __init__(self) -> None:
        self.bytes = 0
        """Bytes that came, of whatever kind."""
        self.requests = 0
        """Requests that were taken up."""
        self.units = 0
        """Chunks of bodies that have come whole."""
        self.stalls = 0
        """How often the client did not read replies fast enough."""
        self._head_begun = True
        self._handled = False
        self._is_complete: Callable[[], bool] = _nothing_is_missing
        self._waits: Expected | None = None
        self._asked_at = 0

    def came(self, size: int) -> None:
        """Note bytes that came and that nobody has looked at yet."""
        self.bytes += size
        if self._is_complete():
            self._head_begun = True

    def taken_up(self, is_complete: Callable[[], bool]) -> None:
        """Note that a request, whose head has come, is handled; ``is_complete`` tells whether its body has come too."""
        self.requests += 1
        self._head_begun = False
        self._handled = True
        self._is_complete = is_complete

    def answered(self) -> None:
        """Note that the request was answered: its handler has nothing more to do with it."""
        self._handled = False

    def waits(self, *, between_chunks: bool) -> None:
        """Note that the handler has taken all that came of the body, and waits."""
        self._waits = Expected.CHUNK if between_chunks else Expected.UNIT
        self._asked_at = self.bytes

    def goes_on(self) -> None:
        """Note that more of the body is there, or that nothing more will come."""
        self._waits = None

    def observe(self, *, is_closing: bool, is_stalled: bool) -> Observation:
        """What one look shows. ``is_closing``: the gateway closed it; ``is_stalled``: the client reads no replies."""
        if is_closing:
            return Observation(Expected.END)
        return Observation(self._owes(), self.requests + self.units, self.bytes, self.stalls if is_stalled else None)

    def _owes(self) -> Expected:
        if self._handled:
            if self._waits is Expected.CHUNK and self.bytes > self._asked_at:
                return Expected.UNIT  # of the next chunk there is something
            return self._waits or Expected.NOTHING
        if not self._is_complete():
            return Expected.NOTHING  # the library receives the rest of what was refused, for some seconds
        return Expected.HEAD if self._head_begun else Expected.NOTHING


def _nothing_is_missing() -> bool:
    return True


class OverdueClock:
    """How long one connection has owed what it owes."""

    __slots__ = ("_begun", "_limits", "_received", "_seen", "_stalled", "_stalls")

    def __init__(self, limits: ConnectionLimits, now: float) -> None:
        self._limits = limits
        self._seen: tuple[Expected, int] | None = None
        self._begun = now
        self._received = 0
        self._stalls: int | None = None
        self._stalled = now

    def look(self, observation: Observation, now: float) -> str | None:
        """What takes too long; None if nothing does (X34)."""
        if observation.stalls != self._stalls:
            self._stalls, self._stalled = observation.stalls, now
        elif observation.stalls is not None and now - self._stalled >= self._limits.slow_s:
            return "the client does not read its replies"
        if (seen := (observation.owes, observation.unit)) != self._seen:
            self._seen, self._begun, self._received = seen, now, observation.received
            return None
        waited = now - self._begun
        match observation.owes:
            case Expected.NOTHING:
                return None
            case Expected.HEAD if waited >= self._limits.slow_s:
                return "the head of a request takes too long"
            case Expected.END if waited >= self._limits.slow_s:
                return "the client does not close its side"
            case Expected.UNIT if waited >= self._limits.slow_s:
                if observation.received - self._received < BYTES_PER_S * self._limits.slow_s:
                    return "the body of a request comes too slowly"
                self._begun, self._received = now, observation.received
            case Expected.CHUNK if waited >= self._limits.upload_idle_s:
                return "nothing more of an upload comes"
        return None


class ObservedTime:
    """The seconds that were observed. A look that comes late counts for no more than two intervals.

    A process that stood still (a busy machine, one that was suspended) has not taken what came meanwhile: it must not
    tell its clients, when it wakes, that they were slow.
    """

    __slots__ = ("_looked", "interval_s", "seconds")

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        """Seconds between two looks."""
        self.seconds = 0.0
        self._looked = 0.0

    def resume(self, now: float) -> None:
        """Begin to look again: until now there was no connection to look at."""
        self._looked = now

    def look(self, now: float) -> float:
        """Look, and return the observed seconds."""
        self.seconds += min(now - self._looked, 2 * self.interval_s)
        self._looked = now
        return self.seconds
