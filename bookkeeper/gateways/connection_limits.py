"""How many clients may connect, and how long they may take: the machine behind the gateway's port.

ConnectionTable    the open connections, in all and of each address (X34), and TLS handshakes in progress (X7)
ConnectionWatch    what one connection's client must send next, seen from its bytes and requests
OverdueClock       since when the client has owed that, and whether that is too long (X34)
ObservedTime       the time that OverdueClock uses

A connection over a limit is closed at once, before anything is kept of it. When the limit of handshakes is reached, the
oldest handshake of the address with most of them ends in favour of an address with fewer. So no address can keep the
others out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from bookkeeper.amounts import counted
from bookkeeper.gateways.config import ConnectionLimits
from bookkeeper.ids import counted_address

BYTES_PER_S: Final = 1024
"""Bytes a second below which a body is too slow, measured over the time that its next unit may take."""


@dataclass(frozen=True, slots=True)
class AdmissionVerdict:
    """The verdict on a new connection."""

    refused: str | None = None
    """Why the connection is refused; None if it is admitted."""
    gives_way: int | None = None
    """The number of a connection whose handshake must end to make room; None if none must."""


_WELCOME: Final = AdmissionVerdict()


class ConnectionTable:
    """The open connections. The caller gives them numbers."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._hosts: dict[int, str] = {}
        self._per_host: Counter[str] = Counter()
        self._shaking: dict[int, str] = {}
        """The connections in a TLS handshake, the oldest first."""

    def __len__(self) -> int:
        return len(self._hosts)

    @property
    def handshakes(self) -> int:
        return len(self._shaking)

    def arrive(self, number: int, host: str, *, shakes: bool) -> AdmissionVerdict:
        """Judge a new connection from ``host``. With ``shakes`` it begins with a TLS handshake (X7, X34)."""
        host = counted_address(host)
        if len(self._hosts) >= self._limits.connections_max:
            return AdmissionVerdict(f"{counted(len(self._hosts), 'connection', 'is', 'are')} open, which is the limit")
        if self._per_host[host] >= self._limits.connections_per_host_max:
            return AdmissionVerdict(
                f"{counted(self._per_host[host], 'connection')} from this address open, which is the limit"
            )
        gives_way: int | None = None
        if shakes and len(self._shaking) >= self._limits.handshakes_max:
            gives_way = self._oldest_of_busiest(host)
            if gives_way is None:
                return AdmissionVerdict(f"{len(self._shaking)} TLS handshakes are in progress, which is the limit")
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


class ExpectedInput(Enum):
    """What a connection waits for."""

    NOTHING = "nothing: it is the gateway's turn, or the connection is idle, which has its own limit"
    HEAD = "the rest of a request's head"
    UNIT = "the rest of a chunk, or of a body with a given length"
    CHUNK = "the next chunk of a body"
    CHUNK_SOME_DAY = "the next chunk of a body that may pause for as long as it wants"
    END = "the client's end of a connection that the gateway has closed"


@dataclass(frozen=True, slots=True)
class Observation:
    """What one check of a connection shows."""

    owes: ExpectedInput
    unit: int = 0
    """Rises with every finished request and chunk."""
    received: int = 0
    """Bytes received so far."""
    stalls: int | None = None
    """How often the client has stopped reading replies; None while it reads them."""


class ConnectionWatch:
    """What the client of one connection must send next, seen from outside the HTTP library.

    ::

        head begun --taken up--> handled --answered--> idle --bytes--> head begun
                                    |  ^
                               waits|  |goes on
                                    v  |
                           a body's next part

    A new connection owes its first request. While the body of the latest request is not complete, received bytes belong
    to that body; all other bytes begin a head. Between the end of a head and the start of its handler, one turn of the
    loop, bytes of a body count as those of a head. That is harmless, because this measures time only, never size.
    """

    __slots__ = (
        "_asked_at",
        "_handled",
        "_head_begun",
        "_is_complete",
        "_some_day",
        "_waits",
        "bytes",
        "requests",
        "stalls",
        "units",
    )

    def __init__(self) -> None:
        self.bytes = 0
        """Bytes received, of any kind."""
        self.requests = 0
        """Requests whose handler has started."""
        self.units = 0
        """Complete chunks of bodies."""
        self.stalls = 0
        """How often the client has stopped reading replies."""
        self._head_begun = True
        self._handled = False
        self._some_day = False
        self._is_complete: Callable[[], bool] = _nothing_is_missing
        self._waits: ExpectedInput | None = None
        self._asked_at = 0

    def came(self, size: int) -> None:
        """Note received bytes."""
        self.bytes += size
        if self._is_complete():
            self._head_begun = True

    @property
    def is_in_body(self) -> bool:
        """Whether received bytes belong to the body of the latest request."""
        return not self._is_complete()

    @property
    def is_handled(self) -> bool:
        """Whether a request is being handled."""
        return self._handled

    def taken_up(self, is_complete: Callable[[], bool]) -> None:
        """Note that a request's handler starts. ``is_complete`` returns whether its body has arrived completely."""
        self.requests += 1
        self._head_begun = False
        self._handled = True
        self._some_day = False
        self._is_complete = is_complete

    def takes_any_time(self) -> None:
        """Note that the body of the request may pause between chunks for as long as it wants."""
        self._some_day = True

    def answered(self) -> None:
        """Note that the request was answered."""
        self._handled = False

    def waits(self, *, between_chunks: bool) -> None:
        """Note that the handler waits for more of the body."""
        chunk = ExpectedInput.CHUNK_SOME_DAY if self._some_day else ExpectedInput.CHUNK
        self._waits = chunk if between_chunks else ExpectedInput.UNIT
        self._asked_at = self.bytes

    def goes_on(self) -> None:
        """Note that more of the body has arrived, or that its end has."""
        self._waits = None

    def observe(self, *, is_closing: bool, is_stalled: bool) -> Observation:
        """What a check shows. ``is_closing``: the gateway has closed it. ``is_stalled``: the client does not read."""
        if is_closing:
            return Observation(ExpectedInput.END)
        return Observation(self._owes(), self.requests + self.units, self.bytes, self.stalls if is_stalled else None)

    def _owes(self) -> ExpectedInput:
        if self._handled:
            if self._waits in (ExpectedInput.CHUNK, ExpectedInput.CHUNK_SOME_DAY) and self.bytes > self._asked_at:
                return ExpectedInput.UNIT  # the next chunk has begun
            return self._waits or ExpectedInput.NOTHING
        if not self._is_complete():
            return ExpectedInput.NOTHING  # for some seconds the library receives the rest of a refused body
        return ExpectedInput.HEAD if self._head_begun else ExpectedInput.NOTHING


def _nothing_is_missing() -> bool:
    return True


class OverdueClock:
    """How long the client of one connection has owed what it must send."""

    __slots__ = ("_begun", "_limits", "_received", "_seen", "_stalled", "_stalls")

    def __init__(self, limits: ConnectionLimits, now: float) -> None:
        self._limits = limits
        self._seen: tuple[ExpectedInput, int] | None = None
        self._begun = now
        self._received = 0
        self._stalls: int | None = None
        self._stalled = now

    def check(self, observation: Observation, now: float) -> str | None:
        """Why the client is too slow; None if it is not (X34)."""
        if observation.stalls != self._stalls:
            self._stalls, self._stalled = observation.stalls, now
        elif observation.stalls is not None and now - self._stalled >= self._limits.slow_s:
            return "the client does not read its replies"
        if (seen := (observation.owes, observation.unit)) != self._seen:
            self._seen, self._begun, self._received = seen, now, observation.received
            return None
        waited = now - self._begun
        match observation.owes:
            case ExpectedInput.NOTHING | ExpectedInput.CHUNK_SOME_DAY:
                return None
            case ExpectedInput.HEAD if waited >= self._limits.slow_s:
                return "the client sends the head of a request too slowly"
            case ExpectedInput.END if waited >= self._limits.slow_s:
                return "the client does not close its side"
            case ExpectedInput.UNIT if waited >= self._limits.slow_s:
                if observation.received - self._received < BYTES_PER_S * self._limits.slow_s:
                    return "the client sends the body of a request too slowly"
                self._begun, self._received = now, observation.received
            case ExpectedInput.CHUNK if waited >= self._limits.upload_idle_s:
                return "the client sends nothing more of an upload"
        return None


class ObservedTime:
    """The observed seconds. A late check counts for at most two intervals.

    A process that stood still (a busy machine, a suspended one) has not received what came meanwhile, so it must not
    take its clients for slow when it wakes.
    """

    __slots__ = ("_looked", "interval_s", "seconds")

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        """Seconds between two checks."""
        self.seconds = 0.0
        self._looked = 0.0

    def resume(self, now: float) -> None:
        """Start again after a time without connections."""
        self._looked = now

    def check(self, now: float) -> float:
        """Make a check, and return the observed seconds."""
        self.seconds += min(now - self._looked, 2 * self.interval_s)
        self._looked = now
        return self.seconds
