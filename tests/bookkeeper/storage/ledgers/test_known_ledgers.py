"""Ledgers are made from segments when they are asked for, and are what they would be if a start had made all of them.

The reference reads every segment of the manifest from its bytes, oldest first, and makes every descriptor, as starts
did before.
"""

from __future__ import annotations

import random
from array import array
from collections import Counter
from dataclasses import dataclass, field, replace
from struct import Struct

import pytest

from bookkeeper.errors import NoSuchLedgerError
from bookkeeper.ids import IdRanges, LedgerId
from bookkeeper.storage.base.durable_file import BLOCK, unstamp, version_of
from bookkeeper.storage.base.manifest import Manifest, read_manifest
from bookkeeper.storage.index import index_segment, segment_table
from bookkeeper.storage.index.entry_index import PAGE, Extent
from bookkeeper.storage.index.index_segment import IndexSegmentWriter, segment_name
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor, decode_row, dropped_row
from bookkeeper.storage.index.segment_table import SegmentTable, extent_row
from bookkeeper.storage.ledgers import known_ledgers
from bookkeeper.storage.ledgers.known_ledgers import DEAR_EXTENTS, KnownLedgers
from bookkeeper.storage.reads.entry_places import EntryPlaces
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, KEY, lid, make_adds, open_engine, read

_TABLE_ROW, _STATE_ROW, _FOOTER = Struct(">qqIIQI"), Struct(">qBBqqqqqI"), Struct(">QQQQ")
_FENCED, _EXPLICIT, _LIMBO, _DROPPED, _KEYED = 1, 2, 4, 8, 16


# -- the reference ----------------------------------------------------------------------------------------


def eager(disk: RecordingDisk) -> dict[int, LedgerDescriptor]:
    """Every ledger that the segments of the manifest know, with its extents."""
    manifest, ledgers = read_manifest(disk, "/ledgers"), dict[int, LedgerDescriptor]()
    assert manifest is not None
    for segment_id in manifest.segments:
        data = disk.read_file(f"/ledgers/{segment_name(segment_id)}")
        footer = unstamp(data[-48:], b"BKIF", 1, "footer")
        table_at, table_size, states_at, states_size = _FOOTER.unpack(footer)
        raw = data[states_at : states_at + states_size]
        by_ledger: dict[int, list[Extent]] = {}
        for ledger_id, first, count, present, offset, crc in _TABLE_ROW.iter_unpack(
            unstamp(data[table_at : table_at + table_size], b"BKIT", 1, "table")
        ):
            extent = Extent(ledger_id, first, count, present, segment_id, offset, crc)
            by_ledger.setdefault(ledger_id, []).append(extent)
        for ledger_id, extents in by_ledger.items():
            ledgers.setdefault(ledger_id, LedgerDescriptor(lid(ledger_id))).index.add(extents)
        _take_states(ledgers, unstamp(raw, b"BKIS", version_of(raw, (1, 2)), "states"))
    return ledgers


def _take_states(ledgers: dict[int, LedgerDescriptor], rows: bytes) -> None:
    at = 0
    while at < len(rows):
        ledger_id, flags, key_size, lac, explicit, first, last, size, blob_size = _STATE_ROW.unpack_from(rows, at)
        at += _STATE_ROW.size
        key, blob = rows[at : at + key_size], rows[at + key_size : at + key_size + blob_size]
        at += key_size + blob_size
        if flags & _DROPPED:
            for gone in [key for key in ledgers if ledger_id <= key <= max(ledger_id, last)]:
                del ledgers[gone]
            continue
        row = LedgerDescriptor(lid(ledger_id), key if flags & _KEYED else None, bool(flags & _FENCED))
        row.limbo, row.lac, row.first_entry, row.last_entry, row.size = bool(flags & _LIMBO), lac, first, last, size
        if flags & _EXPLICIT:
            row.explicit_lac, row.explicit_blob = explicit, blob
        if (known := ledgers.get(ledger_id)) is not None:
            row.index = known.index
        ledgers[ledger_id] = row


def places_of(places: EntryPlaces, state: LedgerDescriptor) -> dict[int, int]:
    """Every entry's place."""
    numbers = {
        number for extent in state.index.extents for number in range(extent.first // PAGE, extent.end // PAGE + 1)
    }
    return {
        PAGE * number + at: found
        for number in numbers
        for at, found in enumerate(places.whole_page(state, number))
        if found
    }


# -- histories --------------------------------------------------------------------------------------------


@dataclass
class History:
    """Ledgers come, grow, are fenced and deleted; checkpoints, merges, compactions and starts in between. Only a few
    are asked for."""

    rng: random.Random
    seen: Counter[str] = field(default_factory=Counter)
    """What happened."""

    def __post_init__(self) -> None:
        rng = self.rng
        self.config = replace(
            CONFIG,
            index_segments=rng.choice([2, 3, 5]),
            page_cache_pages=4,
            resident_ledgers_max=rng.choice([1, 2, 5, 1000]),
            major_compaction_ratio=1.0,
            entry_log_per_ledger=rng.random() < 0.2,
        )
        self.next_ledger = 1
        self.entries: dict[int, set[int]] = {}
        self.open(RecordingDisk())

    def open(self, disk: RecordingDisk) -> None:
        self.disk = disk
        self.engine, self.workers = open_engine(disk, self.config)
        disk.cached = True

    @property
    def known(self) -> KnownLedgers:
        return self.engine._ledgers.ledgers

    def act(self) -> None:
        rng, chance = self.rng, self.rng.random()
        ledger = rng.choice(sorted(self.entries)) if self.entries else 0
        if chance < 0.35 or not ledger:
            self.add(ledger)
        elif chance < 0.42:
            if ledger not in self.known.resident:
                self.seen["fence of one that was not resident"] += 1
            self.engine.fence(lid(ledger), KEY, lambda error: None)
        elif chance < 0.47:
            self.engine.set_explicit_lac(lid(ledger), KEY, rng.randrange(2000), b"b" * rng.randrange(9), lambda _: None)
        elif chance < 0.52:
            assert isinstance(read(self.engine, self.workers, ledger, min(self.entries[ledger])), bytes)
        elif chance < 0.6:
            self.collect(ledger)
        elif chance < 0.8:
            self.checkpoint()
        elif chance < 0.85:
            self.engine.compact(lambda error: None, major=True)
        elif chance < 0.93:
            self.start_again()
        else:
            self.workers.step()

    def add(self, ledger: int) -> None:
        """To this ledger or a new one: behind the others, far away, with a hole, or once more."""
        rng = self.rng
        if not ledger or rng.random() < 0.5:
            ledger, self.next_ledger = self.next_ledger, self.next_ledger + rng.choice([1, 1, 3])
        elif ledger not in self.known.resident:
            self.seen["add to one that was not resident"] += 1
        had = self.entries.setdefault(ledger, set())
        first = max(had, default=-1) + rng.choice([1, 1, 1, 2, 505, 9000])
        if had and rng.random() < 0.15:
            first = min(had)
        ids = sorted(
            {first + at for at in range(rng.choice([1, 3, 20]))} - ({first + 1} if rng.random() < 0.2 else set())
        )
        adds = make_adds(ledger, ids, 60, lac=0)
        self.engine.append(adds.runs[0], adds, recovery=True)
        had.update(ids)
        self.engine.when_durable(lambda error: None)
        if rng.random() < 0.5:
            self.workers.pump()

    def collect(self, ledger: int) -> None:
        self.workers.pump()
        if ledger not in self.known.resident:
            self.seen["deletion of one that was not resident"] += 1
        del self.entries[ledger]
        ranges = [(0, self.next_ledger - 1)] if self.rng.random() < 0.3 else []
        self.engine.collect({lid(ledger)}, lambda error: None, never_again=ranges)

    def checkpoint(self) -> None:
        """Perhaps others are asked for while it runs."""
        merges, behind = self.engine.stats.merges, set(self.known) - self.known.resident.keys()
        self.engine.checkpoint(lambda error: None)
        for _ in range(self.rng.randrange(4)):
            self.workers.step()
            if self.entries and self.rng.random() < 0.3:
                assert self.engine.has(lid(max(self.entries))) and self.engine.lac(lid(max(self.entries))) >= 0
        self.workers.pump()
        self.seen["checkpoint"] += 1
        if behind and self.engine.stats.merges > merges:
            self.seen["merge behind ledgers that were not resident"] += 1

    def start_again(self) -> None:
        if self.rng.random() < 0.5:
            self.engine.close(lambda error: None)
        self.workers.pump()
        self.open(RecordingDisk(self.disk.files()))
        assert self.known.resident.keys() <= self.engine_news(), "a start makes what the journal speaks of"

    def engine_news(self) -> set[int]:
        """Ledgers that a checkpoint has not covered before the start: all that may be resident behind it."""
        return set(self.entries) if not self.engine.report.clean else set()

    def compare(self) -> None:
        """Everything is covered: what the engine knows is what the segments say."""
        self.workers.pump()
        self.engine.checkpoint(lambda error: None)
        self.workers.pump()
        expected = eager(self.disk)
        assert list(self.engine.ledgers()) == list(self.known) == sorted(expected) == sorted(self.entries)
        places = self.engine._reader.places
        order = sorted(expected)
        self.rng.shuffle(order)
        for ledger in order:
            asked = self.known.get if self.rng.random() < 0.2 else self.known.peek
            found, wanted = asked(ledger), expected[ledger]
            assert found is not None and replace(found, read_hint=wanted.read_hint) == wanted
            assert places_of(places, found) == places_of(places, wanted)
            assert places.entries(found) == places.entries(wanted)
            assert set(places_of(places, found)) == self.entries[ledger]
        for gone in set(range(self.next_ledger)) - expected.keys():
            assert gone not in self.known and self.known.peek(gone) is None and self.known.get(gone) is None
            assert not self.engine.has(lid(gone))


@pytest.mark.rule("B3", "B5", "M6", "K15")
@pytest.mark.parametrize("piece", [index_segment.PIECE, 256])
def test_a_ledger_that_is_made_when_asked_for_is_as_if_the_start_had_made_it(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_segment, "PIECE", piece)
    seen: Counter[str] = Counter()
    for seed in range(40):
        history = History(random.Random(seed), seen)
        for _ in range(4):
            for _ in range(25):
                history.act()
            history.compare()
        history.start_again()
        history.compare()
        assert history.engine.report.limbo_reason is None
    assert min(seen.values()) > 10 and len(seen) == 5, seen


# -- by hand ----------------------------------------------------------------------------------------------


def table(
    number: int, states: list[LedgerDescriptor], *extents: tuple[int, int, int], dropped: int = 0
) -> SegmentTable:
    """Extents are (ledger, first entry, number of entries)."""
    rows = [extent_row(ledger, first, count, count, 4096, 0) for ledger, first, count in extents]
    gone = [dropped_row(dropped)] if dropped else []
    return SegmentTable(number, b"".join(rows), b"".join([*(state.encode() for state in states), *gone]))


def known(*tables: SegmentTable) -> KnownLedgers:
    made = KnownLedgers()
    for each in tables:
        made.add_table(each)
    return made


def test_the_newest_row_counts_and_the_extents_of_all_segments() -> None:
    ledgers = known(
        table(3, [LedgerDescriptor(lid(7), KEY, fenced=True), LedgerDescriptor(lid(8), KEY)], (7, 0, 5), (8, 0, 1)),
        table(4, [LedgerDescriptor(lid(7), KEY, fenced=True, lac=9)], (7, 5, 2)),
        table(9, [], (7, 7, 1)),
    )
    assert list(ledgers) == [7, 8] and 7 in ledgers and 9 not in ledgers and not ledgers.resident
    found = ledgers[7]
    assert (found.fenced, found.lac, found.key) == (True, 9, KEY)
    assert [(each.segment, each.first) for each in found.index.extents] == [(3, 0), (4, 5), (9, 7)]
    assert ledgers.get(7) is found and list(ledgers.resident) == [7]
    with pytest.raises(KeyError):
        ledgers[9]


def test_who_only_looks_leaves_nothing_in_memory() -> None:
    ledgers = known(table(1, [LedgerDescriptor(lid(7), KEY)], (7, 0, 5)))
    one, other = ledgers.peek(7), ledgers.peek(7)
    assert one is not None and one == other and one is not other and not ledgers.resident
    kept = ledgers[7]
    assert ledgers.peek(7) is kept


def test_a_ledger_of_very_many_runs_is_made_once_for_all_who_look() -> None:
    runs = [(7, PAGE * number, PAGE) for number in range(DEAR_EXTENTS + 1)]
    ledgers = known(table(1, [], *runs), table(2, [], *((8, first, count) for _, first, count in runs[1:])))
    assert ledgers.peek(7) is ledgers.peek(7) and list(ledgers.resident) == [7]
    assert ledgers.peek(8) is not ledgers.peek(8)


def test_who_asks_for_the_state_of_a_ledger_has_none_of_its_extents_made() -> None:
    ledgers = known(
        table(1, [LedgerDescriptor(lid(7), KEY)], (7, 0, 5), (8, 0, 1)),
        table(2, [LedgerDescriptor(lid(7), KEY, fenced=True)]),
        table(3, [LedgerDescriptor(lid(9))], (7, 5, 1)),
    )
    found, bare = ledgers.state_of(7), ledgers.state_of(8)
    assert found is not None and found.fenced and found.key == KEY and found.index.extents == ()
    assert bare is not None and bare.key is None and ledgers.state_of(6) is None and not ledgers.resident
    kept = ledgers[7]
    assert ledgers.state_of(7) is kept
    ledgers.drop(9)
    assert ledgers.state_of(9) is None


@pytest.mark.rule("M6")
def test_what_is_deleted_stays_hidden_in_memory_and_behind_it() -> None:
    ledgers = known(table(1, [LedgerDescriptor(lid(number), KEY) for number in (5, 6, 7, 8, 9)]))
    assert ledgers[6]
    ledgers.drop(6)
    ledgers.drop(7)
    assert list(ledgers) == [5, 8, 9] and not ledgers.resident
    assert all(gone not in ledgers and ledgers.get(gone) is None for gone in (6, 7))
    assert ledgers[8]
    ledgers.drop(4, 8)
    assert list(ledgers) == [9] and not ledgers.resident and ledgers.dropped == IdRanges([(4, 8)])
    assert ledgers.within(0, 8) == [] and ledgers.within(9, 9) == [9]


def test_ids_in_a_range_are_those_that_are_here() -> None:
    ledgers = known(table(1, [LedgerDescriptor(lid(2))], (4, 0, 1)), table(2, [LedgerDescriptor(lid(2))], dropped=4))
    ledgers.add(LedgerDescriptor(lid(9)))
    ledgers.add(LedgerDescriptor(lid(3)))
    assert [ledgers.within(*ends) for ends in ((0, 1), (2, 3), (3, 8), (4, 4), (0, 99))] == [
        [],
        [2, 3],
        [3],
        [],
        [2, 3, 9],
    ]


def test_a_merge_is_taken_over_for_ledgers_in_memory_and_for_others() -> None:
    """Also for one that came into memory while the checkpoint ran, of which it has prepared nothing."""
    ledgers = known(table(1, [], (5, 0, 9)), table(2, [], (5, 9, 1), (6, 0, 1), (7, 0, 1)), table(3, [], (6, 1, 1)))
    before = ledgers[5]
    before.index.tail.extend(10, array("q", [77]))
    before.index.freeze()
    merged = table(4, [], (5, 9, 2), (6, 0, 2), (7, 0, 1))
    during = ledgers[6]
    ledgers.adopt({2, 3}, merged, {5: merged.extents(5)}, {5})
    assert [(each.segment, each.first, each.count) for each in before.index.extents] == [(1, 0, 9), (4, 9, 2)]
    assert before.index.frozen is None
    assert [(each.segment, each.count) for each in during.index.extents] == [(4, 2)]
    assert [each.segment for each in ledgers[7].index.extents] == [4]


def test_a_checkpoint_that_writes_nothing_takes_away_what_it_has_merged() -> None:
    ledgers = known(table(1, [LedgerDescriptor(lid(5))], (5, 0, 1)), table(2, [], (6, 0, 1)))
    ledgers.drop(5)
    ledgers.drop(6)
    ledgers.adopt({1, 2}, None, {}, ())
    assert list(ledgers) == [] and ledgers.within(0, 9) == []


MANY = 100_000


def test_a_start_with_a_hundred_thousand_ledgers_makes_those_that_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = RecordingDisk()
    writer = IndexSegmentWriter(disk, "/ledgers", 1, 0)
    disk.make_directories("/ledgers")
    for number in range(MANY):
        writer.add(number, 0, array("q", [1 << 40 | BLOCK] * 10))
        writer.add_state(LedgerDescriptor(lid(number), KEY, number % 3 == 0, first_entry=0, last_entry=9).encode())
    writer.write()
    Manifest(segments={1: writer.size}, next_segment=2, next_log=2).write(disk, "/ledgers", None)
    made: list[int] = []

    def counted_row(row: bytes) -> LedgerDescriptor:
        made.append(int.from_bytes(row[:8], "big"))
        return decode_row(row)

    def counted_extent(*numbers: int) -> Extent:
        made.append(numbers[0])
        return Extent(*numbers)

    def counted_ledger(ledger_id: LedgerId) -> LedgerDescriptor:
        made.append(ledger_id)
        return LedgerDescriptor(ledger_id)

    monkeypatch.setattr(segment_table, "decode_row", counted_row)
    monkeypatch.setattr(segment_table, "Extent", counted_extent)
    monkeypatch.setattr(known_ledgers, "LedgerDescriptor", counted_ledger)
    engine, workers = open_engine(disk)
    ledgers = engine._ledgers.ledgers
    assert list(engine.ledgers()) == list(range(MANY)) and engine.has(lid(5)) and not engine.has(lid(MANY))
    engine.collect({lid(3), lid(4)}, lambda error: None, never_again=[(0, 9), (MANY, MANY + 9)])
    workers.pump()
    assert engine.is_fenced(lid(3)) and engine.is_fenced(lid(MANY)) and not engine.has(lid(4))
    engine.scrubber.suspect(None)
    for _ in range(3):
        engine.checkpoint(lambda error: None)
        workers.pump()
    assert not made and not ledgers.resident, "nobody has asked"
    assert engine.is_fenced(lid(6)) and not engine.is_fenced(lid(7)) and engine.last_entry(lid(6)) == 9
    assert sorted(ledgers.resident) == [6, 7] and set(made) == {6, 7} and len(made) == 4
    engine.close(lambda error: None)
    workers.pump()
    engine, workers = open_engine(RecordingDisk(disk.files()))
    assert not engine._ledgers.ledgers.resident and len(made) == 4 and len(list(engine.ledgers())) == MANY - 2
    assert isinstance(read(engine, workers, 3, 0), NoSuchLedgerError) and len(made) == 4
