"""Entries in order: whatever is missing is told, with its size where an entry or the segment's end tells it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from segments.chain import SegmentContents, StreamSegment
from segments.entries import EntryKind, RecordColumns, StoredEntry, encode_entry, encode_payload, encode_pieces
from segments.position import Position
from segments.read.batches.entry_sequence import EntrySequence, lost_before, lost_with, truncated
from segments.record import Gap, GapKind


def entries(counts: list[int]) -> list[bytes]:
    """Entries with so many records each; 0: a control entry."""
    at, found = 0, []
    for count in counts:
        if count:
            values = [b"%d" % n for n in range(at, at + count)]
            found.append(encode_entry(RecordColumns.of_values(values), first_seq_no=at, append_ms=0))
        else:
            found.append(encode_payload(EntryKind.CONTROL, b"", next_seq_no=at, append_ms=0))
        at += count
    return found


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["good", "damaged", "lost"])), max_size=20), st.booleans())
def test_every_record_is_handed_out_or_told_missing(plan: list[tuple[int, str]], ends: bool) -> None:
    """SEG-79: what is handed out and what is missing together are all records."""
    counts = [count for count, _ in plan]
    sequence = EntrySequence(1, 0, 0)
    items: list[object] = []
    for i, (payload, (_, fate)) in enumerate(zip(entries(counts), plan, strict=True)):
        if fate == "lost":
            sequence.on_broken(i, GapKind.LOST, "gone")
        else:
            items += sequence.on_run(i, [payload if fate == "good" else payload[:-1] + b"?"])
    if ends:
        items.append(sequence.on_end(sum(counts)))
    else:
        items.append(sequence.give_up())
    seen: list[int] = []
    missing = 0
    for item in items:
        if isinstance(item, StoredEntry):
            assert item.first_seq_no == len(seen) + missing
            seen += map(int, item.values())
        elif isinstance(item, Gap):
            assert item.first < item.last and item.records != 0
            missing += item.records or 0
    good = [
        n
        for (count, fate), at in zip(plan, _starts(counts), strict=True)
        if fate == "good"
        for n in range(at, at + count)
    ]
    assert seen == good
    if ends:
        assert len(seen) + missing == sum(counts)


def _starts(counts: list[int]) -> list[int]:
    return [sum(counts[:i]) for i in range(len(counts))]


def test_an_entry_that_repeats_records_is_not_handed_out() -> None:
    first, second = entries([3, 2])
    sequence = EntrySequence(1, 0, 0)
    assert len(sequence.on_run(0, [first, second])) == 2
    assert sequence.on_run(2, [second]) == []
    gap = sequence.give_up()
    assert gap is not None and gap.kind is GapKind.CORRUPT and gap.first == Position(1, 2, 0)


def test_a_start_in_the_middle_does_not_know_what_came_before() -> None:
    sequence = EntrySequence(1, 1, None)
    (found,) = sequence.on_run(1, entries([3, 2])[1:])
    assert isinstance(found, StoredEntry) and sequence.expected == 5


def test_pieces_come_whole_and_a_later_piece_asks_for_the_earlier_ones() -> None:
    value = b"x" * 3_000_000
    pieces = encode_pieces(RecordColumns.of_values([value]), first_seq_no=7, append_ms=0)
    sequence = EntrySequence(1, 4, 7)
    assert sequence.on_run(4, pieces[:-1]) == []
    (found,) = sequence.on_run(4 + len(pieces) - 1, pieces[-1:])
    assert isinstance(found, StoredEntry) and found.values() == [value] and sequence.expected == 8
    late = EntrySequence(1, 6, None)
    assert late.on_run(6, pieces[2:]) == [] and late.earlier_entry == 4


def test_a_piece_that_is_missing_costs_the_record_and_no_other() -> None:
    pieces = encode_pieces(RecordColumns.of_values([b"x" * 3_000_000]), first_seq_no=0, append_ms=0)
    after = encode_entry(RecordColumns.of_values([b"y"]), first_seq_no=1, append_ms=0)
    sequence = EntrySequence(1, 0, 0)
    assert sequence.on_run(0, pieces[:1]) == []
    sequence.on_broken(1, GapKind.LOST, "gone")
    gap, found = sequence.on_run(2, [*pieces[2:], after])
    assert isinstance(gap, Gap) and gap.records == 1
    assert isinstance(found, StoredEntry) and found.values() == [b"y"]


SEGMENT = StreamSegment(3, 7, 100, 0, completed_ms=1, contents=SegmentContents(records=20, last_entry=4, last=(4, 0)))


def test_what_was_truncated_ends_directly_before_the_beginning() -> None:
    gap = truncated(Position(1, 0, 0), Position(2, 5, 3), 17)
    assert (gap.first, gap.last, gap.kind, gap.records) == (
        Position(1, 0, 0),
        Position(2, 5, 2),
        GapKind.TRUNCATED,
        17,
    )


def test_records_are_lost_between_the_expected_one_and_the_segment() -> None:
    gap = lost_before(SEGMENT, 90)
    assert gap is not None and gap.records == 10 and gap.kind is GapKind.LOST
    assert lost_before(SEGMENT, 100) is None
    assert lost_before(SEGMENT, None) is None


def test_a_ledger_that_is_gone_takes_the_rest_of_its_segment() -> None:
    gap = lost_with(SEGMENT, Position(3, 2, 0), 105)
    assert (gap.first, gap.records) == (Position(3, 2, 0), 15)
    assert gap.last < Position(4, 0, 0)
    assert lost_with(SEGMENT, Position(3, 2, 0), None).records is None
