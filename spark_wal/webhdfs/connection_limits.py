"""How many may come, and how long they may take: the machine behind the gateway's port. No clock, no sockets.

Crowd   who is there: connections in all and of each address (X34), TLS handshakes under way (X7)
Pace    one connection's: since when it owes something, and whether that is too long (X34)

Whoever is not let in is hung up on at once, before anything is kept of them. Where the handshakes are full, the oldest
of the address that has most of them gives way to an address that has fewer: nobody keeps all others out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import Final

from bookkeeper.errors import require
from bookkeeper.net.tls import HANDSHAKE_S

BYTES_PER_S: Final = 1024
"""A body that brings fewer than these, over the time that its next unit may take, is too slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """What may be set."""

    connections_max: int = 10_000
    """Connections at a time; one more is closed."""
    connections_per_host_max: int = 1_000
    """Of them, those from one address."""
    handshakes_max: int = 256
    """TLS handshakes at a time."""
    handshake_s: float = HANDSHAKE_S
    """Seconds one may take."""
    slow_s: float = 30.0
    """Seconds for a request's head, for a chunk of its body that has begun, and for replies to be taken."""
    upload_idle_s: float = 3600.0
    """Seconds for which nothing may come between two chunks of a body: Spark's state stores keep an upload open for a
    whole task."""

    def __post_init__(self) -> None:
        require(self.connections_max > 0, "at least one connection at a time")
        require(0 < self.connections_per_host_max <= self.connections_max, "0 < connections of a host <= all of them")
        require(self.handshakes_max > 0, "at least one TLS handshake at a time")
        require(self.handshake_s > 0, "the time of a TLS handshake is positive")
        require(self.slow_s > 0, "the time that slow clients have is positive")
        require(self.upload_idle_s >= self.slow_s, "an upload may be idle for as long as a slow client has, or longer")


@dataclass(frozen=True, slots=True)
class Verdict:
    """About one that has come."""

    refused: str | None = None
    """Why it is not let in; None: it is."""
    gives_way: int | None = None
    """The number of a connection in its handshake that is to be closed for it."""


_WELCOME: Final = Verdict()


class Crowd:
    """Who is there. Connections have numbers, given by the caller."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._hosts: dict[int, str] = {}
        self._per_host: Counter[str] = Counter()
        self._shaking: dict[int, str] = {}
        """Those in their handshake, the oldest first."""

    def __len__(self) -> int:
        return len(self._hosts)

    @property
    def handshakes(self) -> int:
        return len(self._shaking)

    def arrive(self, number: int, host: str, *, shakes: bool) -> Verdict:
        """One has come from ``host``; with ``shakes`` a handshake comes first (X7, X34)."""
        if len(self._hosts) >= self._limits.connections_max:
            return Verdict(f"there are {len(self._hosts)} connections (X34)")
        if self._per_host[host] >= self._limits.connections_per_host_max:
            return Verdict(f"there are {self._per_host[host]} connections from there (X34)")
        gives_way: int | None = None
        if shakes and len(self._shaking) >= self._limits.handshakes_max:
            gives_way = self._oldest_of_busiest(host)
            if gives_way is None:
                return Verdict(f"there are {len(self._shaking)} TLS handshakes at a time (X7)")
            self.leave(gives_way)
        self._hosts[number] = host
        self._per_host[host] += 1
        if shakes:
            self._shaking[number] = host
        return _WELCOME if gives_way is None else Verdict(gives_way=gives_way)

    def shaken(self, number: int) -> None:
        """Its handshake is over."""
        self._shaking.pop(number, None)

    def leave(self, number: int) -> None:
        """It is gone. Idempotent."""
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


class Owes(Enum):
    """What a connection waits for."""

    NOTHING = "it is our turn, or nobody's: an idle connection has an end of its own"
    HEAD = "the rest of a request's head"
    UNIT = "the rest of a chunk, or of a body whose length was said"
    CHUNK = "the next chunk of a body"
    END = "that the other side lets go of a connection that we have closed"


@dataclass(frozen=True, slots=True)
class Sight:
    """A connection as it is seen at one look."""

    owes: Owes
    unit: int = 0
    """Goes up with every unit that was finished: requests, chunks."""
    received: int = 0
    """Bytes of the body so far."""
    stalls: int | None = None
    """How often it has stopped taking replies, if it does not take them now."""


class Pace:
    """Since when one connection owes what it owes."""

    __slots__ = ("_begun", "_limits", "_received", "_seen", "_stalled", "_stalls")

    def __init__(self, limits: ConnectionLimits, now: float) -> None:
        self._limits = limits
        self._seen: tuple[Owes, int] | None = None
        self._begun = now
        self._received = 0
        self._stalls: int | None = None
        self._stalled = now

    def look(self, sight: Sight, now: float) -> str | None:
        """What takes too long, if anything does (X34)."""
        if sight.stalls != self._stalls:
            self._stalls, self._stalled = sight.stalls, now
        elif sight.stalls is not None and now - self._stalled >= self._limits.slow_s:
            return "replies are not taken"
        if (seen := (sight.owes, sight.unit)) != self._seen:
            self._seen, self._begun, self._received = seen, now, sight.received
            return None
        waited = now - self._begun
        match sight.owes:
            case Owes.NOTHING:
                return None
            case Owes.HEAD if waited >= self._limits.slow_s:
                return "the head of a request takes too long"
            case Owes.END if waited >= self._limits.slow_s:
                return "it does not let go"
            case Owes.UNIT if waited >= self._limits.slow_s:
                if sight.received - self._received < BYTES_PER_S * self._limits.slow_s:
                    return "a body takes too long"
                self._begun, self._received = now, sight.received
            case Owes.CHUNK if waited >= self._limits.upload_idle_s:
                return "nothing more of an upload comes"
        return None
