"""A stream's node: who may write, and its segments in order; the only legal transitions (pure).

Each step of a writer is one transition and one compare-and-set, so no step is ever half done.

    claim(owner, nonce)        any --> the next epoch
    allocate(ledger)           a ledger that was made for the next segment is named
    start_segment(...)         no segment is open; the next one is, before its first entry (C1, C2, C3)
    complete(number, contents) open --> completed, for good (C7)
    publish(ledgers)           no segment is open; closed ledgers are completed segments, in order (C1, C7)
    drop_empty(number)         open and without a record --> its ledger is removed; the number stays used
    truncate(before)           readers begin at a later position; nothing is removed
    remove(up_to)              completed segments wholly before the beginning --> removing (C6)
    forget(ledgers)            removing --> gone, after their ledgers were deleted
    seal()                     no segment is open; nothing can be started any more
    fold(page)                 the oldest segments of the node move to a page beside it; the stream stays the same

A node lists its recent segments, and names the pages that hold the older ones. Its owner works with the recent ones
alone. To have all of them, read the pages first: ``StreamHead.read`` does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from typing import Final, NamedTuple

from segments.chain.chain_rules import check_pages, check_segments
from segments.chain.segment_page import PAGE_SEGMENTS, SegmentList, SegmentPage
from segments.chain.stream_segment import SegmentContents, StreamSegment
from segments.errors import ChainStepError, StreamSealedError
from segments.position import FIRST_SEGMENT, Position

SEGMENTS_MAX: Final = 8_000
"""More would not fit into a value of the metadata store beside no pages. A writer folds them long before."""

FOLD_AT: Final = 2 * PAGE_SEGMENTS
"""Where the node lists so many segments, the oldest ones move to a page before the next one starts."""

PAGES_MAX: Final = 7_000
"""Pages that a node can name. A writer rolls no more at ``PAGES_ROLL``; the rest is kept for those who take over."""

PAGES_ROLL: Final = 6_000
"""With so many pages, six million segments, a writer puts its roll off and says so."""

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
    recent: tuple[StreamSegment, ...] = ()
    """The segments that the node itself lists, in order. Only the last may be open."""
    start: Position = Position.EARLIEST
    """No record before it is seen. Where all records of a segment were taken out it is directly behind the last of
    them: so a reader between it and the next segment has missed nothing."""
    start_seq_no: int | None = 0
    """The sequence number at ``start``; None if the truncation did not know it."""
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
    password: bytes = field(default=b"", repr=False)
    """Of all ledgers of the stream; empty if an earlier version made it, and in what travels to readers elsewhere."""
    pages: tuple[SegmentPage, ...] = ()
    """The pages with the segments before the recent ones, in order."""

    # -- what the node says --------------------------------------------------------------------------

    @property
    def segments(self) -> Sequence[StreamSegment]:
        """All segments, in order. To look at those of a page raises ChainStepError if it was not read."""
        return SegmentList(self.pages, self.recent) if self.pages else self.recent

    @property
    def count(self) -> int:
        """How many segments there are."""
        return sum(page.count for page in self.pages) + len(self.recent)

    @property
    def listed_records(self) -> int:
        """User records of the completed segments that are listed."""
        return sum(page.records for page in self.pages) + sum(segment.records for segment in self.recent)

    @property
    def listed_bytes(self) -> int:
        """Bytes of the completed segments that are listed, as stored once."""
        return sum(page.size for page in self.pages) + sum(segment.bytes for segment in self.recent)

    @property
    def hidden_records(self) -> int:
        """Records of the completed segments that are listed, and that readers do not see: they are before ``start``.

        Where the truncation did not know the number at ``start``, those of its segment, or page, are not counted.
        """
        begins = self.start_seq_no
        if begins is None:
            page = next((page for page in self.pages if self.start.segment <= page.last), None)
            segment = next((segment for segment in self.recent if self.start.segment <= segment.number), None)
            first = page or segment
            begins = self.records if first is None else first.start_seq_no
        return min(max(0, begins - self.first_seq_no), self.listed_records)

    @property
    def open_segment(self) -> StreamSegment | None:
        """The segment that grows, if there is one."""
        return self.recent[-1] if self.recent and self.recent[-1].is_open else None

    @property
    def first_number(self) -> int:
        """The number of the first segment; of the one that is started next if there is none."""
        if self.pages:
            return self.pages[0].first_listed
        return self.recent[0].number if self.recent else self.next_number

    @property
    def first_seq_no(self) -> int:
        """The sequence number of the first record that is listed; of the next one if there is none."""
        if self.pages:
            return self.pages[0].start_seq_no
        return self.recent[0].start_seq_no if self.recent else self.records

    @property
    def first_position(self) -> Position:
        """The first position that readers see: ``start``, or the beginning of the next segment where all records before
        that are hidden. (Within a page that was not read nobody knows that, and it is ``start``.)"""
        listed = Position(self.first_number, 0, 0)
        if self.start <= listed or self.start.slot == 0:
            return max(self.start, listed)
        number = self.start.segment
        for page in self.pages:
            if number <= page.last and page.value is None:
                is_tail = page.tail is not None and self.start == page.tail.next
                return Position(page.last + 1, 0, 0) if is_tail else self.start
        segment = self.find(number)
        if segment is None or segment.last is None or self.start != segment.last.next:
            return self.start
        following = self.after(number)
        return Position(self.next_number, 0, 0) if following is None else following.first

    @property
    def begin_seq_no(self) -> int | None:
        """The sequence number of the first record that readers see; of the next one if there is none. None: a
        truncation did not know it."""
        return self.first_seq_no if Position(self.first_number, 0, 0) > self.start else self.start_seq_no

    def reads_on(self, position: Position) -> Position | None:
        """Where a reader at ``position`` goes on: there, or at the first position that readers see, if no record is in
        between. None: some were, or nobody knows any more."""
        first = self.first_position
        if position >= first:
            return position
        return first if position >= self.start or self.begin_seq_no == 0 else None

    def has_hidden(self, position: Position, seq_no: int | None) -> bool:
        """Whether readers do not see records any more from ``position`` on, of which the first has, or had, the number
        ``seq_no``, as far as that is known."""
        if self.reads_on(position) is not None:
            return False
        begins = self.begin_seq_no
        return begins is None or seq_no is None or seq_no < begins

    def behind_last(self, position: Position) -> Position:
        """The same position, or, where no record stands before it in its segment, or behind it in a completed one, that
        directly behind the last record before it. Never before ``start``."""
        at = self.find(position.segment)
        if at is not None and position > at.first:
            if at.is_open or (at.last is not None and position <= at.last):
                return position
            if at.last is not None:
                return max(at.last.next, min(position, self.start))
        last = self._last_before(position.segment)
        return min(position, self.start if last is None else max(last.next, self.start))

    def _last_before(self, number: int) -> Position | None:
        """The last record of the listed segments before this number."""
        for segment in reversed(self.recent):
            if segment.number < number and segment.last is not None:
                return segment.last
        for page in reversed(self.pages):
            if page.records and page.first_listed < number:
                found = [each.last for each in page.segments() if each.number < number and each.last is not None]
                if found:
                    return found[-1]
        return None

    @property
    def last_position(self) -> Position | None:
        """The last record of the completed segments; None if there is none."""
        recent = next((segment.last for segment in reversed(self.recent) if segment.last is not None), None)
        if recent is not None:
            return recent
        return next((page.tail for page in reversed(self.pages) if page.records), None)

    @property
    def ledgers(self) -> tuple[int, ...]:
        """Every ledger that the node and its pages name: no orphans."""
        return (*(s.ledger_id for page in self.pages for s in page.segments()), *self.recent_ledgers)

    @property
    def recent_ledgers(self) -> tuple[int, ...]:
        """Every ledger that the node itself names."""
        ahead = () if self.next_ledger is None else (self.next_ledger,)
        return (*(s.ledger_id for s in self.recent), *ahead, *(r.ledger_id for r in self.removing))

    def find(self, number: int) -> StreamSegment | None:
        """The segment of this number, if it is listed."""
        found = self.from_number(number)
        return found if found is not None and found.number == number else None

    def after(self, number: int) -> StreamSegment | None:
        """The first listed segment with a greater number."""
        return self.from_number(number + 1)

    def from_number(self, number: int) -> StreamSegment | None:
        """The first listed segment with this number or a greater one."""
        for page in self.pages:
            if number <= page.last:
                return page.segment(page.index_from(number))
        at = bisect_left(self.recent, number, key=lambda segment: segment.number)
        return self.recent[at] if at < len(self.recent) else None

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
        _ensure_unused(ledger_id, self.recent_ledgers)
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
        if len(self.recent) >= SEGMENTS_MAX:
            raise ChainStepError(f"the node lists {SEGMENTS_MAX} segments, the most: fold it first")
        if self.next_ledger == ledger_id:
            before = replace(self, next_ledger=None)
        else:
            _ensure_unused(ledger_id, self.recent_ledgers)
            before = self
        segment = StreamSegment(self.next_number, ledger_id, self.records, created_ms, self.epoch)
        return replace(before, recent=(*self.recent, segment), next_number=self.next_number + 1)._newest_checked()

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
            recent=(*self.recent[:-1], done),
            records=self.records + contents.records,
            last_txid=max(txids, default=None),
        )._newest_checked()

    def publish(self, ledgers: Sequence[tuple[int, SegmentContents]], now_ms: int) -> StreamChain:
        """Append closed ledgers as completed segments: each with its id, and what it holds.

        Raises:
            ChainStepError: a segment is open, the chain is full, or it names a ledger already.
            StreamSealedError.
        """
        self._ensure_not_sealed()
        if (opened := self.open_segment) is not None:
            raise ChainStepError(f"segment {opened} is open: complete it before ledgers are published")
        if len(self.recent) + len(ledgers) > SEGMENTS_MAX:
            raise ChainStepError(f"the node lists at most {SEGMENTS_MAX} segments: fold it first")
        added: list[StreamSegment] = []
        records, txids = self.records, [] if self.last_txid is None else [self.last_txid]
        used = set(self.recent_ledgers)
        for number, (ledger_id, contents) in enumerate(ledgers, self.next_number):
            _ensure_unused(ledger_id, used)
            used.add(ledger_id)
            added.append(
                StreamSegment(number, ledger_id, records, now_ms, self.epoch, now_ms, contents, is_published=True)
            )
            records += contents.records
            txids += [] if contents.last_txid is None else [contents.last_txid]
        published = replace(
            self,
            recent=(*self.recent, *added),
            next_number=self.next_number + len(added),
            records=records,
            last_txid=max(txids, default=None),
        )
        return published.checked(since=max(0, len(self.recent) - 1))

    def add_producer_segment(self, ledger_id: int, contents: SegmentContents, now_ms: int) -> StreamChain:
        """Append a completed segment without records, which tells of the stream's producers. Done before: no change.

        Raises: as publish.
        """
        if ledger_id in self.recent_ledgers:
            return self
        self._ensure_not_sealed()
        if (opened := self.open_segment) is not None:
            raise ChainStepError(f"segment {opened} is open: its writer tells of producers")
        segment = StreamSegment(self.next_number, ledger_id, self.records, now_ms, self.epoch, now_ms, contents)
        return replace(self, recent=(*self.recent, segment), next_number=self.next_number + 1)._newest_checked()

    def drop_empty(self, number: int) -> StreamChain:
        """Take out the open segment, which holds no record; its ledger is to be deleted. Its number stays used.

        Raises:
            ChainStepError: it is not the open one.
        """
        opened = self.open_segment
        if opened is None or opened.number != number:
            raise ChainStepError(f"segment {number} is not open")
        gone = RemovedLedger(number, opened.ledger_id)
        return replace(self, recent=self.recent[:-1], removing=(*self.removing, gone))._newest_checked()

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
        for segment in islice(self.segments, max(0, REMOVING_MAX - len(self.removing))):
            if segment.is_open or (segment.last is not None and segment.last >= self.start):
                break
            gone.append(segment)
        return tuple(gone)

    def remove(self, up_to: int) -> StreamChain:
        """Take the segments with numbers up to ``up_to`` out; their ledgers are to be deleted.

        Raises:
            ChainStepError: one of them is open, or readers still see records of it.
        """
        allowed = {segment.number for segment in self.removable()}
        gone = tuple(takewhile(lambda segment: segment.number <= up_to, self.segments))
        for segment in gone:
            if segment.number not in allowed:
                raise ChainStepError(f"segment {segment} is not wholly truncated: it stays")
        removing = tuple(RemovedLedger(segment.number, segment.ledger_id) for segment in gone)
        pages, left = list(self.pages), len(gone)
        while pages and left >= pages[0].count:
            left -= pages.pop(0).count
        if pages and left:
            pages[0] = pages[0].without(left)
        recent = self.recent if pages else self.recent[left:]
        return replace(self, pages=tuple(pages), recent=recent, removing=(*self.removing, *removing))

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

    # -- pages -----------------------------------------------------------------------------------------

    def next_page(self) -> SegmentPage | None:
        """The page to write and fold next: of the oldest segments of the node. None while it lists few."""
        if len(self.recent) < FOLD_AT:
            return None
        return SegmentPage.of(self.recent[:PAGE_SEGMENTS], self.epoch)

    def fold(self, page: SegmentPage) -> StreamChain:
        """Name a page that was written, and list its segments there alone.

        No change if that was done before, or if the oldest segments are not those of the page by now.

        Raises:
            ChainStepError: the node names as many pages as it can.
        """
        folded = self.recent[: page.stored]
        if len(folded) < page.stored or SegmentPage.of(folded, page.epoch) != page:
            return self
        if len(self.pages) >= PAGES_MAX:
            raise ChainStepError(
                f"segments of the stream: {self.count}, the most: truncate it, and let segments be longer"
            )
        named = replace(page, value=None)
        return replace(self, pages=(*self.pages, named), recent=self.recent[page.stored :])

    def with_segments(self, segments: Sequence[StreamSegment]) -> StreamChain:
        """The node with these segments instead. Pages before the first segment that changed stay as they are."""
        kept: list[SegmentPage] = []
        at = 0
        for page in self.pages:
            if tuple(page.segments()) != tuple(segments[at : at + page.count]):
                break
            kept.append(page)
            at += page.count
        return replace(self, pages=tuple(kept), recent=tuple(segments[at:]))

    # -- rules -----------------------------------------------------------------------------------------

    def _listed(self, number: int) -> StreamSegment:
        if (segment := self.find(number)) is None:
            raise ChainStepError(f"there is no segment {number} in the stream")
        return segment

    def _ensure_not_sealed(self) -> None:
        if self.sealed:
            raise StreamSealedError("the stream is sealed: nothing can be appended to it any more")

    def checked(self, since: int = 0) -> StreamChain:
        """Check the rules of the recent segments from index ``since`` on; from 0 on, of the pages as well.

        Raises: StreamInvariantError, which names the rule.
        """
        if self.pages and not since:
            check_pages(self.pages, self.recent)
        check_segments(self.recent[since:], self.next_number, self.records)
        return self

    def _newest_checked(self) -> StreamChain:
        """Older segments than the last two were checked when they were the last."""
        return self.checked(since=max(0, len(self.recent) - 2))


def _ensure_unused(ledger_id: int, used: Collection[int]) -> None:
    if ledger_id in used:
        raise ChainStepError(f"ledger {ledger_id} is in the stream's node already")
