"""A stream's record: who may write, and its segments in order; the only legal transitions (pure).

Each step of a writer is one transition and one compare-and-set, so no step is ever half done.

    claim(owner, nonce)        any --> the next epoch
    allocate(ledger)           a ledger that was made for the next segment is named
    start_segment(...)         no segment is open; the next one is, before its first entry (C1, C2, C3)
    complete(number, contents) open --> completed, for good (C7)
    drop_empty(number)         open and without a record --> its ledger is removed; the number stays used
    truncate(before)           readers begin at a later position; nothing is removed
    remove(up_to)              completed segments wholly before the beginning --> removing (C6)
    forget(ledgers)            removing --> gone, after their ledgers were deleted
    seal()                     no segment is open; nothing can be started any more
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple

from segments.chain.stream_segment import SegmentContents, StreamSegment
from segments.errors import ChainStepError, StreamSealedError, check
from segments.position import FIRST_SEGMENT, Position

SEGMENTS_MAX: Final = 8_000
"""More would not fit into a value of the metadata store. A writer puts its roll off and says so."""

REMOVING_MAX: Final = 4_000
"""As many ledgers may wait to be deleted; then no more segments are removed."""


class RemovedLedger(NamedTuple):
    """A ledger that is in no segment any more, and may not be deleted yet."""

    number: int
    """Of its segment; 0 if it was never in one."""
    ledger_id: int


@dataclass(frozen=True, slots=True)
class StreamChain:
    """The record. Every transition returns the next record. Values are immutable."""

    stream_id: str = ""
    epoch: int = 0
    """Counts the owners; 0 before the first."""
    nonce: str = ""
    """Tells apart two claims of one epoch."""
    owner: str = ""
    """The name of the owner, for people."""
    location: str = ""
    """Where the owner can be reached; empty if it cannot."""
    segments: tuple[StreamSegment, ...] = ()
    """In order. Only the last may be open."""
    start: Position = Position.EARLIEST
    """The first position that readers see."""
    start_seq_no: int | None = 0
    """The sequence number at ``start``; None if whoever truncated did not know it."""
    next_number: int = FIRST_SEGMENT
    """Of the segment that is started next."""
    next_ledger: int | None = None
    """A ledger made in advance, empty; the next segment takes it."""
    removing: tuple[RemovedLedger, ...] = ()
    """Ledgers to be deleted."""
    sealed: bool = False
    records: int = 0
    """User records of all completed segments, also of those removed since: the sequence number of the next."""
    last_txid: int | None = None
    """The last transaction id of all completed segments."""

    # -- what the record says --------------------------------------------------------------------------

    @property
    def open_segment(self) -> StreamSegment | None:
        """The segment that grows, if there is one."""
        return self.segments[-1] if self.segments and self.segments[-1].is_open else None

    @property
    def first_position(self) -> Position:
        """The first position that readers see: ``start``, or the beginning of the first segment if that is later."""
        if self.segments:
            return max(self.start, self.segments[0].first)
        return max(self.start, Position(self.next_number, 0, 0))

    @property
    def last_position(self) -> Position | None:
        """The last record of the completed segments; None if there is none."""
        return next((segment.last for segment in reversed(self.segments) if segment.last is not None), None)

    @property
    def ledgers(self) -> tuple[int, ...]:
        """Every ledger that the record names: no orphans."""
        ahead = () if self.next_ledger is None else (self.next_ledger,)
        return (*(s.ledger_id for s in self.segments), *ahead, *(r.ledger_id for r in self.removing))

    def find(self, number: int) -> StreamSegment | None:
        """The segment of this number, if it is listed."""
        for segment in reversed(self.segments):
            if segment.number == number:
                return segment
        return None

    def after(self, number: int) -> StreamSegment | None:
        """The first listed segment with a greater number."""
        return next((segment for segment in self.segments if segment.number > number), None)

    # -- transitions -----------------------------------------------------------------------------------

    def claim(self, owner: str, nonce: str, location: str = "") -> StreamChain:
        """Take the next epoch for ``owner``."""
        return replace(self, epoch=self.epoch + 1, owner=owner, nonce=nonce, location=location)

    def release(self) -> StreamChain:
        """Say that nobody writes now. The epoch stays used."""
        return replace(self, owner="", location="")

    def allocate(self, ledger_id: int) -> StreamChain:
        """Name a ledger that was made for the next segment.

        Raises:
            ChainStepError: one is named already. StreamSealedError.
        """
        self._ensure_not_sealed()
        if self.next_ledger is not None:
            raise ChainStepError(f"ledger {self.next_ledger} is ready for the next segment already")
        self._ensure_unused(ledger_id)
        return replace(self, next_ledger=ledger_id)

    def discard_next(self) -> StreamChain:
        """Put the ledger made in advance among those to be deleted; a former owner made it. Without one: no change."""
        if self.next_ledger is None:
            return self
        gone = RemovedLedger(0, self.next_ledger)
        return replace(self, next_ledger=None, removing=(*self.removing, gone))

    def start_segment(self, ledger_id: int, created_ms: int) -> StreamChain:
        """Append an open segment with this ledger, which is empty.

        Raises:
            ChainStepError: a segment is open, the chain is full, or it names the ledger already.
            StreamSealedError.
        """
        self._ensure_not_sealed()
        if (opened := self.open_segment) is not None:
            raise ChainStepError(f"segment {opened} is open: complete it before a new one starts")
        if len(self.segments) >= SEGMENTS_MAX:
            raise ChainStepError(f"the stream has {SEGMENTS_MAX} segments, the most: truncate it, or use longer ones")
        if self.next_ledger == ledger_id:
            before = replace(self, next_ledger=None)
        else:
            self._ensure_unused(ledger_id)
            before = self
        segment = StreamSegment(self.next_number, ledger_id, self.records, created_ms, self.epoch)
        return replace(before, segments=(*self.segments, segment), next_number=self.next_number + 1)._checked()

    def complete(self, number: int, contents: SegmentContents, completed_ms: int) -> StreamChain:
        """Fix the end of the open segment. The same end again is no change.

        Raises:
            ChainStepError: no such segment is listed, or it has another end.
        """
        segment = self._listed(number)
        done = segment.complete(contents, completed_ms)
        if done is segment:
            return self
        txids = [txid for txid in (self.last_txid, contents.last_txid) if txid is not None]
        return replace(
            self,
            segments=(*self.segments[:-1], done),
            records=self.records + contents.records,
            last_txid=max(txids, default=None),
        )._checked()

    def drop_empty(self, number: int) -> StreamChain:
        """Take out the open segment, which holds no record; its ledger is to be deleted. Its number stays used.

        Raises:
            ChainStepError: it is not the open one.
        """
        opened = self.open_segment
        if opened is None or opened.number != number:
            raise ChainStepError(f"segment {number} is not open")
        gone = RemovedLedger(number, opened.ledger_id)
        return replace(self, segments=self.segments[:-1], removing=(*self.removing, gone))._checked()

    def truncate(self, before: Position, seq_no: int | None = None) -> StreamChain:
        """Let readers begin at ``before``. A position that is not later is no change.

        ``seq_no`` is the sequence number of the first record at or behind it, where the caller knows it.

        Raises:
            ChainStepError: the position is behind everything that the stream may hold.
        """
        if before <= self.start:
            return self
        if before > Position(self.next_number, 0, 0):
            raise ChainStepError(f"{before} is behind the end of the stream: nothing is there to truncate")
        return replace(self, start=before, start_seq_no=seq_no)

    def removable(self) -> tuple[StreamSegment, ...]:
        """The completed segments wholly before the first position that readers see, oldest first.

        There are fewer while many ledgers wait to be deleted.
        """
        gone: list[StreamSegment] = []
        for segment in self.segments[: max(0, REMOVING_MAX - len(self.removing))]:
            if segment.is_open or segment.number > self.start.segment:
                break
            last = segment.last
            if segment.number == self.start.segment and last is not None and last >= self.start:
                break
            gone.append(segment)
        return tuple(gone)

    def remove(self, up_to: int) -> StreamChain:
        """Take the segments with numbers up to ``up_to`` out; their ledgers are to be deleted.

        Raises:
            ChainStepError: one of them is open, or readers still see records of it.
        """
        allowed = {segment.number for segment in self.removable()}
        gone = tuple(segment for segment in self.segments if segment.number <= up_to)
        for segment in gone:
            if segment.number not in allowed:
                raise ChainStepError(f"segment {segment} is not wholly truncated: it stays")
        removing = tuple(RemovedLedger(segment.number, segment.ledger_id) for segment in gone)
        return replace(self, segments=self.segments[len(gone) :], removing=(*self.removing, *removing))

    def forget(self, ledgers: Collection[int]) -> StreamChain:
        """Take out of ``removing`` the ledgers that were deleted."""
        return replace(self, removing=tuple(each for each in self.removing if each.ledger_id not in ledgers))

    def seal(self) -> StreamChain:
        """End the stream. Sealing again is no change.

        Raises:
            ChainStepError: a segment is open.
        """
        if (opened := self.open_segment) is not None:
            raise ChainStepError(f"segment {opened} is open: complete it before the stream is sealed")
        return replace(self.discard_next(), sealed=True)

    # -- rules -----------------------------------------------------------------------------------------

    def _listed(self, number: int) -> StreamSegment:
        if (segment := self.find(number)) is None:
            raise ChainStepError(f"there is no segment {number} in the stream")
        return segment

    def _ensure_not_sealed(self) -> None:
        if self.sealed:
            raise StreamSealedError("the stream is sealed: nothing can be appended to it any more")

    def _ensure_unused(self, ledger_id: int) -> None:
        if ledger_id in self.ledgers:
            raise ChainStepError(f"ledger {ledger_id} is in the stream's record already")

    def _checked(self) -> StreamChain:
        """Check the rules of the last two segments; older ones were checked when they were the last."""
        return checked(self, since=max(0, len(self.segments) - 2))

    def encode(self) -> bytes:
        """The record as bytes."""
        from segments.chain.chain_codec import encode_chain

        return encode_chain(self)


def checked(chain: StreamChain, since: int = 0) -> StreamChain:
    """Check that the segments from index ``since`` on keep the rules.

    Raises:
        StreamInvariantError: names the rule.
    """
    segments = chain.segments[since:]
    for one, two in pairwise(segments):
        check(not one.is_open, "C3", f"segment {one} is open, but segment {two} follows it")
        check(one.number < two.number, "C4", f"segment {two} follows segment {one}")
        check(one.end_seq_no == two.start_seq_no, "C7", f"segment {two} does not begin where segment {one} ends")
    if segments:
        last = segments[-1]
        check(last.number < chain.next_number, "C7", f"segment {last} has a number that is to be used next")
        end = last.start_seq_no if last.is_open else last.end_seq_no
        check(
            end == chain.records, "C7", f"the record counts {chain.records} records, and segment {last} ends at {end}"
        )
    return chain
