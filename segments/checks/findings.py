"""What can be wrong with a stream, found over plain data, and how its node is put right (pure).

``find_problems`` compares four accounts of a stream: its node, the metadata of its ledgers, what a scan of the
entries found, and its cursors. ``repair_chain`` makes the node say what the entries say. Neither reads anything.

What is lost stays listed: a segment whose ledger is gone keeps its place, so that readers get a gap of a known size,
and no position changes its meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from bookkeeper.amounts import counted
from segments.chain import RemovedLedger, SegmentContents, StreamChain, StreamSegment
from segments.position import Position
from segments.retention.retention import CursorPosition


class Problem(Enum):
    """What is wrong."""

    NODE_UNREADABLE = "node unreadable"
    LEDGER_MISSING = "ledger missing"
    OPEN_LEDGER_MISSING = "open ledger missing"
    LEDGER_NOT_CLOSED = "ledger not closed"
    LEDGER_LENGTH = "ledger has another end"
    LEDGER_FOREIGN = "foreign ledger"
    LEDGER_TWICE = "ledger listed twice"
    NEXT_LEDGER = "next ledger"
    REMOVING_IN_USE = "removed ledger in use"
    REMOVING_LEFT = "removal unfinished"
    COUNT = "wrong count"
    LAST = "wrong last record"
    SEQUENCE = "wrong sequence number"
    STATISTICS = "wrong statistics"
    ENTRY_DAMAGED = "damaged entry"
    CURSOR_BEHIND = "cursor before the start"
    CURSOR_BEYOND = "cursor beyond the end"
    NAME_WITHOUT_STREAM = "name without stream"
    STREAM_WITHOUT_NAME = "stream without name"
    IMPORT_LEFT = "import unfinished"
    DELETION_LEFT = "deletion unfinished"
    ORPHAN = "orphan ledger"


REPAIRS: Final[Mapping[Problem, str]] = {
    Problem.OPEN_LEDGER_MISSING: "take the segment out: the next writer cannot recover a ledger that is gone",
    Problem.LEDGER_NOT_CLOSED: "recover the ledger, which closes it",
    Problem.LEDGER_LENGTH: "write down what the ledger holds",
    Problem.NEXT_LEDGER: "name no ledger in advance: the next writer makes one",
    Problem.REMOVING_IN_USE: "do not delete it",
    Problem.REMOVING_LEFT: "delete the ledgers",
    Problem.COUNT: "write down what the entries say",
    Problem.LAST: "write down what the entries say",
    Problem.SEQUENCE: "write down what the entries say",
    Problem.STATISTICS: "write down what the entries say",
    Problem.NAME_WITHOUT_STREAM: "remove the name",
    Problem.DELETION_LEFT: "finish the deletion",
    Problem.IMPORT_LEFT: "remove what is there of it",
    Problem.ORPHAN: "delete the ledger",
}
"""What a repair does. A problem without one is for people to decide: nothing can bring the data back."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem, in words and for programs."""

    problem: Problem
    stream: str
    text: str
    segment: int | None = None
    ledger: int | None = None
    repaired: bool = False

    @property
    def repair(self) -> str | None:
        """What a repair would do; None if there is none."""
        return REPAIRS.get(self.problem)


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """A ledger as its metadata describe it."""

    ledger_id: int
    closed: bool
    last_entry: int
    """-1 if it is empty, or not closed."""
    stream: str | None
    """The id of the stream that it was made for; None if it carries no such tag."""


@dataclass(frozen=True, slots=True)
class ScannedSegment:
    """What a scan of a segment's entries found."""

    contents: SegmentContents
    start_seq_no: int | None
    """Of its first record; None if it has none."""
    damaged: tuple[str, ...] = ()
    """Entries that cannot be read, in words."""

    @property
    def is_whole(self) -> bool:
        """Whether every entry was read, so that a repair may trust the scan."""
        return not self.damaged


@dataclass(frozen=True, slots=True)
class StreamAccount:
    """All that is known of one stream."""

    stream: str
    """Its name."""
    stream_id: str
    chain: StreamChain
    ledgers: Mapping[int, LedgerFacts]
    """Those that exist, of all that the chain names."""
    scans: Mapping[int, ScannedSegment]
    """By segment number; a segment that was not scanned is missing."""
    cursors: Mapping[str, CursorPosition]
    """What each cursor needs next."""


def find_problems(account: StreamAccount) -> tuple[Finding, ...]:
    """Everything that the four accounts disagree on, in the order of the segments."""
    found: list[Finding] = []
    seen: set[int] = set()
    for segment in account.chain.segments:
        found += _of_segment(account, segment, segment.ledger_id in seen)
        seen.add(segment.ledger_id)
    found += _of_the_rest(account)
    found += _of_cursors(account)
    return tuple(found)


def _of_segment(account: StreamAccount, segment: StreamSegment, twice: bool) -> Iterator[Finding]:
    number, ledger = segment.number, segment.ledger_id

    def finding(problem: Problem, text: str) -> Finding:
        return Finding(problem, account.stream, f"segment {number}: {text}", number, ledger)

    if twice:
        yield finding(Problem.LEDGER_TWICE, f"ledger {ledger} is an earlier segment's, too")
    facts = account.ledgers.get(ledger)
    if facts is None:
        if segment.is_open:
            yield finding(Problem.OPEN_LEDGER_MISSING, f"it is open, and ledger {ledger} is gone")
        else:
            yield finding(
                Problem.LEDGER_MISSING, f"ledger {ledger} is gone, and {counted(segment.records, 'record')} with it"
            )
        return
    if facts.stream != account.stream_id:
        owner = "no stream" if facts.stream is None else f"stream {facts.stream}"
        yield finding(Problem.LEDGER_FOREIGN, f"ledger {ledger} was made for {owner}")
    if not segment.is_open:
        if not facts.closed:
            yield finding(Problem.LEDGER_NOT_CLOSED, f"it is completed, and ledger {ledger} is not closed")
        elif facts.last_entry != segment.contents.last_entry:
            yield finding(
                Problem.LEDGER_LENGTH,
                f"it ends at entry {segment.contents.last_entry}, and ledger {ledger} at {facts.last_entry}",
            )
    if (scan := account.scans.get(number)) is not None:
        yield from _of_scan(account.stream, segment, scan)


def _of_scan(stream: str, segment: StreamSegment, scan: ScannedSegment) -> Iterator[Finding]:
    number, ledger = segment.number, segment.ledger_id

    def finding(problem: Problem, text: str) -> Finding:
        return Finding(problem, stream, f"segment {number}: {text}", number, ledger)

    for text in scan.damaged:
        yield finding(Problem.ENTRY_DAMAGED, text)
    if scan.start_seq_no is not None and scan.start_seq_no != segment.start_seq_no:
        yield finding(
            Problem.SEQUENCE,
            f"its first record has sequence number {scan.start_seq_no}, and the stream's node says "
            f"{segment.start_seq_no}",
        )
    if segment.is_open or not scan.is_whole:
        return
    said, has = segment.contents, scan.contents
    if said.records != has.records:
        yield finding(
            Problem.COUNT, f"it holds {counted(has.records, 'record')}, and the stream's node says {said.records}"
        )
    if said.last != has.last:
        yield finding(
            Problem.LAST, f"its last record is at {_place(has.last)}, and the stream's node says {_place(said.last)}"
        )
    rest = replace(has, records=said.records, last=said.last, last_entry=said.last_entry)
    if said.last_entry == has.last_entry and said != rest:
        yield finding(Problem.STATISTICS, "its times, transaction ids or sizes are not those of its records")


def _place(last: tuple[int, int] | None) -> str:
    return "none" if last is None else f"entry {last[0]}, slot {last[1]}"


def _of_the_rest(account: StreamAccount) -> Iterator[Finding]:
    chain = account.chain
    in_segments = {segment.ledger_id for segment in chain.segments}
    ahead = chain.next_ledger
    if ahead is not None:
        facts = account.ledgers.get(ahead)
        fault = None
        if ahead in in_segments:
            fault = "is a segment's already"
        elif facts is None:
            fault = "is gone"
        elif facts.closed:
            fault = "is closed"
        if fault is not None:
            text = f"ledger {ahead}, made for the next segment, {fault}"
            yield Finding(Problem.NEXT_LEDGER, account.stream, text, ledger=ahead)
    for removed in chain.removing:
        if removed.ledger_id in in_segments or removed.ledger_id == ahead:
            text = f"ledger {removed.ledger_id} is to be deleted, and is needed"
            yield Finding(Problem.REMOVING_IN_USE, account.stream, text, removed.number or None, removed.ledger_id)
        else:
            text = f"ledger {removed.ledger_id} is out of the stream, and not deleted yet"
            yield Finding(Problem.REMOVING_LEFT, account.stream, text, removed.number or None, removed.ledger_id)


def _of_cursors(account: StreamAccount) -> Iterator[Finding]:
    chain = account.chain
    beyond = Position(chain.next_number, 0, 0)
    for name, place in sorted(account.cursors.items()):
        needs = place.needs
        if chain.has_hidden(needs, place.seq_no):
            text = f"cursor {name} is at {needs}, and the stream begins at {chain.first_position}"
            yield Finding(Problem.CURSOR_BEHIND, account.stream, text)
        elif needs > beyond:
            text = f"cursor {name} is at {needs}, and the stream ends before {beyond}"
            yield Finding(Problem.CURSOR_BEYOND, account.stream, text)


def repair_chain(account: StreamAccount) -> StreamChain:
    """The node as the ledgers and entries say it. What a scan could not read stays as the node has it, as far as
    that fits between its neighbours.

    The result keeps the rules of a chain, or this raises StreamInvariantError when it is encoded and read: then the
    entries themselves contradict each other, and nobody can repair that.
    """
    chain = account.chain
    segments: list[StreamSegment] = []
    removing = list(chain.removing)
    for segment in chain.segments:
        if segment.is_open and segment.ledger_id not in account.ledgers:
            removing.append(RemovedLedger(segment.number, segment.ledger_id))
            continue
        segments.append(_corrected(segment, account.scans.get(segment.number)))
    in_use = {segment.ledger_id for segment in segments}
    ahead = chain.next_ledger
    if ahead is not None:
        facts = account.ledgers.get(ahead)
        if ahead in in_use:
            ahead = None
        elif facts is None or facts.closed:
            removing.append(RemovedLedger(0, ahead))
            ahead = None
    if ahead is not None:
        in_use.add(ahead)
    segments = _joined(segments, account.scans)
    records = chain.records
    if segments:
        last = segments[-1]
        records = last.start_seq_no if last.is_open else last.start_seq_no + last.records
    txids = [s.contents.last_txid for s in segments if s.contents.last_txid is not None]
    return replace(
        chain.with_segments(segments),
        next_ledger=ahead,
        removing=tuple(each for each in removing if each.ledger_id not in in_use),
        records=records,
        last_txid=max(txids, default=chain.last_txid),
    )


def _corrected(segment: StreamSegment, scan: ScannedSegment | None) -> StreamSegment:
    if scan is None:
        return segment
    if scan.start_seq_no is not None:
        segment = replace(segment, start_seq_no=scan.start_seq_no)
    if segment.is_open or not scan.is_whole:
        return segment
    return replace(segment, contents=scan.contents)


def _joined(segments: Sequence[StreamSegment], scans: Mapping[int, ScannedSegment]) -> list[StreamSegment]:
    """Fit in the segments that could not be read as a whole: each begins where the one before ends, and holds as many
    records as the next one leaves room for."""
    found: list[StreamSegment] = []
    for at, segment in enumerate(segments):
        scan = scans.get(segment.number)
        if found and (scan is None or scan.start_seq_no is None):
            before = found[-1]
            segment = replace(segment, start_seq_no=before.start_seq_no + before.records)
        following = scans.get(segments[at + 1].number) if at + 1 < len(segments) else None
        if (
            not segment.is_open
            and (scan is None or not scan.is_whole)
            and following is not None
            and following.start_seq_no is not None
        ):
            records = max(0, following.start_seq_no - segment.start_seq_no)
            segment = replace(segment, contents=replace(segment.contents, records=records))
        found.append(segment)
    return found
