"""Entries in order: whatever is missing is told, with its size where an entry or the segment's end tells it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from segments.entries import EntryKind, RecordColumns, StoredEntry, encode_entry, encode_payload, encode_pieces
from segments.position import Position
from segments.read.entry_sequence import EntrySequence
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
