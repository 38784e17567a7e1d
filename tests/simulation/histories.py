"""Legal histories by seed, and one anomaly of each kind to plant in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.simulation.watch.history import ClientEvent, EventKind, make_payload

Plant = Callable[[list[ClientEvent], Random], None]


class Story:
    """One ledger, its writer, readers and recoverers: what a correct store may answer."""

    def __init__(self, seed: int, ledger: int = 1) -> None:
        self.rng = Random(seed)
        self.ledger = ledger
        self.events: list[ClientEvent] = []
        self.stored: list[bytes] = []
        self.acked = -1
        self.lacs: dict[str, int] = {}

    def add(self, kind: EventKind, process: str, entry: int = -1, payload: bytes = b"", number: int = 0) -> None:
        self.events.append(ClientEvent(float(len(self.events)), kind, process, self.ledger, entry, payload, number))

    def tell(self) -> list[ClientEvent]:
        """A whole life: appends, acks, reads, an end, two scans, perhaps a deletion."""
        rng = self.rng
        for _ in range(rng.randint(6, 30)):
            rng.choice([self.append, self.append, self.ack, self.read])()
        self.append()
        while self.acked < 2:
            self.append()
            self.ack()
        self.read()
        if rng.random() < 0.5:
            self.add(EventKind.FAILED, "writer")
        end = rng.randint(self.acked, len(self.stored) - 1)
        length = sum(map(len, self.stored[: end + 1]))
        for process in ("recoverer", "reader"):
            self.add(EventKind.LAC, process, end, number=-2)
            self.add(EventKind.CLOSED, process, end, number=length)
            for entry in range(end + 1):
                self.add(EventKind.READ, process, entry, self.stored[entry])
            self.add(EventKind.SCANNED, process, end)
        self.add(EventKind.DELETED, "owner")
        return self.events

    def append(self) -> None:
        number = len(self.stored)
        payload = make_payload(self.ledger, number, self.rng, self.rng.randint(0, 9))
        self.stored.append(payload)
        self.add(EventKind.INVOKE, "writer", payload=payload, number=number)

    def ack(self) -> None:
        if self.acked + 1 < len(self.stored):
            self.acked += 1
            self.add(EventKind.ACK, "writer", self.acked, self.stored[self.acked])

    def read(self) -> None:
        process = self.rng.choice(["tail", "other"])
        lac = self.lacs[process] = self.rng.randint(self.lacs.get(process, -1), self.acked)
        self.add(EventKind.LAC, process, lac, number=self.acked)
        if lac >= 0:
            entry = self.rng.randint(0, lac)
            self.add(EventKind.READ, process, entry, self.stored[entry])


def _index(events: list[ClientEvent], kind: EventKind, which: int = 0, process: str | None = None) -> int:
    found = [i for i, e in enumerate(events) if e.kind is kind and process in (None, e.process)]
    return found[which]


def _change(events: list[ClientEvent], at: int, **changes: object) -> None:
    events[at] = replace(events[at], **changes)  # type: ignore[arg-type]


def _lost_ack(events: list[ClientEvent], rng: Random) -> None:
    for process in ("recoverer", "reader"):
        del events[_index(events, EventKind.READ, process=process)]


def _phantom(events: list[ClientEvent], rng: Random) -> None:
    _change(events, _index(events, EventKind.READ), payload=make_payload(9, 9, rng, 9))


def _altered(events: list[ClientEvent], rng: Random) -> None:
    at = _index(events, EventKind.READ)
    _change(events, at, payload=b"?" + events[at].payload[1:])


def _two_payloads(events: list[ClientEvent], rng: Random) -> None:
    at = _index(events, EventKind.READ, 0, "reader")
    _change(events, at, payload=events[at + 1].payload)


def _two_owners(events: list[ClientEvent], rng: Random) -> None:
    at = _index(events, EventKind.ACK)
    events.insert(at + 1, replace(events[at], process="usurper"))


def _order(events: list[ClientEvent], rng: Random) -> None:
    one, other = _index(events, EventKind.INVOKE, 0), _index(events, EventKind.INVOKE, 1)
    _change(events, one, number=1)
    _change(events, other, number=0)


def _gap(events: list[ClientEvent], rng: Random) -> None:
    del events[_index(events, EventKind.READ, 1, "reader")]


def _lac_back(events: list[ClientEvent], rng: Random) -> None:
    at = _index(events, EventKind.LAC, 0, "recoverer")
    events.insert(at + 1, replace(events[at], entry=0))


def _lac_ahead(events: list[ClientEvent], rng: Random) -> None:
    at = _index(events, EventKind.LAC, 0)
    _change(events, at, entry=events[at].number + 1)


def _past_end(events: list[ClientEvent], rng: Random) -> None:
    at = _index(events, EventKind.SCANNED)
    events.insert(at, replace(events[at], kind=EventKind.READ, entry=events[at].entry + 1, payload=b"x"))


def _ack_after_failure(events: list[ClientEvent], rng: Random) -> None:
    at = _index(events, EventKind.ACK)
    events.insert(at, replace(events[at], kind=EventKind.FAILED))


def _ack_after_close(events: list[ClientEvent], rng: Random) -> None:
    at = _index(events, EventKind.SCANNED)
    end, payload = events[at].entry, make_payload(1, 10_000, rng, 1)
    invoke = replace(events[at], kind=EventKind.INVOKE, process="writer", payload=payload, number=10_000)
    events[at:at] = [invoke, replace(invoke, kind=EventKind.ACK, entry=end + 1)]


def _end_changed(events: list[ClientEvent], rng: Random) -> None:
    at = _index(events, EventKind.CLOSED, 1)
    _change(events, at, entry=events[at].entry - 1)


def _end_before_ack(events: list[ClientEvent], rng: Random) -> None:
    last = events[_index(events, EventKind.ACK, -1)].entry
    for at in (_index(events, EventKind.CLOSED, 0), _index(events, EventKind.CLOSED, 1)):
        _change(events, at, entry=last - 1)


def _end_before_read(events: list[ClientEvent], rng: Random) -> None:
    at = _index(events, EventKind.INVOKE)
    far = replace(events[at], kind=EventKind.READ, process="tail", entry=10_000)
    events.insert(at + 1, far)


def _non_repeatable(events: list[ClientEvent], rng: Random) -> None:
    at = _index(events, EventKind.READ, 1, "reader")
    events.insert(at + 1, replace(events[at], payload=events[at - 1].payload))


def _wrong_negative(events: list[ClientEvent], rng: Random) -> None:
    _change(events, _index(events, EventKind.READ), kind=EventKind.MISSING)


def _wrong_length(events: list[ClientEvent], rng: Random) -> None:
    for at in (_index(events, EventKind.CLOSED, 0), _index(events, EventKind.CLOSED, 1)):
        _change(events, at, number=events[at].number + 1)


def _resurrected(events: list[ClientEvent], rng: Random) -> None:
    events.append(events[_index(events, EventKind.READ)])


PLANTS: dict[str, Plant] = {
    "lost ack": _lost_ack,
    "phantom": _phantom,
    "altered bytes": _altered,
    "two payloads for one id": _two_payloads,
    "two owners acked for one id": _two_owners,
    "order inversion": _order,
    "gap below LAC": _gap,
    "LAC went back": _lac_back,
    "LAC ahead of the writer": _lac_ahead,
    "read past end": _past_end,
    "ack after failure": _ack_after_failure,
    "ack after close": _ack_after_close,
    "closed end changed": _end_changed,
    "end before an acked entry": _end_before_ack,
    "end before a read entry": _end_before_read,
    "non-repeatable read": _non_repeatable,
    "wrong negative": _wrong_negative,
    "wrong length": _wrong_length,
    "resurrected after delete": _resurrected,
}
"""What is planted -> how."""
