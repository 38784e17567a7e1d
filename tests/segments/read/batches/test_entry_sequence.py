"""Entries in order: whatever is missing is told, with its size where an entry or the segment's end tells it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from segments.chain import SegmentContents, StreamSegment
from segments.entries.columns import RecordColumns
from segments.entries.entry import encode_entry, encode_payload, encode_pieces
from segments.entries.layout import EntryKind
from segments.entries.lone_entries import LoneEntries
from segments.entries.stored_entry import StoredEntry
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


def entries_at(at: int, count: int) -> list[bytes]:
    """One entry whose first number is ``at``."""
    if not count:
        return [encode_payload(EntryKind.CONTROL, b"", next_seq_no=at, append_ms=0)]
    values = [b"%d" % n for n in range(at, at + count)]
    return [encode_entry(RecordColumns.of_values(values), first_seq_no=at, append_ms=0)]


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
        items.append(sequence.take_unsized_gap())
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
    gap = sequence.take_unsized_gap()
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


kinds = st.sampled_from(["lone", "lone", "lone", "two", "control", "damaged", "left out"])


@given(st.lists(kinds, max_size=14), st.none() | st.integers(0, 2), st.integers(0, 1), st.sampled_from([0, 100]))
def test_runs_of_lone_entries_are_the_entries_one_by_one(
    plan: list[str], expected: int | None, start: int, base: int
) -> None:
    """Whatever stands between them: the same records, the same gaps, and the same number is next."""
    payloads, at = [], start
    for kind in plan:
        count = 2 if kind == "two" else 0 if kind == "control" else 1
        (payload,) = entries_at(at, count)
        at += count
        if kind != "left out":
            payloads.append(payload[:-1] + b"?" if kind == "damaged" else payload)
    wanted = None if expected is None else expected + base
    whole, single = EntrySequence(3, 7, wanted, base), EntrySequence(3, 7, wanted, base)
    cut = len(payloads) // 2
    runs = [*whole.on_run(7, payloads[:cut]), *whole.on_run(7 + cut, payloads[cut:])]
    one_by_one = [item for n, each in enumerate(payloads) for item in single.on_run(7 + n, [each])]
    opened: list[object] = []
    for item in runs:
        opened += item.entries() if isinstance(item, LoneEntries) else [item]
    assert [vars(e) if isinstance(e, StoredEntry) else e for e in opened] == [
        vars(e) if isinstance(e, StoredEntry) else e for e in one_by_one
    ]
    assert whole.expected == single.expected
    assert whole.on_end(None) == single.on_end(None)


def test_lone_entries_come_as_one_item() -> None:
    (run,) = EntrySequence(1, 0, 0).on_run(0, entries([1] * 5))
    assert isinstance(run, LoneEntries) and run.count == 5
    first, two, last = EntrySequence(1, 0, 0).on_run(0, entries([1, 1, 2, 1, 1, 1]))
    assert isinstance(first, LoneEntries) and isinstance(two, StoredEntry) and isinstance(last, LoneEntries)
    assert [item.count for item in (first, two, last)] == [2, 2, 3]
