"""What clients lived through, and whether a correct store could have given it to them.

Entry ids are explicit, so checking is a few passes over the events. An append whose outcome is unknown may be
present or absent, but consistently.
"""

from __future__ import annotations

import itertools
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Final

_CRC: Final = 4


class EventKind(Enum):
    """Kinds of events."""

    INVOKE = "invoke"
    """A writer appended ``payload``; ``number`` counts its appends to this ledger."""
    ACK = "ack"
    """The append of ``payload`` was acknowledged as ``entry``."""
    FAILED = "failed"
    """An append of ``process`` failed, and with it all later ones (W6); unknown, not absent (W7)."""
    LAC = "lac"
    """``process`` may read up to ``entry``; ``number``: what the writer had confirmed by then (-2: does not matter)."""
    READ = "read"
    """``process`` read ``payload`` as ``entry``, confirmed."""
    MISSING = "missing"
    """``process`` was told that a confirmed ``entry`` does not exist."""
    CLOSED = "closed"
    """``process`` saw the ledger closed at ``entry``, with ``number`` bytes."""
    SCANNED = "scanned"
    """``process`` has read the whole closed ledger, every entry once."""
    DELETED = "deleted"
    """The ledger is gone, for ever."""


@dataclass(frozen=True, slots=True)
class ClientEvent:
    """Something that a client saw. ``process`` names one handle of one life of one client."""

    time: float
    kind: EventKind
    process: str
    ledger: int
    entry: int = -1
    payload: bytes = b""
    number: int = 0


@dataclass(frozen=True, slots=True)
class Anomaly:
    """What no correct store does, with the events that show it."""

    what: str
    ledger: int
    witness: tuple[ClientEvent, ...]

    def __str__(self) -> str:
        lines = [
            f"    {e.time:.6f} {e.process} {e.kind.value} {e.entry} {e.number} {e.payload[:32]!r}" for e in self.witness
        ]
        return "\n".join([f"{self.what}, ledger {self.ledger}", *lines])


def make_payload(ledger: int, number: int, rng: Random, size: int) -> bytes:
    """Bytes that say what they are, and whether they are whole."""
    body = b"%d/%d/" % (ledger, number) + rng.randbytes(size)
    return body + zlib.crc32(body).to_bytes(_CRC, "big")


def is_whole(payload: bytes) -> bool:
    """Did :func:`make_payload` make exactly these bytes?"""
    return len(payload) > _CRC and zlib.crc32(payload[:-_CRC]).to_bytes(_CRC, "big") == payload[-_CRC:]


ANOMALIES: Final = (
    "lost ack",
    "phantom",
    "altered bytes",
    "two payloads for one id",
    "two owners acked for one id",
    "order inversion",
    "gap below LAC",
    "LAC went back",
    "LAC ahead of the writer",
    "read past end",
    "ack after failure",
    "ack after close",
    "closed end changed",
    "end before an acked entry",
    "end before a read entry",
    "non-repeatable read",
    "wrong negative",
    "wrong length",
    "resurrected after delete",
)
"""Everything :func:`check_history` can find."""


class History:
    """Events in the order in which they happened."""

    def __init__(self, now: Callable[[], float] = lambda: 0.0) -> None:
        self.events: list[ClientEvent] = []
        self.meanwhile: list[ClientEvent] = []
        """What is seen while the metadata are not what they were (sim_rollback.py): judged apart."""
        self.resting = False
        self._now = now

    def add(
        self, kind: EventKind, process: str, ledger: int, *, entry: int = -1, payload: bytes = b"", number: int = 0
    ) -> None:
        """Record one event, now."""
        events = self.meanwhile if self.resting else self.events
        events.append(ClientEvent(self._now(), kind, process, ledger, entry, payload, number))

    def trust(self, ledgers: Collection[int]) -> None:
        """What was promised of these meanwhile holds: their metadata are what they were."""
        promises = (EventKind.INVOKE, EventKind.ACK, EventKind.FAILED)
        self.events += [event for event in self.meanwhile if event.ledger in ledgers and event.kind in promises]
        self.resting = False


def check_history(events: Iterable[ClientEvent]) -> list[Anomaly]:
    """Everything that is wrong, by ledger; [] for a legal history."""
    by_ledger: dict[int, list[ClientEvent]] = defaultdict(list)
    for event in events:
        by_ledger[event.ledger].append(event)
    return [anomaly for ledger in sorted(by_ledger) for anomaly in _Ledger(ledger, by_ledger[ledger]).check()]


@dataclass(slots=True)
class _Ledger:
    """One ledger's events, and what is known of each id."""

    ledger: int
    events: Sequence[ClientEvent]
    found: list[Anomaly] = field(default_factory=list)

    def check(self) -> list[Anomaly]:
        self._acks()
        self._bytes()
        self._last_add_confirmed()
        self._end()
        self._scans()
        return self.found

    def _of(self, *kinds: EventKind) -> list[ClientEvent]:
        return [event for event in self.events if event.kind in kinds]

    def _anomaly(self, what: str, *witness: ClientEvent) -> None:
        assert what in ANOMALIES, what
        if not any(known.what == what for known in self.found):  # the first of a kind says it
            self.found.append(Anomaly(what, self.ledger, witness))

    def _acks(self) -> None:
        """Ids follow the order of the appends; nothing is acknowledged after the writer was told of its end."""
        number_of = {event.payload: event for event in self._of(EventKind.INVOKE)}
        acks = self._of(EventKind.ACK)
        by_id: dict[int, ClientEvent] = {}
        for ack in acks:
            other = by_id.setdefault(ack.entry, ack)
            if other.payload != ack.payload:
                self._anomaly("two payloads for one id", other, ack)
            if other.process != ack.process:
                self._anomaly("two owners acked for one id", other, ack)
        known = [(number_of[a.payload].number, a) for a in acks if a.payload in number_of]
        ordered = sorted(known, key=lambda pair: pair[1].entry)
        for (before, one), (after, other) in itertools.pairwise(ordered):
            if after < before:
                self._anomaly("order inversion", one, other)
        ended: dict[str, ClientEvent] = {}
        for event in self.events:
            if event.kind is EventKind.FAILED:
                ended.setdefault(event.process, event)
            elif event.kind is EventKind.ACK and event.process in ended:
                self._anomaly("ack after failure", ended[event.process], event)
            elif event.kind is EventKind.CLOSED or event.kind is EventKind.DELETED:
                ended.setdefault("", event)
            elif event.kind is EventKind.INVOKE and "" in ended:
                ended.setdefault(f"late {event.payload!r}", event)
            if event.kind is EventKind.ACK and f"late {event.payload!r}" in ended:
                self._anomaly("ack after close", ended[""], event)

    def _bytes(self) -> None:
        """What is read was appended, to this ledger, and is the same for everyone, for ever."""
        sent = {event.payload for event in self._of(EventKind.INVOKE)}
        acked = {event.entry: event for event in self._of(EventKind.ACK)}
        seen: dict[int, ClientEvent] = {}
        own: dict[tuple[str, int], ClientEvent] = {}
        gone: ClientEvent | None = None
        for event in self._of(EventKind.READ, EventKind.MISSING, EventKind.DELETED):
            if event.kind is EventKind.DELETED:
                gone = event
                continue
            if event.kind is EventKind.MISSING:
                if gone is None:
                    self._anomaly("wrong negative", event)
                continue
            if gone is not None:
                self._anomaly("resurrected after delete", gone, event)
            if event.payload not in sent:
                self._anomaly("phantom" if is_whole(event.payload) else "altered bytes", event)
            mine = own.setdefault((event.process, event.entry), event)
            if mine.payload != event.payload:
                self._anomaly("non-repeatable read", mine, event)
            for other in (seen.setdefault(event.entry, event), acked.get(event.entry, event)):
                if other.payload != event.payload:
                    self._anomaly("two payloads for one id", other, event)

    def _last_add_confirmed(self) -> None:
        lacs: dict[str, ClientEvent] = {}
        for event in self._of(EventKind.LAC):
            before = lacs.get(event.process, event)
            if event.entry < before.entry:
                self._anomaly("LAC went back", before, event)
            lacs[event.process] = event
            if event.number != -2 and event.entry > event.number:
                self._anomaly("LAC ahead of the writer", event)

    def _end(self) -> None:
        """A closed ledger's end never changes, and lies behind everything acknowledged or read."""
        closed = self._of(EventKind.CLOSED)
        if not closed:
            return
        end = closed[0]
        for other in closed:
            if (other.entry, other.number) != (end.entry, end.number):
                self._anomaly("closed end changed", end, other)
        for event in self._of(EventKind.ACK, EventKind.READ, EventKind.LAC):
            if event.entry > end.entry:
                if event.kind is EventKind.ACK:
                    self._anomaly("end before an acked entry", event, end)
                elif event.time > end.time and event.kind is EventKind.READ:
                    self._anomaly("read past end", end, event)
                else:
                    self._anomaly("end before a read entry", event, end)

    def _scans(self) -> None:
        """A whole ledger has no holes, every acknowledged entry, and its length."""
        closed = self._of(EventKind.CLOSED)
        for scan in self._of(EventKind.SCANNED):
            read = {e.entry: e for e in self.events if e.kind is EventKind.READ and e.process == scan.process}
            for ack in self._of(EventKind.ACK):
                if ack.entry not in read:
                    self._anomaly("lost ack", ack, scan)
            if sorted(read) != list(range(scan.entry + 1)):
                self._anomaly("gap below LAC", scan)
            if closed and sum(len(e.payload) for e in read.values()) != closed[0].number:
                self._anomaly("wrong length", closed[0], scan)
