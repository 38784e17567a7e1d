"""Sees every version of a stream's node as it is written, and refuses an illegal history (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field

from segments.chain import StreamChain, StreamSegment
from segments.errors import StreamInvariantError


@dataclass(slots=True)
class ChainWitness:
    """What was seen of one stream's node."""

    last: StreamChain | None = None
    named: set[int] = field(default_factory=set)
    """Every ledger that any version named."""
    completed: dict[int, StreamSegment] = field(default_factory=dict)
    """Number -> the segment as it was completed."""
    problems: list[str] = field(default_factory=list)
    claims: int = 0
    pages: int = 0
    """The most that a version named."""
    rolls: int = 0

    def see(self, new: StreamChain) -> None:
        """A version was written."""
        try:
            new.checked()
        except StreamInvariantError as error:
            self.find(str(error))
        if self.last is not None:
            self._compare(self.last, new)
        for segment in new.segments:
            if segment.is_open:
                continue
            if self.completed.setdefault(segment.number, segment) != segment:
                self.find(f"C7: segment {segment.number} was completed, and has changed")
        self.named.update(new.ledgers)
        self.pages = max(self.pages, len(new.pages))
        self.last = new

    def see_acknowledged(self, number: int) -> None:
        """A record of segment ``number`` was acknowledged."""
        if self.last is None or number >= self.last.next_number:
            self.find(f"C1: a record was acknowledged in segment {number}, and no version of the record named it")

    def see_deleted(self, ledger_id: int) -> None:
        """A ledger was deleted."""
        if self.last is not None and any(segment.ledger_id == ledger_id for segment in self.last.segments):
            self.find(f"C6: ledger {ledger_id} was deleted while the record lists it")

    def see_entries_of(self, ledger_id: int) -> None:
        """A ledger with the stream's tags has entries."""
        if ledger_id not in self.named:
            self.find(f"C1: ledger {ledger_id} has entries, and was never in the record")

    def _compare(self, old: StreamChain, new: StreamChain) -> None:
        if new.epoch < old.epoch:
            self.find(f"C5: epoch {new.epoch} follows {old.epoch}")
        if new.epoch > old.epoch:
            self.claims += 1
            if tuple(s.ledger_id for s in new.segments) != tuple(s.ledger_id for s in old.segments):
                self.find("C2: a claim changed the segments")
        numbers = {segment.number for segment in old.segments}
        for segment in new.segments:
            if segment.number not in numbers:
                self.rolls += 1
                self._started(old, new, segment)
        if new.start < old.start:
            self.find(f"the stream began at {old.start}, and then at {new.start}")
        if old.sealed and (not new.sealed or tuple(new.segments) != tuple(old.segments)):
            self.find("a sealed stream has changed")
        gone = numbers - {segment.number for segment in new.segments}
        waiting = {each.ledger_id for each in new.removing} | {each.ledger_id for each in old.removing}
        for segment in old.segments:
            if segment.number in gone and segment.ledger_id not in waiting:
                self.find(f"C6: ledger {segment.ledger_id} of segment {segment.number} was forgotten before deletion")

    def _started(self, old: StreamChain, new: StreamChain, segment: StreamSegment) -> None:
        if segment.epoch != new.epoch:
            self.find(f"C5: epoch {new.epoch} started segment {segment.number} as epoch {segment.epoch}")
        if segment.number < old.next_number:
            self.find(f"C7: the number {segment.number} of a segment is used again")

    def find(self, problem: str) -> None:
        """Note a problem, once."""
        if problem not in self.problems:
            self.problems.append(problem)
