from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from segments.config import ProducerPolicy
from segments.entries.sections import EntryBatch
from segments.errors import EntryCorruptError, ProducerFencedError, UnsupportedStreamFormatError
from segments.position import Position
from segments.producers import EPOCHS_UNKNOWN, NO_SEQUENCE, ProducerTable, SequenceVerdict
from tests.examples_of import examples


def at(entry: int, slot: int = 0) -> Position:
    return Position(1, entry, slot)


def with_records(count: int, name: str = "p", **policy: int) -> ProducerTable:
    """Records 0 to count - 1 of one producer, each in an entry of its own."""
    table = ProducerTable(ProducerPolicy(**policy))
    for sequence in range(count):
        table.apply(EntryBatch(1, name, 1, sequence), at(sequence), sequence)
    return table


def test_the_next_record_is_new_and_one_that_is_there_has_its_position() -> None:
    """SEG-116 duplicate append returns the original position"""
    table = with_records(3)
    assert table.judge("p", 1, 3, 2).verdict is SequenceVerdict.NEW
    found = table.judge("p", 1, 1, 2)
    assert (found.verdict, found.position, found.last) == (SequenceVerdict.DUPLICATE, at(1), at(2))


def test_a_record_on_its_way_is_joined() -> None:
    """SEG-115 verdicts new / duplicate / unknown"""
    table = with_records(1)
    table.push("p", 1, 1, 3, token="future")
    joined = table.judge("p", 1, 2, 1)
    assert (joined.verdict, joined.token) == (SequenceVerdict.IN_FLIGHT, "future")
    table.confirm("p", 1, at(9), 5)
    assert table.judge("p", 1, 3, 1).position == at(9, 2)
    assert table.judge("p", 1, 4, 1).verdict is SequenceVerdict.NEW


def test_after_a_failure_the_records_may_be_sent_again() -> None:
    """SEG-115 failure resets the pushed map"""
    table = with_records(1)
    table.push("p", 1, 1, 1)
    table.settle("p")
    assert table.judge("p", 1, 1, 1).verdict is SequenceVerdict.NEW


def test_a_strict_producer_may_leave_out_nothing() -> None:
    table = with_records(2)
    gap = table.judge("p", 1, 3, 1)
    assert (gap.verdict, gap.expected) == (SequenceVerdict.GAP, 2)
    assert table.judge("p", 1, 3, 1, strict=False).verdict is SequenceVerdict.NEW
    assert table.judge("q", 1, 1, 1).verdict is SequenceVerdict.GAP
    assert table.judge("q", 1, 0, 1).verdict is SequenceVerdict.NEW


def test_a_batch_that_is_half_there_says_what_is_missing() -> None:
    table = with_records(2)
    overlap = table.judge("p", 1, 1, 2)
    assert (overlap.verdict, overlap.expected) == (SequenceVerdict.OVERLAP, 2)
    table.push("p", 1, 2, 2)
    assert table.judge("p", 1, 3, 2).verdict is SequenceVerdict.OVERLAP


def test_an_older_epoch_is_refused() -> None:
    """SEG-117 producer epoch: older holder is refused on its next append"""
    table = with_records(2)
    opening = table.open("p", 10)
    assert (opening.epoch, opening.last_sequence, opening.maybe_forgotten) == (2, 1, False)
    fenced = table.judge("p", 1, 2, 1)
    assert (fenced.verdict, fenced.epoch) == (SequenceVerdict.FENCED, 2)
    assert table.judge("p", 2, 2, 1).verdict is SequenceVerdict.NEW
    with pytest.raises(ProducerFencedError) as caught:
        table.open("p", 11, epoch=1)
    assert caught.value.epoch == 2
    assert table.open("p", 11, epoch=2).epoch == 2 and table.open("new", 11).last_sequence == NO_SEQUENCE


def test_only_the_last_positions_are_remembered() -> None:
    table = with_records(5, positions_each=2)
    assert [table.judge("p", 1, n, 1).verdict for n in range(5)] == [SequenceVerdict.TOO_OLD] * 3 + [
        SequenceVerdict.DUPLICATE
    ] * 2


def test_records_side_by_side_are_remembered_as_one() -> None:
    table = ProducerTable(ProducerPolicy(positions_each=1))
    table.apply_entry([EntryBatch(2, "p", 1, 0), EntryBatch(3, "p", 1, 2), EntryBatch(9)], 1, 4, 0)
    assert [table.judge("p", 1, n, 1).position for n in range(5)] == [at(4, n) for n in range(5)]


def test_what_was_truncated_away_is_too_old_to_tell() -> None:
    table = with_records(4)
    table.forget_before(at(2))
    assert [table.judge("p", 1, n, 1).verdict for n in range(4)] == [SequenceVerdict.TOO_OLD] * 2 + [
        SequenceVerdict.DUPLICATE
    ] * 2


def test_an_entry_without_records_says_which_number_comes_next() -> None:
    """What an import, or a producer that was opened anew, has left in the stream."""
    table = ProducerTable()
    table.apply(EntryBatch(0, "p", 3, 8), at(0), 0)
    assert table.judge("p", 3, 8, 1).verdict is SequenceVerdict.NEW
    assert table.judge("p", 3, 7, 1).verdict is SequenceVerdict.TOO_OLD
    assert table.judge("p", 3, 9, 1).expected == 8


def test_a_forgotten_producer_is_told_and_never_guessed() -> None:
    table = with_records(2, max_producers=1)
    table.push("p", 1, 2, 1)
    table.apply(EntryBatch(1, "q", 1, 0), at(7), 100)
    assert table.get("p") is not None, "what is on its way is not forgotten"
    table.settle("p")
    table.apply(EntryBatch(1, "r", 1, 0), at(8), 101)
    assert table.get("p") is None and table.forgotten >= 1
    assert table.judge("p", 1, 2, 1).verdict is SequenceVerdict.TOO_OLD
    assert table.open("p", 102).maybe_forgotten


def forgotten_table() -> ProducerTable:
    """It has forgotten ``p``, of epoch 5, which had sent records 0 and 1."""
    table = ProducerTable(ProducerPolicy(max_producers=2))
    table.apply_entry([EntryBatch(2, "p", 5, 0)], 1, 0, 0)
    for n, name in enumerate("qr"):
        table.apply(EntryBatch(1, name, 1, 0), at(1 + n), 1 + n)
    assert table.get("p") is None
    return table


def test_the_doubt_about_a_forgotten_name_stays_over_openings_and_snapshots() -> None:
    """The doubt was what the opening found, and was kept nowhere: the second opening found the state that the first had
    made, a new owner found it in the snapshot, and both took the producer for a new one whose numbers begin at 0."""
    table = forgotten_table()
    assert table.open("p", 10).maybe_forgotten
    assert table.open("p", 11).maybe_forgotten
    table = ProducerTable.decode(table.encode(), table.policy)
    opening = table.open("p", 12)
    assert opening.maybe_forgotten and table.is_doubtful("p")
    assert table.judge("p", opening.epoch, 7, 1).verdict is SequenceVerdict.NEW, "its next number may be any"
    table.push("p", opening.epoch, 7, 1)
    assert table.judge("p", opening.epoch, 9, 1).verdict is SequenceVerdict.GAP, "and then they follow each other"
    table.settle("p")
    assert table.open("p", 13).maybe_forgotten, "nothing of it became durable"
    table.apply(EntryBatch(1, "p", 13, 7), at(9), 14)
    assert not table.open("p", 15).maybe_forgotten and not table.is_doubtful("p")
    assert table.judge("p", 99, 6, 1).verdict is SequenceVerdict.TOO_OLD


def test_an_opening_that_is_found_in_the_stream_is_in_doubt_too() -> None:
    """A new owner that finds the opening behind the last snapshot."""
    table = ProducerTable.decode(forgotten_table().encode())
    table.apply(EntryBatch(0, "p", 6, 0), at(9), 10)
    assert table.open("p", 11).maybe_forgotten
    table.apply(EntryBatch(0, "known", 2, 5), at(10), 12)
    assert not table.open("known", 13).maybe_forgotten, "the entry says which number comes next"
    table = ProducerTable()
    table.apply(EntryBatch(0, "p", 6, 0), at(9), 10)
    assert not table.open("p", 11).maybe_forgotten, "nobody was forgotten"


def test_a_forgotten_name_is_opened_above_its_former_epoch() -> None:
    """Its epochs began with 1 again: the former holder was not fenced, and its next record fenced the new one."""
    for table in (forgotten_table(), ProducerTable.decode(forgotten_table().encode())):
        opening = table.open("p", 10)
        assert opening.epoch == 6
        assert table.judge("p", 5, 2, 1).verdict is SequenceVerdict.FENCED
    table = ProducerTable()
    table.forget_unknown()
    assert table.open("p", 10).epoch == EPOCHS_UNKNOWN + 1, "nobody noted which epochs there were"


def test_a_snapshot_of_an_earlier_version_is_in_doubt_where_it_does_not_say() -> None:
    """Format 1 noted neither who is in doubt nor the epochs of those who are forgotten."""
    table = with_records(2)
    table.open("idle", 5)
    value = table.encode()
    assert value[:2] == b"\1\0", "where nobody was forgotten it is still written, for earlier versions"
    assert not ProducerTable.decode(value).open("idle", 6).maybe_forgotten
    value = value[:8] + b"\3" + value[9:]
    old = ProducerTable.decode(value)
    assert (old.forgotten, old.forgotten_epoch) == (3, EPOCHS_UNKNOWN)
    assert old.open("idle", 6).maybe_forgotten and not old.open("p", 6).maybe_forgotten
    assert old.encode()[:2] == b"\2\0"


def test_the_last_record_is_known_to_be_there_when_its_place_is_not() -> None:
    """It was said that nobody knows whether it is there; but its number is the producer's last durable one."""
    table = with_records(4)
    table.forget_before(at(9))
    judged = [table.judge("p", 1, n, 1) for n in range(4)]
    assert [each.verdict for each in judged] == [SequenceVerdict.TOO_OLD] * 4
    assert [each.last_is_there for each in judged] == [False, False, False, True]
    assert table.judge("p", 1, 2, 2).last_is_there


def test_a_batch_of_another_length_overlaps_where_some_of_it_is_remembered() -> None:
    """It was said to be too old, though its last records are remembered."""
    table = with_records(6, positions_each=2)
    overlap = table.judge("p", 1, 2, 3)
    assert (overlap.verdict, overlap.expected) == (SequenceVerdict.OVERLAP, 6)
    assert table.judge("p", 1, 1, 2).verdict is SequenceVerdict.TOO_OLD
    gaps = ProducerTable()
    gaps.apply(EntryBatch(2, "p", 1, 10), at(0), 0)
    assert gaps.judge("p", 1, 9, 2).verdict is SequenceVerdict.OVERLAP, "9 was left out"


def test_a_snapshot_is_the_same_table() -> None:
    """SEG-118 dedup survives writer fail-over"""
    table = with_records(5, name="größe")
    table.open("other", 50)
    table.push("größe", 1, 5, 1)
    again = ProducerTable.decode(table.encode())
    assert again.encode() == table.encode() and len(again) == 2
    assert again.judge("größe", 1, 2, 1).position == at(2)
    assert again.judge("größe", 1, 5, 1).verdict is SequenceVerdict.NEW, "what was on its way is not in a snapshot"


def test_a_snapshot_that_would_be_too_large_forgets_the_idle_ones_first() -> None:
    table = with_records(20, name="old")
    for sequence in range(20):
        table.apply(EntryBatch(1, "young", 1, sequence), at(100 + sequence), 1_000 + sequence)
    assert len(table.encode(limit=900)) <= 900
    assert table.judge("old", 1, 19, 1).verdict is SequenceVerdict.TOO_OLD
    assert table.judge("young", 1, 19, 1).verdict is SequenceVerdict.DUPLICATE
    assert len(table.encode(limit=60)) <= 60
    assert table.get("old") is None and table.forgotten == 1


@pytest.mark.parametrize("size", [0, 5, 20, 30, -1])
def test_a_damaged_snapshot_is_noticed(size: int) -> None:
    with pytest.raises(EntryCorruptError):
        ProducerTable.decode(with_records(3).encode()[:size])
    with pytest.raises(EntryCorruptError, match="announced"):
        ProducerTable.decode(with_records(3).encode() + b"\0")


def test_a_snapshot_of_a_newer_program_is_refused() -> None:
    with pytest.raises(UnsupportedStreamFormatError, match="format 3"):
        ProducerTable.decode(b"\3" + with_records(1).encode()[1:])


class OneProducer(RuleBasedStateMachine):
    """Whatever is sent again, and whoever takes over: each number is stored once, and duplicates know where."""

    def __init__(self) -> None:
        super().__init__()
        self.table = ProducerTable(ProducerPolicy(positions_each=4))
        self.stored: dict[int, Position] = {}
        self.pushed: list[tuple[int, int]] = []
        self.entry = 0
        self.snapshot = self.table.encode()
        self.since: list[tuple[EntryBatch, int]] = []

    @rule(first=st.integers(0, 12), records=st.integers(1, 3))
    def send(self, first: int, records: int) -> None:
        judged = self.table.judge("p", 1, first, records)
        wanted = range(first, first + records)
        if judged.verdict is SequenceVerdict.NEW:
            assert not any(n in self.stored for n in wanted)
            self.table.push("p", 1, first, records)
            self.pushed.append((first, records))
        elif judged.verdict is SequenceVerdict.DUPLICATE:
            assert (judged.position, judged.last) == (self.stored[first], self.stored[wanted[-1]])
        elif judged.verdict is SequenceVerdict.TOO_OLD:
            assert all(n in self.stored for n in wanted)

    @precondition(lambda self: self.pushed)
    @rule()
    def confirm(self) -> None:
        first, records = self.pushed.pop(0)
        self.entry += 1
        for n in range(records):
            self.stored[first + n] = at(self.entry, n)
        self.table.confirm("p", first, at(self.entry), self.entry)
        self.since.append((EntryBatch(records, "p", 1, first), self.entry))

    @rule()
    def take_snapshot(self) -> None:
        self.snapshot, self.since = self.table.encode(), []

    @rule()
    def take_over(self) -> None:
        self.table = ProducerTable.decode(self.snapshot, self.table.policy)
        for batch, entry in self.since:
            self.table.apply_entry([batch], 1, entry, entry)
        self.pushed = []

    @invariant()
    def the_last_number_is_known(self) -> None:
        state = self.table.get("p")
        last = NO_SEQUENCE if state is None else state.last_sequence
        assert last == max(self.stored, default=NO_SEQUENCE)


TestOneProducer = OneProducer.TestCase
TestOneProducer.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)


def test_a_producer_whose_records_became_durable_is_not_idle() -> None:
    table = with_records(20, name="busy")
    for sequence in range(20):
        table.apply(EntryBatch(1, "quiet", 1, sequence), at(100 + sequence), 1_000 + sequence)
    table.push("busy", 1, 20, 1)
    table.confirm("busy", 20, at(200), 5_000)
    table.encode(limit=900)
    assert table.judge("busy", 1, 20, 1).verdict is SequenceVerdict.DUPLICATE
    assert table.judge("quiet", 1, 19, 1).verdict is SequenceVerdict.TOO_OLD, "it was idle longer"


def test_a_snapshot_of_long_names_keeps_to_its_limit() -> None:
    table = ProducerTable()
    for number in range(10):
        table.apply(EntryBatch(1, f"{'n' * 90}{number}", 1, 0), at(number), number)
    assert len(table.encode(limit=700)) <= 700
    assert 0 < len(table) < 10
