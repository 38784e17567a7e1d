"""Compares what users of a stream were told with what is in it (pure).

Records of idempotent producers are ``producer:sequence``; other records have any text that no other record has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from bookkeeper.outcome import Outcome
from segments.position import Position
from segments.record import StoredRecord

LARGE: Final = 1_200_000
"""Bytes of a record that is stored in pieces."""

EVERY: Final = 100
"""One of so many records of a producer is large."""


def producer_value(producer: str, sequence: int) -> bytes:
    """The value of a producer's record: whoever sends it again sends the same. A few do not fit into an entry."""
    value = f"{producer}:{sequence}".encode()
    return value + bytes(LARGE) if sequence % EVERY == EVERY // 2 else value


def shown(value: bytes | None) -> str:
    """A value in a message."""
    return repr(value if value is None or len(value) < 100 else value[:20].rstrip(bytes(1)))


@dataclass(slots=True)
class StreamJudge:
    """What users sent, and were told."""

    acked: dict[bytes, Position] = field(default_factory=dict)
    """Value -> where it is said to stand."""
    sent: dict[bytes, Outcome] = field(default_factory=dict)
    """Value -> what the sender knows. Without an answer: UNKNOWN."""
    problems: list[str] = field(default_factory=list)
    duplicates: int = 0
    """How often a producer was told that its record was there already."""

    def on_sent(self, value: bytes) -> None:
        """A record is about to be sent."""
        self.sent.setdefault(value, Outcome.UNKNOWN)

    def on_acked(self, value: bytes, position: Position, *, duplicate: bool = False) -> None:
        """The sender was told that the record is durable."""
        self.duplicates += duplicate
        self.sent[value] = Outcome.APPLIED
        before = self.acked.setdefault(value, position)
        if before != position:
            self.find(f"{shown(value)} was said to be at {before}, and then at {position}")

    def on_rejected(self, value: bytes) -> None:
        """The sender was told that the record is not in the stream, and never will be."""
        if self.sent.get(value) is Outcome.UNKNOWN:
            self.sent[value] = Outcome.REJECTED

    def find(self, problem: str, rule: str = "") -> None:
        """Note a problem, once, with the rule that it breaks."""
        problem = f"{rule}: {problem}" if rule else problem
        if problem not in self.problems:
            self.problems.append(problem)

    def first_unacked(self, producer: str) -> int:
        """The first number of a producer that nobody was told to be durable."""
        sequence = 0
        while producer_value(producer, sequence) in self.acked:
            sequence += 1
        return sequence

    def judge(self, found: Sequence[StoredRecord], producers: Iterable[str], start: Position) -> list[str]:
        """Every problem. ``found`` is the whole stream in order, from ``start`` on."""
        times = Counter(record.value for record in found)
        for value, number in times.items():
            if number > 1:
                self.find(f"{shown(value)} is in the stream {number} times")
            if value not in self.sent:
                self.find(f"{shown(value)} is in the stream, and nobody sent it")
            elif self.sent[value] is Outcome.REJECTED:
                self.find(f"{shown(value)} is in the stream, and its sender was told that it never will be")
        where = {record.value: record.position for record in found}
        for value, position in self.acked.items():
            if position >= start and where.get(value) != position:
                self.find(f"{shown(value)} was acknowledged at {position}, and is at {where.get(value)}")
        self._order(found)
        for producer in producers:
            self._numbers(found, producer)
        return self.problems

    def _order(self, found: Sequence[StoredRecord]) -> None:
        last: StoredRecord | None = None
        for record in found:
            if last is not None and record.position <= last.position:
                self.find(f"position {record.position} follows {last.position}")
            if last is not None and record.seq_no != last.seq_no + 1:
                self.find(f"sequence number {record.seq_no} at {record.position} follows {last.seq_no}")
            last = record

    def _numbers(self, found: Sequence[StoredRecord], producer: str) -> None:
        numbers = [
            record.producer.sequence
            for record in found
            if record.producer is not None and record.producer.name == producer
        ]
        if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            self.find(f"the numbers of {producer} are not in order, each once: {_jumps(numbers)}")
        for record in found:
            at = record.producer
            if at is not None and record.value != producer_value(at.name, at.sequence):
                self.find(f"record {at.sequence} of {at.name} has the value {shown(record.value)}")


def _jumps(numbers: Sequence[int]) -> str:
    for one, two in pairwise(numbers):
        if two != one + 1:
            return f"{two} follows {one}"
    return "none"
