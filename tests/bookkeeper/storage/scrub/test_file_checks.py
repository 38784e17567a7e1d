"""Each kind of file is read to its last byte, and what is damaged is named with the ledgers it concerns."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from bookkeeper.seams import File
from bookkeeper.storage.base.durable_file import BLOCK
from bookkeeper.storage.base.manifest import ManifestLog, read_manifest
from bookkeeper.storage.entry_log.entry_log_file import log_ids
from bookkeeper.storage.journal.group_writer import journal_ids
from bookkeeper.storage.scrub.damage import DamagedPlace, FileKind
from bookkeeper.storage.scrub.file_checks import (
    Check,
    check_journal,
    check_journals,
    check_log,
    check_manifest,
    check_segment,
    files_of,
    last_group,
)
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, add, open_engine


def lived(*, clean: bool = True, entry_log_bytes: int = CONFIG.entry_log_bytes) -> RecordingDisk:
    """Ledgers 1 and 2, in several logs."""
    disk = RecordingDisk()
    engine, workers = open_engine(disk, replace(CONFIG, entry_log_bytes=entry_log_bytes))
    for entry_id in range(60):
        for ledger in (1, 2):
            add(engine, ledger, entry_id, size=200)
        engine.when_durable(lambda error: None)
        workers.pump()
    engine.checkpoint(lambda error: None)
    workers.pump()
    if clean:
        engine.close(lambda error: None)
        workers.pump()
    return disk


def run(check: Check) -> tuple[int, list[DamagedPlace]]:
    items = list(check)
    return sum(item for item in items if isinstance(item, int)), [
        each for each in items if isinstance(each, DamagedPlace)
    ]


def everything(disk: RecordingDisk) -> list[DamagedPlace]:
    manifest = read_manifest(disk, "/ledgers")
    if manifest is None:
        return run(check_manifest(disk, "/ledgers"))[1]
    found: list[DamagedPlace] = []
    for file in files_of(disk, "/journal", manifest):
        match file.kind:
            case FileKind.MANIFEST:
                check = check_manifest(disk, "/ledgers")
            case FileKind.JOURNAL:
                check = check_journal(disk, "/journal", file.number)
            case FileKind.INDEX:
                check = check_segment(disk, "/ledgers", file.number)
            case _:
                check = check_log(disk, "/ledgers", file.number, manifest.logs[file.number])
        found += run(check)[1]
    return found


def flip(disk: RecordingDisk, path: str, offset: int) -> None:
    file = disk.open(path)
    byte = file.pread(1, offset)[0]
    file.pwrite(bytes([byte ^ 0x40]), offset)
    file.close()


@pytest.mark.parametrize("clean", [True, False])
def test_whole_files_are_read_to_their_end(clean: bool) -> None:
    disk = lived(clean=clean)
    open_before = disk.left_open
    assert everything(disk) == []
    assert disk.left_open == open_before, "no descriptor stays open"
    manifest = read_manifest(disk, "/ledgers")
    assert manifest is not None and len(manifest.logs) >= 3
    for log_id, entry in manifest.logs.items():
        size, damages = run(check_log(disk, "/ledgers", log_id, entry))
        assert not damages and size >= entry.end - BLOCK


def test_files_are_opened_for_reading_only(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = lived()
    opened: list[tuple[str, bool]] = []
    really = disk.open

    def noting(path: str, *, create: bool = False, write: bool = True, direct: bool = False) -> File:
        opened.append((path, write))
        return really(path, create=create, write=write, direct=direct)

    monkeypatch.setattr(disk, "open", noting)
    assert everything(disk) == []
    assert {path.rpartition(".")[2] for path, _ in opened} >= {"log", "index"}
    assert [path for path, write in opened if write] == []


@pytest.mark.rule("K30", "G4")
def test_every_byte_of_every_record_counts() -> None:
    disk = lived()
    manifest = read_manifest(disk, "/ledgers")
    assert manifest is not None
    log_id, rng = log_ids(disk, "/ledgers")[1], random.Random(1)
    entry, path = manifest.logs[log_id], f"/ledgers/{log_id:06x}.log"
    for _ in range(100):
        offset = rng.randrange(BLOCK, entry.end)
        flip(disk, path, offset)
        _, damages = run(check_log(disk, "/ledgers", log_id, entry))
        assert damages, offset
        assert damages[0].offset <= offset < damages[0].offset + damages[0].size
        assert damages[0].ledgers and damages[0].ledgers <= {1, 2}, "whose record it is, by the map"
        flip(disk, path, offset)


@pytest.mark.rule("K30")
def test_the_bytes_of_an_index_segment_count() -> None:
    disk = lived()
    manifest = read_manifest(disk, "/ledgers")
    assert manifest is not None
    for segment_id in manifest.segments:
        path = f"/ledgers/{segment_id:016x}.index"
        file = disk.open(path, write=False)
        size = file.size()
        file.close()
        for offset in [*range(16), *range(BLOCK, size, 7)]:
            flip(disk, path, offset)
            assert run(check_segment(disk, "/ledgers", segment_id))[1], offset
            flip(disk, path, offset)


@pytest.mark.rule("K30", "K9")
def test_the_bytes_of_durable_groups_count_and_an_unfinished_last_one_is_no_damage() -> None:
    disk = lived(clean=False)
    file_id = max(file_id for file_id in journal_ids(disk, "/journal"))
    path = f"/journal/{file_id:016x}.journal"
    groups = 3
    offsets = [BLOCK + 10, BLOCK + 300, 2 * BLOCK + 90]
    for offset in offsets[:groups]:
        flip(disk, path, offset)
        _, damages = run(check_journal(disk, "/journal", file_id))
        assert damages and damages[0].kind is FileKind.JOURNAL and damages[0].ledgers is None
        flip(disk, path, offset)
    file = disk.open(path)
    file.pwrite(bytes(file.size() - 2 * BLOCK), 2 * BLOCK)  # as if only one group had been written
    file.close()
    assert run(check_journal(disk, "/journal", file_id))[1] == []
    (found,) = run(check_journal(disk, "/journal", file_id, last=10**9))[1]
    assert "it had been durable" in found.what


def test_a_journal_is_not_looked_at_behind_what_is_durable() -> None:
    disk = lived(clean=False)
    file_id = max(file_id for file_id in journal_ids(disk, "/journal"))
    path = f"/journal/{file_id:016x}.journal"
    first = run(check_journal(disk, "/journal", file_id, last=0))
    assert first == (BLOCK, []), "the header alone"
    flip(disk, path, 3 * BLOCK)
    flip(disk, path, 10)
    _, damages = run(check_journal(disk, "/journal", file_id, last=0))
    assert [each.offset for each in damages] == [0]


@pytest.mark.rule("K30")
@pytest.mark.parametrize("ending", ["manifest", ".log", ".index"])
def test_a_file_that_is_missing_is_damaged(ending: str) -> None:
    disk = lived()
    name = next(name for name in disk.list("/ledgers") if name.endswith(ending))
    disk.unlink(f"/ledgers/{name}")
    assert [each.what for each in everything(disk)] == ["it is missing"]


@pytest.mark.rule("K18")
def test_the_journal_file_with_the_mark_is_missed() -> None:
    disk = lived()
    for file_id in journal_ids(disk, "/journal"):
        disk.unlink(f"/journal/{file_id:016x}.journal")
    assert [each.what for each in everything(disk)] == ["it is missing"]


def test_a_log_that_is_cut_off_has_lost_what_its_ledgers_had() -> None:
    disk = lived()
    entry = ManifestLog(3 * BLOCK, usage={1: [900, 3], 5: [900, 3]})
    file = disk.open("/ledgers/00ff00.log", create=True)
    file.close()
    _, damages = run(check_log(disk, "/ledgers", 0xFF00, entry, dropped={5}))
    assert damages[0].kind is FileKind.LOG and damages[0].offset == 0, "it has no header either"
    assert damages[-1].what == f"it ends at byte 0, and {3 * BLOCK} bytes were synced"
    assert damages[-1].ledgers == frozenset({1}), "ledger 5 is deleted"


def test_without_its_map_nobody_can_tell_whose_records_are_lost() -> None:
    disk = lived()
    manifest = read_manifest(disk, "/ledgers")
    assert manifest is not None
    log_id = log_ids(disk, "/ledgers")[0]
    entry, path = manifest.logs[log_id], f"/ledgers/{log_id:06x}.log"
    file = disk.open(path)
    size = file.size()
    file.close()
    flip(disk, path, size - 2)
    (map_,) = run(check_log(disk, "/ledgers", log_id, entry))[1]
    assert "footer" in map_.what and map_.ledgers == frozenset(), "the records are whole"
    flip(disk, path, BLOCK + 50)
    damages = run(check_log(disk, "/ledgers", log_id, entry))[1]
    assert len(damages) == 2 and damages[1].ledgers is None
    assert len(run(check_log(disk, "/ledgers", log_id, entry, records=False))[1]) == 1


def test_what_passes_by_itself_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = lived()
    manifest = read_manifest(disk, "/ledgers")
    assert manifest is not None
    log_id, segment_id = next(iter(manifest.logs)), next(iter(manifest.segments))

    def fails(code: int) -> None:
        def open_(path: str, **how: bool) -> object:
            raise OSError(code, "no", path)

        monkeypatch.setattr(disk, "open", open_)

    entry = manifest.logs[log_id]
    checks: tuple[Callable[[], Check], ...] = (
        lambda: check_log(disk, "/ledgers", log_id, entry),
        lambda: check_segment(disk, "/ledgers", segment_id),
        lambda: check_journal(disk, "/journal", manifest.file_id),
    )
    for make in checks:
        fails(errno.EMFILE)
        with pytest.raises(OSError, match="no"):
            run(make())
        fails(errno.EIO)
        (found,) = run(make())[1]
        assert found.what.startswith("it cannot be read")


def test_the_settings_of_the_tests_make_several_logs() -> None:
    assert CONFIG.entry_log_bytes < 60 * 200


@pytest.mark.rule("K30")
def test_behind_a_block_that_the_disk_cannot_read_it_goes_on() -> None:
    disk = lived(entry_log_bytes=1 << 20)
    manifest = read_manifest(disk, "/ledgers")
    assert manifest is not None
    log_id = log_ids(disk, "/ledgers")[0]
    entry, path = manifest.logs[log_id], f"/ledgers/{log_id:06x}.log"
    begin, end = 3 * BLOCK - 100, 3 * BLOCK - 90
    behind = entry.end - 40
    flip(disk, path, behind)
    opened = disk.open

    def open_(wanted: str, **how: bool) -> object:
        file = opened(wanted, **how)
        pread = file.pread

        def unreadable(size: int, offset: int) -> bytes:
            if wanted == path and offset < end and offset + size > begin:
                raise OSError(errno.EIO, "input/output error", path)
            return pread(size, offset)

        file.pread = unreadable  # type: ignore[method-assign]
        return file

    disk.open = open_  # type: ignore[method-assign, assignment]
    _, damages = run(check_log(disk, "/ledgers", log_id, entry))
    first = damages[0]
    assert first.what.startswith("it cannot be read") and BLOCK < first.offset <= begin
    assert first.offset + first.size == 3 * BLOCK, "the rest is read"
    assert damages[-1].offset <= behind < damages[-1].offset + damages[-1].size and len(damages) in (2, 3)
    assert all(each.ledgers and each.ledgers <= {1, 2} for each in damages)


def test_a_disk_that_reads_nothing_is_not_asked_for_every_block() -> None:
    disk = lived()
    manifest = read_manifest(disk, "/ledgers")
    assert manifest is not None
    log_id, tries = log_ids(disk, "/ledgers")[0], [0]
    opened = disk.open

    def open_(wanted: str, **how: bool) -> object:
        file = opened(wanted, **how)

        def unreadable(size: int, offset: int) -> bytes:
            tries[0] += 1
            raise OSError(errno.EIO, "input/output error", wanted)

        file.pread = unreadable  # type: ignore[method-assign]
        return file

    disk.open = open_  # type: ignore[method-assign, assignment]
    entry = ManifestLog(1 << 24, usage={1: [900, 3], 2: [10, 1]})
    monkey = disk.names[f"/ledgers/{log_id:06x}.log"].data
    monkey.extend(bytes((1 << 24) - len(monkey)))
    _, damages = run(check_log(disk, "/ledgers", log_id, entry))
    assert tries[0] < 40 and damages[-1].offset + damages[-1].size == 1 << 24
    assert damages[-1].ledgers == frozenset({1, 2})


@pytest.mark.rule("K30")
def test_no_step_reads_more_than_a_few_megabytes_and_all_that_is_read_is_told() -> None:
    """Also where nothing valid is found for a long way."""
    disk = lived()
    manifest = read_manifest(disk, "/ledgers")
    assert manifest is not None
    log_id = log_ids(disk, "/ledgers")[0]
    entry, path = manifest.logs[log_id], f"/ledgers/{log_id:06x}.log"
    size = 24 << 20
    disk.names[path].data[entry.end :] = bytes(size)
    damaged = ManifestLog(entry.end + size, usage={1: [10**6, 10**6]})
    journal_id = max(journal_ids(disk, "/journal"))
    disk.names[f"/journal/{journal_id:016x}.journal"].data[BLOCK:] = bytes(size)
    checks = (
        check_log(disk, "/ledgers", log_id, damaged),
        check_journal(disk, "/journal", journal_id, 10**9),
    )
    opened, count = disk.open, [0]

    def open_(wanted: str, **how: bool) -> object:
        file = opened(wanted, **how)
        pread = file.pread

        def counted(size: int, offset: int) -> bytes:
            data = pread(size, offset)
            count[0] += len(data)
            return data

        file.pread = counted  # type: ignore[method-assign]
        return file

    disk.open = open_  # type: ignore[method-assign, assignment]
    for check in checks:
        told, most, count[0] = 0, 0, 0
        for item in check:
            if isinstance(item, int):
                told, most, before = told + item, max(most, count[0]), count[0]
                count[0] -= before
        assert told >= size and most <= 2 << 20, (told, most)


def test_small_index_pages_are_read_many_at_once() -> None:
    disk = RecordingDisk()
    engine, workers = open_engine(disk)
    for ledger in range(1, 400):
        add(engine, ledger, 0)
    engine.when_durable(lambda error: None)
    workers.pump()
    engine.checkpoint(lambda error: None)
    workers.pump()
    manifest = read_manifest(disk, "/ledgers")
    assert manifest is not None
    (segment_id,) = manifest.segments
    opened, reads = disk.open, [0, 0]

    def open_(wanted: str, **how: bool) -> object:
        file = opened(wanted, **how)
        pread = file.pread

        def counted(size: int, offset: int) -> bytes:
            data = pread(size, offset)
            reads[0], reads[1] = reads[0] + 1, reads[1] + len(data)
            return data

        file.pread = counted  # type: ignore[method-assign]
        return file

    disk.open = open_  # type: ignore[method-assign, assignment]
    told, damages = run(check_segment(disk, "/ledgers", segment_id))
    assert damages == [] and reads[0] < 10 and told >= reads[1] - 200


@pytest.mark.rule("K30", "K9")
def test_where_the_next_journal_file_begins_the_last_group_of_this_one_is_known() -> None:
    disk = RecordingDisk()
    engine, workers = open_engine(disk)
    for entry_id in range(8):
        add(engine, 1, entry_id, size=5000)
        engine.when_durable(lambda error: None)
        workers.pump()
    ids = journal_ids(disk, "/journal")
    durable = engine._commit.groups.durable
    assert len(ids) > 2 and last_group(disk, "/journal", ids[-1]) is None
    assert run(check_journals(disk, "/journal", 0, durable))[1] == []
    missing = run(check_journals(disk, "/journal", ids[0] + 100, durable))[1]
    assert [each.what for each in missing] == ["it is missing"]
    flip(disk, f"/journal/{ids[0]:016x}.journal", BLOCK + 300)
    (found,) = run(check_journal(disk, "/journal", ids[0], last_group(disk, "/journal", ids[0])))[1]
    assert "it had been durable" in found.what
    assert len(run(check_journals(disk, "/journal", 0, durable))[1]) == 1
    flip(disk, f"/journal/{ids[1]:016x}.journal", 10)
    assert last_group(disk, "/journal", ids[0]) is None
    assert {each.offset for each in run(check_journals(disk, "/journal", 0, durable))[1]} <= {0, BLOCK}
