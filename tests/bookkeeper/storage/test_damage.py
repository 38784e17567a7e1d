"""Bytes that are not what they were: found, named, never served, never taken for an absence."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from bookkeeper.codec import chain_crcs, record
from bookkeeper.errors import (
    BookKeeperError,
    CorruptionError,
    DataUnknownError,
    LedgerFencedError,
    NoSuchEntryError,
    NoSuchLedgerError,
)
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.index.ledger_descriptor import StateRecordKind, state_record
from bookkeeper.storage.journal.journal_format import GROUP_HEADER, FileHeader, GroupHeader, padded
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import (
    CONFIG,
    KEY,
    Life,
    Truth,
    add,
    everything,
    lid,
    make_entry,
    open_engine,
    read,
    read_batch,
)

ROOMY = replace(CONFIG, journal_file_bytes=65536)


def a_life(config: StorageConfig = ROOMY, *, checkpoint: bool) -> tuple[dict[str, bytes], Truth]:
    """Some entries, fences and an explicit LAC; a crash. With ``checkpoint`` all of it is below the mark."""
    disk = RecordingDisk()
    life = Life(disk, config)
    for entry_id in range(6):
        life.add(1, entry_id, size=300)
        life.add(2, entry_id)
        life.pump()
    life.fence(1)
    life.fence(9)
    life.explicit_lac(2, 5)
    life.pump()
    if checkpoint:
        life.checkpoint()
        life.pump()
    life.add(3, 0)
    life.pump()
    return disk.files(), life.truth


def verdict(files: dict[str, bytes], truth: Truth, config: StorageConfig = ROOMY) -> tuple[list[str], bool]:
    """(what must never be, whether the damage was noticed)."""
    bad: list[str] = []
    try:
        engine, workers = open_engine(RecordingDisk(files), config)
    except BookKeeperError:
        return [], True
    noticed = bool(engine.report.limbo_reason or engine.report.quarantined)
    for key, entry in truth.sent.items():
        got = read(engine, workers, *key)
        if isinstance(got, (NoSuchEntryError, NoSuchLedgerError)):
            bad.append(f"{key}: wrong negative {got}")
        elif isinstance(got, BaseException):
            noticed = True
        elif got != entry:
            bad.append(f"{key}: wrong bytes")
        try:
            read_batch(engine, workers, key[0], key[1], count=1)
        except (NoSuchEntryError, NoSuchLedgerError) as error:
            bad.append(f"{key}: wrong negative {error}")
        except BookKeeperError:
            noticed = True
    bad += [f"fence of {ledger_id} is gone" for ledger_id in truth.fenced if not engine.is_fenced(lid(ledger_id))]
    return bad, noticed


def groups_of(data: bytes) -> list[GroupHeader]:
    """The groups of a journal file's first life, as they follow each other."""
    groups, offset = [], 4096
    file_id = int.from_bytes(data[16:24], "big")
    while (header := GroupHeader.decode(data[offset : offset + GROUP_HEADER], file_id, offset)) is not None:
        groups.append(header)
        offset += padded(header.size)
    return groups


def without_copy(files: dict[str, bytes], entry: bytes) -> dict[str, bytes]:
    """A power cut took what the entry logs had from the group that ``entry`` is in, and all behind it."""
    (name,) = [name for name, data in files.items() if name.endswith(".log") and entry in data]
    return {**files, name: files[name][: files[name].index(entry) - 8]}


def journal_of(files: dict[str, bytes]) -> str:
    return max(name for name in files if name.endswith(".journal"))


def flipped(data: bytes, at: int, bit: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 1 << bit
    return bytes(changed)


@pytest.mark.rule("K9", "K8", "B3", "B5")
def test_every_flipped_bit_before_the_last_group_of_the_journal_is_corruption() -> None:
    files, truth = a_life(checkpoint=False)
    name = journal_of(files)
    groups = groups_of(files[name])
    assert len(groups) >= 8
    rng = random.Random(1)
    for group in groups[:-1]:
        inside = [group.offset + at for at in range(GROUP_HEADER + group.size)]
        for at in [*inside[:GROUP_HEADER], *rng.sample(inside, 12)]:
            bad, noticed = verdict({**files, name: flipped(files[name], at, rng.randrange(8))}, truth)
            assert not bad and noticed, (at, bad)


@pytest.mark.rule("K9")
def test_a_torn_last_group_is_cut_and_nothing_else() -> None:
    """Whatever sectors of it a power cut has left, and whatever was there before: nothing says that it was durable."""
    disk = RecordingDisk()
    life = Life(disk, ROOMY)
    for entry_id in range(4):
        life.add(1, entry_id, size=200)
        life.pump()
    life.add(2, 0, 1, 2, size=200)
    life.pump()
    files, wanted = disk.files(), everything(life.engine, life.workers)
    life.add(2, *range(3, 10), size=200)
    life.pump()
    after = disk.files()
    name = journal_of(files)
    last = groups_of(after[name])[-1]
    sectors = range(last.offset, last.offset + GROUP_HEADER + last.size, 512)
    assert len(sectors) == 4
    records = b"".join(record(make_entry(5, entry_id, size=200)) for entry_id in range(3, 10))
    chain = chain_crcs(records, 0, len(records))
    earlier = GroupHeader(0, 7, 3, last.offset, 2, 7, len(records), chain).encode() + records
    assert len(earlier) == GROUP_HEADER + last.size, "of the same shape, in the file's earlier life"
    torn_tails = 0
    for old in (bytes(2048), bytes([7]) * 2048, earlier.ljust(2048, b"\0")):
        for kept in range(2 ** len(sectors) - 1):
            torn = bytearray(files[name])
            torn[last.offset : last.offset + 2048] = old
            for number, at in enumerate(sectors):
                if kept >> number & 1:
                    torn[at : at + 512] = after[name][at : at + 512]
            engine, workers = open_engine(RecordingDisk({**files, name: bytes(torn)}), ROOMY)
            assert engine.report.limbo_reason is None, kept
            assert everything(engine, workers) == wanted
            torn_tails += engine.report.torn_tail is not None
    assert torn_tails == 3 * 7, "whenever the header is there"


@pytest.mark.rule("K9", "B5", "G4")
def test_rot_in_the_last_group_after_a_kill_is_corruption_and_the_entry_logs_give_it_back() -> None:
    """A group that is not whole was always taken for torn when it was the last one; after a kill the entry logs hold
    the same group, which proves that it had been durable: it was cut and its copy removed, acknowledged entries with
    it."""
    files, truth = a_life(checkpoint=False)
    name = journal_of(files)
    last = groups_of(files[name])[-1]
    rng = random.Random(3)
    places = [*range(last.offset, last.offset + GROUP_HEADER + last.size), last.offset + GROUP_HEADER]
    for at in places:
        engine, workers = open_engine(RecordingDisk({**files, name: flipped(files[name], at, rng.randrange(8))}), ROOMY)
        assert engine.report.limbo_reason is not None and engine.report.torn_tail is None, at - last.offset
        assert engine.durable_position[1] >= last.sequence, "no other group gets the number of one that was durable"
        assert {key: read(engine, workers, *key) for key in truth.sent} == truth.sent
        assert isinstance(read(engine, workers, 3, 1), DataUnknownError)
        assert engine.is_fenced(lid(1)) and engine.is_fenced(lid(9))
    for torn in (files[name][: last.offset], files[name][: last.offset] + bytes(len(files[name]) - last.offset)):
        bad, noticed = verdict({**files, name: torn}, truth)
        assert not bad and noticed, "the whole group is gone, and its copy is there"


@pytest.mark.rule("K9")
def test_rot_in_the_last_group_is_told_from_a_torn_one_also_where_the_logs_have_lost_it() -> None:
    """Nobody looked at the sectors: a power cut leaves each as it was before or as it was written, and a flipped bit is
    neither."""
    files, truth = a_life(checkpoint=False)
    name = journal_of(files)
    last = groups_of(files[name])[-1]
    files = without_copy(files, state_record(3, StateRecordKind.KEY, KEY)[8:])
    rng = random.Random(4)
    for at in range(last.offset, last.offset + GROUP_HEADER + last.size):
        bad, noticed = verdict({**files, name: flipped(files[name], at, rng.randrange(8))}, truth)
        assert not bad and noticed, (at - last.offset, bad)


@pytest.mark.rule("K9", "B3")
def test_a_torn_last_group_still_says_that_those_before_it_were_durable() -> None:
    files, truth = a_life(checkpoint=False)
    name = journal_of(files)
    *_, damaged, last = groups_of(files[name])
    cut = last.offset + GROUP_HEADER + last.size // 2
    torn = files[name][:cut] + bytes(len(files[name]) - cut)
    rng = random.Random(2)
    for at in [*range(damaged.offset, damaged.offset + GROUP_HEADER), damaged.offset + GROUP_HEADER + 9]:
        bad, noticed = verdict({**files, name: flipped(torn, at, rng.randrange(8))}, truth)
        assert not bad and noticed, (at - damaged.offset, bad)


@pytest.mark.rule("K8")
def test_groups_of_another_life_or_place_are_none() -> None:
    header = GroupHeader(0, file_id=5, sequence=9, offset=8192, durable_below=8, records=1, size=100, chain=77)
    data = header.encode()
    assert len(data) == GROUP_HEADER
    assert GroupHeader.decode(data, 5, 8192) == header
    assert GroupHeader.decode(data, 6, 8192) is None
    assert GroupHeader.decode(data, 5, 4096) is None
    assert GroupHeader.decode(data[:-1], 5, 8192) is None
    assert GroupHeader.decode(bytes(GROUP_HEADER), 0, 0) is None
    for at in range(8 * GROUP_HEADER):
        assert GroupHeader.decode(flipped(data, at // 8, at % 8), 5, 8192) is None


def test_a_file_header_round_trips() -> None:
    header = FileHeader(3, 17, 99, 2)
    assert len(header.encode()) == 4096
    assert FileHeader.decode(header.encode(), "x") == header
    with pytest.raises(CorruptionError, match="x"):
        FileHeader.decode(flipped(header.encode(), 20, 1), "x")


@pytest.mark.rule("K9")
def test_records_of_another_time_behind_a_new_header_are_seen() -> None:
    """Each record has a crc of its own; the header's chain says that these are the ones it was made for."""
    files, _ = a_life(checkpoint=False)
    name = journal_of(files)
    groups = groups_of(files[name])[:-1]
    one, other = next((a, b) for a in groups for b in groups if a.offset < b.offset and a.size == b.size)
    data = bytearray(files[name])
    begin, old = other.offset + GROUP_HEADER, one.offset + GROUP_HEADER
    data[begin : begin + other.size] = data[old : old + one.size]
    assert bytes(data) != files[name]
    engine, _ = open_engine(RecordingDisk({**files, name: bytes(data)}), ROOMY)
    assert engine.report.limbo_reason is not None


@pytest.mark.rule("B7", "B5")
def test_every_flipped_bit_of_an_entry_log_is_seen_when_it_is_read() -> None:
    files, truth = a_life(checkpoint=True)
    rng = random.Random(2)
    for name in [name for name in files if name.endswith(".log")]:
        used = len(files[name].rstrip(b"\0"))
        for at in rng.sample(range(4096, used), 200):
            bad, _ = verdict({**files, name: flipped(files[name], at, rng.randrange(8))}, truth)
            assert not bad, (name, at, bad)


@pytest.mark.rule("B7", "K19", "B3", "B5")
@pytest.mark.parametrize("suffix", [".index", "manifest"])
def test_a_damaged_index_or_manifest_is_rebuilt_from_the_logs(suffix: str) -> None:
    files, truth = a_life(checkpoint=True)
    rng = random.Random(3)
    for name in [name for name in files if name.endswith(suffix)]:
        used = len(files[name])
        for at in rng.sample(range(used), min(used, 200)):
            bad, _ = verdict({**files, name: flipped(files[name], at, rng.randrange(8))}, truth)
            assert not bad, (name, at, bad)
        for kept in (b"", files[name][: used // 2]):
            bad, noticed = verdict({**files, name: kept}, truth)
            assert not bad and noticed


@pytest.mark.rule("B5", "K19")
def test_a_damaged_index_page_is_unknown_until_the_next_start_has_rebuilt_it() -> None:
    files, truth = a_life(checkpoint=True)
    disk = RecordingDisk(files)
    engine, workers = open_engine(disk, ROOMY)
    for name, inode in disk.names.items():
        if name.endswith(".index") and len(inode.data) > 4096 + 48:
            inode.data[4096 + 3] ^= 4
    answers = [read(engine, workers, *key) for key in truth.sent]
    assert any(isinstance(answer, CorruptionError) and ".index is damaged" in str(answer) for answer in answers)
    assert not any(isinstance(answer, (NoSuchEntryError, NoSuchLedgerError)) for answer in answers)
    assert isinstance(read(engine, workers, 50, 0), DataUnknownError)
    named = engine._unknowns.quarantined
    for _ in range(3):
        for key in truth.sent:
            read(engine, workers, *key)
    assert engine._unknowns.quarantined == named, "a place is named once, however often it is asked for (P12)"
    assert not engine.is_fenced(lid(60)), "fences are in memory, and sure"
    engine.append_entry(lid(60), KEY, make_entry(60, 0))
    engine.checkpoint(lambda error: None)
    workers.pump()
    engine, workers = open_engine(disk, ROOMY)
    assert engine.report.rebuilt
    assert [read(engine, workers, *key) for key in truth.sent] == list(truth.sent.values())
    assert isinstance(read(engine, workers, 50, 0), NoSuchLedgerError)


@pytest.mark.rule("K19", "M6")
def test_a_rebuilt_index_still_knows_the_deleted_ledgers_whose_logs_are_gone() -> None:
    disk = RecordingDisk()
    engine, workers = open_engine(disk)

    def fill(ledger_id: int) -> None:
        for entry_id in range(12):
            add(engine, ledger_id, entry_id, size=1000)
            engine.when_durable(lambda error: None)
            workers.pump()

    fill(1)
    engine.collect([lid(1)], lambda error: None)
    workers.pump()
    fill(3)
    engine.collect([lid(3)], lambda error: None)
    workers.pump()
    fill(2)
    for _ in range(2):
        engine.collect([], lambda error: None)
        workers.pump()
    assert engine.stats.removed_logs >= 2, "and with them the record that ledger 1 was deleted"
    engine._unknowns.found_index_damage(CorruptionError("a page"))
    engine.checkpoint(lambda error: None)
    workers.pump()
    engine, workers = open_engine(disk)
    assert engine.report.rebuilt and list(engine.ledgers()) == [2]
    for ledger_id in (1, 3):
        with pytest.raises(LedgerFencedError):
            add(engine, ledger_id, 12)


@pytest.mark.rule("B5", "K22")
def test_an_entry_log_that_went_while_the_bookie_was_stopped_is_loss_and_no_absence() -> None:
    files, truth = a_life(checkpoint=True)
    disk = RecordingDisk(files)
    engine, workers = open_engine(disk, ROOMY)
    engine.close(lambda error: None)
    workers.pump()
    files = disk.files()
    gone = min(name for name in files if name.endswith(".log"))
    engine, workers = open_engine(RecordingDisk({name: data for name, data in files.items() if name != gone}), ROOMY)
    assert engine.report.clean and f"{gone} is missing" in str(engine.report.limbo_reason)
    for key in truth.sent:
        assert not isinstance(read(engine, workers, *key), NoSuchEntryError | NoSuchLedgerError)


@pytest.mark.rule("K9", "B5", "K19")
def test_a_damaged_manifest_is_told_as_damaged_and_not_as_missing() -> None:
    files, _ = a_life(checkpoint=True)
    name = "/ledgers/manifest"
    engine, _ = open_engine(RecordingDisk({**files, name: files[name][:-1] + bytes([files[name][-1] ^ 1])}), ROOMY)
    reason = str(engine.report.limbo_reason)
    assert name in reason and "cannot be told" in reason and "missing:" not in reason
    assert any(name in place for place in engine.report.quarantined)


@pytest.mark.rule("K19", "B3", "K15", "K20")
def test_everything_can_be_had_from_logs_and_journal_alone() -> None:
    files, truth = a_life(checkpoint=True)
    kept = {name: data for name, data in files.items() if not name.endswith((".index", "manifest"))}
    disk = RecordingDisk(kept)
    for rebuilt in (True, False):
        engine, workers = open_engine(disk, ROOMY)
        assert engine.report.rebuilt is rebuilt and "manifest is missing" in str(engine.report.limbo_reason)
        assert {key: read(engine, workers, *key) for key in truth.sent} == truth.sent
        assert isinstance(read(engine, workers, 5, 0), DataUnknownError), "another log may be missing, too"
        engine.narrow_limbo([])
        assert engine.is_fenced(lid(1)) and engine.is_fenced(lid(9)) and not engine.is_fenced(lid(2))
        assert engine.explicit_lac(lid(2)) == (5, b"blob5") and engine.lac(lid(2)) == 5
        with pytest.raises(BookKeeperError):
            engine.append_entry(lid(2), b"another key" + bytes(9), make_entry(2, 6))


@pytest.mark.rule("G4", "B5")
def test_damage_in_a_scanned_log_is_quarantined_and_the_rest_is_kept() -> None:
    files, truth = a_life(checkpoint=True)
    name = "/ledgers/000001.log"
    kept = {key: data for key, data in files.items() if not key.endswith((".index", "manifest"))}
    broken = bytearray(kept[name])
    at = broken.index(make_entry(2, 3))
    broken[at + 70] ^= 1
    kept = {key: data for key, data in kept.items() if not key.endswith(".journal")}
    kept[name] = bytes(broken)
    disk = RecordingDisk(kept)
    engine, workers = open_engine(disk, ROOMY)
    assert any(name in place and str(at - 8) in place for place in engine.report.quarantined)
    answers = {key: read(engine, workers, *key) for key in truth.sent}
    assert isinstance(answers.pop((2, 3)), DataUnknownError)
    answers.pop((3, 0))  # it was in the journal only
    assert answers == {key: truth.sent[key] for key in answers}
    engine.end_limbo()
    engine.collect(lambda ledger_id: True, lambda error: None)
    workers.pump()
    assert disk.exists(name), "never removed: it may hold what nobody can name"


@pytest.mark.rule("K18", "B5")
def test_a_lost_ledger_directory_is_limbo() -> None:
    files, _ = a_life(CONFIG, checkpoint=True)
    kept = {name: data for name, data in files.items() if name.startswith("/journal")}
    engine, workers = open_engine(RecordingDisk(kept), CONFIG)
    assert engine.report.limbo_reason is not None and "no entry logs" in engine.report.limbo_reason
    assert isinstance(read(engine, workers, 1, 0), DataUnknownError)


@pytest.mark.rule("K18")
def test_a_lost_journal_directory_is_limbo() -> None:
    files, truth = a_life(checkpoint=True)
    kept = {name: data for name, data in files.items() if not name.startswith("/journal")}
    engine, workers = open_engine(RecordingDisk(kept), ROOMY)
    assert engine.report.limbo_reason is not None
    assert isinstance(read(engine, workers, 3, 1), DataUnknownError)
    assert {key: read(engine, workers, *key) for key in truth.sent} == truth.sent, "the entry logs have it"


@pytest.mark.rule("K18", "B5")
def test_a_missing_or_short_entry_log_is_limbo() -> None:
    files, truth = a_life(checkpoint=True)
    name = "/ledgers/000001.log"
    for kept in (None, files[name][:5000]):
        rest = {key: data for key, data in files.items() if key != name}
        bad, noticed = verdict(rest if kept is None else {**rest, name: kept}, truth)
        assert not bad and noticed
