"""What is done to files is what it says, and leaves a witness where a bookie has to know of it."""

from __future__ import annotations

from random import Random

from bookkeeper.storage.journal.journal_format import GROUP_HEADER
from bookkeeper.testing.world import SECTOR, SimDisk
from tests.simulation.faults.damage import Damage, DirectoryBackup, LastGroup, exchange, files_of

JOURNAL, LOG, MANIFEST = "/data/journal/0000000000000001.journal", "/data/ledgers/000001.log", "/data/ledgers/manifest"
GROUP = bytes(range(200)) + bytes(3 * SECTOR)
TAIL = LastGroup(JOURNAL, 4096, GROUP)


def disk(*, witness: bool, mark: bytes = b"m") -> SimDisk:
    made = SimDisk(Random(1))
    for path in ("/data/journal", "/data/ledgers"):
        made.make_directories(path)
    log = mark * 500 + (GROUP[GROUP_HEADER:] if witness else b"")
    made.replace({JOURNAL: mark * 4096 + GROUP, LOG: log, MANIFEST: mark * 90, "/data/VERSION": mark * 40})
    return made


def changed(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def test_without_a_witness_the_last_group_rots_in_its_header_alone() -> None:
    """Records that lie nowhere else, in sectors that a cut may have left unwritten, prove nothing (K9)."""
    hit = 0
    for seed in range(300):
        one = disk(witness=False)
        before = files_of(one)
        if Damage(Random(seed), one, TAIL, None).rot() is None:
            continue
        after = files_of(one)
        (path,) = changed(before, after)
        if path == JOURNAL:
            places = [at for at, byte in enumerate(before[path]) if after[path][at] != byte]
            assert max(places) < TAIL.offset + GROUP_HEADER
            hit += max(places) >= TAIL.offset
    assert hit > 100


def test_with_a_witness_it_rots_anywhere() -> None:
    places: set[int] = set()
    for seed in range(300):
        one = disk(witness=True)
        before = files_of(one)[JOURNAL]
        Damage(Random(seed), one, TAIL, None).rot()
        places.update(at for at, byte in enumerate(before) if files_of(one)[JOURNAL][at] != byte)
    assert {at // SECTOR for at in places} >= set(range(TAIL.offset // SECTOR, TAIL.end // SECTOR + 1))


def test_the_last_journal_file_goes_only_with_a_witness() -> None:
    for witness in (False, True):
        gone = set()
        for seed in range(100):
            one = disk(witness=witness)
            before = files_of(one)
            Damage(Random(seed), one, TAIL, None).thin()
            gone.update(changed(before, files_of(one)))
        assert gone == {LOG, MANIFEST, "/data/VERSION"} | ({JOURNAL} if witness else set())


def test_an_older_copy_is_the_whole_directory_and_what_was_done_can_be_undone() -> None:
    one = disk(witness=True)
    older = {JOURNAL: b"old", MANIFEST: b"old"}
    before = files_of(one)
    dealt = Damage(Random(1), one, TAIL, DirectoryBackup(older, 1)).older_copy()
    assert dealt is not None and not dealt.may_refuse
    assert files_of(one) == older
    one.crash()
    assert files_of(one) == older, "it is durable"
    dealt.undo()
    assert files_of(one) == before


def test_data_files_change_places_and_cookies_stay() -> None:
    for seed in range(20):
        disks = disk(witness=True, mark=b"1"), disk(witness=True, mark=b"2")
        before = [files_of(one) for one in disks]
        dealt = exchange(Random(seed), *disks)
        assert dealt is not None and dealt.may_refuse
        after = [files_of(one) for one in disks]
        moved = changed(before[0], after[0])
        assert moved and "/data/VERSION" not in moved
        assert all(after[0][path] == before[1][path] and after[1][path] == before[0][path] for path in moved)
        dealt.undo()
        assert [files_of(one) for one in disks] == before
