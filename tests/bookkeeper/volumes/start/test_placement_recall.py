"""Which volume has which ledger, when a bookie starts."""

from __future__ import annotations

import errno
from random import Random
from typing import Any

import pytest

from bookkeeper.errors import (
    BookKeeperError,
    CorruptionError,
    DataUnknownError,
    NoSuchLedgerError,
)
from bookkeeper.ids import LedgerId
from bookkeeper.meta.records.disks import PlacementsEnd
from bookkeeper.storage.base.durable_file import stamp
from bookkeeper.storage.engine import Engine
from bookkeeper.testing.world import Fault
from bookkeeper.volumes.disks.volume_list import VolumeList, VolumeState, share_of, write_volumes
from bookkeeper.volumes.map.ledger_map import PlacementKind, PlacementRecord
from bookkeeper.volumes.map.placement_file import (
    decode_placements,
    encode_file,
    encode_group,
    encode_head,
    encode_record,
    offset_of,
)
from bookkeeper.volumes.map.placement_log import write_placements
from bookkeeper.volumes.start.placement_recall import recall_placements
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, KEY, make_entry
from tests.bookkeeper.volumes.doors import HOME, NOTHING_YET, Door, moving, new_disk

NEW, USED, DRAINING, DRAINED, LOST = VolumeState
PLACEMENTS = f"{HOME}/placements"


def filled() -> Door:
    """Ledgers 1 and 3 on volume 1, 2 and 4 on volume 2."""
    door = Door()
    for ledger in (1, 2, 3, 4):
        door.acked(ledger, 0, 1)
    assert door.volumes.placements.ledgers_on(1) == [1, 3] and door.volumes.placements.ledgers_on(2) == [2, 4]
    return door


def changed(door: Door, change: Any) -> dict[str, bytes]:
    """The files of a stopped bookie, with another file of placements; None: without it."""
    files = door.disk.files()
    data = change(files[PLACEMENTS])
    if data is None:
        del files[PLACEMENTS]
    else:
        files[PLACEMENTS] = data
    return files


def flipped(data: bytes) -> bytes:
    at = offset_of(0) + 6
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def with_record(data: bytes, record: PlacementRecord, size: int = 48) -> bytes:
    """A file with one record more, of whose write only so many bytes are there."""
    at = offset_of(decode_placements(data, 77, "x").end.count)
    group = encode_group([record], decode_placements(data, 77, "x").end.count, 77)
    return data[:at] + group[:size] + data[at + size :]


DAMAGE = {
    "missing": lambda data: None,
    "empty": lambda data: b"",
    "its head damaged": lambda data: data[:18] + b"?" + data[19:],
    "a record damaged": flipped,
    "another bookie's": lambda data: (
        encode_head(99, 1, 1) + encode_record(PlacementRecord(PlacementKind.PLACED, 8, 1), 0, 99)
    ),
}


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.rule("K35")
def test_without_a_loss_the_volumes_say_what_is_on_them(how: str) -> None:
    again = Door(files=changed(filled(), DAMAGE[how]))
    for life in (again, again.again()):
        assert life.volumes.placements.ledgers_on(1) == [1, 3] and life.volumes.placements.ledgers_on(2) == [2, 4]
        assert not life.volumes.suspects
        assert all(life.has(ledger, 1) for ledger in (1, 2, 3, 4))
        assert isinstance(life.read(8, 0), NoSuchLedgerError)


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.rule("B12")
def test_with_a_loss_nobody_can_tell_what_was_lost(how: str) -> None:
    with pytest.raises(CorruptionError, match=r"/home/placements .*/d2 is lost: which ledgers were on it cannot be"):
        Door(files=changed(filled(), DAMAGE[how]), without=[2])


@pytest.mark.parametrize("how", ["its head damaged", "a record damaged", "missing"])
@pytest.mark.rule("B12")
def test_a_loss_counts_also_when_its_directory_is_used_again(how: str) -> None:
    """The ledgers that were lost are not whole yet; the list names the new volume alone."""
    door = filled()
    door.volumes.members.lose(2, "burnt")
    door.pump()
    files = changed(door, DAMAGE[how])
    listed = door.volumes.volume_list.with_new("/d2", "/d2", USED)
    files = {path: data for path, data in files.items() if not path.startswith("/d2/")}
    disk = RecordingDisk(files)
    write_volumes(disk, HOME, listed)
    try:
        again = Door(files=disk.files())
    except CorruptionError as error:
        assert "placements" in str(error)
    else:
        for ledger in (2, 4):
            assert isinstance(again.read(ledger, 0), DataUnknownError), f"ledger {ledger} is denied"


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.rule("B3", "B12")
def test_without_the_places_nobody_can_tell_which_fences_were_lost(how: str) -> None:
    """All ledgers are whole again. Which of them had their fence on the lost disk only the damaged file has said."""
    door = filled()
    assert door.fenced(2) is None
    door.volumes.members.lose(2, "burnt")
    door.pump()
    for ledger in (2, 4):
        door.acked(ledger, 0, 1, recovery=True)
        assert door.volumes.end_suspicion(LedgerId(ledger), door.volumes.suspicion(LedgerId(ledger)))
    door.pump()
    files = {path: data for path, data in door.disk.files().items() if not path.startswith("/d2/")}
    disk = RecordingDisk(files)
    write_volumes(disk, HOME, door.volumes.volume_list.with_new("/d2", "/d2", USED))
    door = Door(files=disk.files()).again()
    assert not door.volumes.suspects and door.has(2, 0)
    again = Door(files=changed(door, DAMAGE[how]))
    for life in (again, again.again()):
        for ledger in (1, 2, 3, 4):
            assert life.volumes.is_fenced(LedgerId(ledger))
            with pytest.raises(BookKeeperError):
                life.add(ledger, 2)
        life.acked(5, 0)
        assert life.volumes.suspects == {1, 2, 3, 4}
    for ledger in (1, 3, 2, 4):
        assert again.volumes.end_suspicion(LedgerId(ledger), again.volumes.suspicion(LedgerId(ledger)))
    assert all(again.has(ledger, 1) for ledger in (1, 2, 3, 4))


def test_a_torn_tail_is_cut() -> None:
    door = filled()
    half = PlacementRecord(PlacementKind.PLACED, 9, 1)
    again = Door(files=changed(door, lambda data: with_record(data, half, 13)), without=[2])
    assert again.volumes.suspects == {2, 4}
    assert decode_placements(again.disk.files()[PLACEMENTS], 77, "x").tidy
    again.acked(9, 0)
    assert again.again().has(9, 0)


def test_a_group_torn_by_a_crash_is_no_damage_and_keeps_no_start_from_its_way() -> None:
    """Nobody was answered: of a group that was being written any part may be there."""
    door = filled()
    door.volumes.members.lose(2, "burnt")
    door.pump()
    door = door.again()
    for ledger in range(100, 160):  # three sectors
        door.add(ledger, 0)
    door.volumes.when_durable(lambda error: None)
    door.pump()
    for done, name, files in door.crash_images(Random(2), 20):
        again = Door(files=files)
        assert again.volumes.suspects == {2, 4}, (done, name)
        assert again.has(1, 1)


def test_ledgers_of_a_volume_that_is_not_there_are_lost_and_stay_lost() -> None:
    door = filled()
    again = door.again(without=[2])
    for life in (again, again.again(), again.again().again()):
        assert life.volumes.suspects == {2, 4} and life.volumes.placements.volumes == {1}
        assert isinstance(life.read(2, 0), DataUnknownError) and life.has(1, 0)


def test_a_volume_that_works_again_says_nothing_about_ledgers_that_were_lost() -> None:
    """The loss is durable, the list of volumes is not: the copies of then do not count."""
    door = filled()
    lost = PlacementRecord(PlacementKind.VOLUME_LOST, volume=2)
    again = Door(files=changed(door, lambda data: with_record(data, lost)))
    assert again.volumes.suspects == {2, 4}
    assert isinstance(again.read(2, 0), DataUnknownError)
    assert 2 not in set(again.volumes.ledgers())


def test_a_copy_that_a_move_has_left_does_not_count() -> None:
    door = filled()
    for entry in (0, 1):
        door.engine(2).append_entry(LedgerId(1), KEY, make_entry(1, entry), recovery=True)
    assert door.done(door.engine(2).when_durable) is None
    door.acked(1, 2)
    again = door.again()
    assert again.volumes.placements.volume_of(1) == 1 and again.has(1, 2)
    assert sorted(again.volumes.ledgers()) == [1, 2, 3, 4]
    assert again.again(without=[2]).has(1, 2)


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.rule("B5", "K35")
def test_of_two_copies_none_counts_when_the_file_is_damaged(how: str) -> None:
    """A move that a crash cut short has left a part of a ledger on another volume, maybe on one before its own."""
    door = filled()
    door.engine(2).append_entry(LedgerId(1), KEY, make_entry(1, 0), recovery=True)
    assert door.done(door.engine(2).when_durable) is None
    door.engine(1).append_entry(LedgerId(2), KEY, make_entry(2, 0), recovery=True)
    assert door.done(door.engine(1).when_durable) is None
    again = Door(files=changed(door, DAMAGE[how]))
    assert again.volumes.suspects == {1, 2}
    for ledger in (1, 2):
        for entry in (1, 9):
            assert isinstance(again.read(ledger, entry), DataUnknownError | bytes), (ledger, entry)
    assert again.has(3, 1)


def test_a_ledger_that_is_placed_and_of_which_nothing_was_stored_is_nowhere() -> None:
    door = filled()
    more = PlacementRecord(PlacementKind.PLACED, 50, 2)
    again = Door(files=changed(door, lambda data: with_record(data, more)))
    assert again.volumes.placements.volume_of(50) is None and not again.volumes.suspects
    assert isinstance(again.read(50, 0), NoSuchLedgerError)
    assert not again.again(without=[2]).volumes.suspects & {50}


def test_entries_without_a_record_are_found() -> None:
    """The record did not become durable, the entries did: nobody was answered, and they count."""
    door = filled()
    again = Door(files=changed(door, lambda data: data[: offset_of(3)]))
    assert again.volumes.placements.volume_of(4) == 2 and again.has(4, 1)
    assert again.again(without=[2]).volumes.suspects == {2, 4}


def test_a_file_with_many_needless_records_is_written_anew() -> None:
    door = filled()
    engines = {1: door.engine(1), 2: door.engine(2)}
    records = [PlacementRecord(PlacementKind.PLACED, 1, 1), *door.volumes.placements.records()]
    for many, expected in ((500, 504), (1010, 4)):
        disk = RecordingDisk()
        write_placements(disk, HOME, 77, 1, [records[0]] * many + records[1:])
        listed = door.volumes.volume_list
        found = recall_placements(disk, HOME, listed, engines, boot=2, published=NOTHING_YET)
        assert found.end.count == expected, many
        assert set(found.placements.records()) == set(door.volumes.placements.records())


@pytest.mark.rule("K17", "K23", "K35")
@pytest.mark.parametrize("sync_fails", [False, True])
def test_what_a_start_finds_of_places_outlives_a_power_cut(sync_fails: bool) -> None:
    """A process wrote a record and was killed before the sync, or the sync failed: the next one reads it, says what it
    says, and must be able to say so again."""
    disk, listed = new_disk(), VolumeList(5)
    write_placements(disk, HOME, 5, 1, ())
    file = disk.open(PLACEMENTS)
    file.pwrite(encode_group([PlacementRecord(PlacementKind.WHOLE, 7)], 0, 5), offset_of(0))
    if sync_fails:
        disk.faults.append(Fault(operation="sync", code=errno.EIO, times=1))
        with pytest.raises(OSError):
            file.sync()
    disk.process_died()
    for _ in range(2):
        found = recall_placements(disk, HOME, listed, {}, boot=2, published=NOTHING_YET)
        assert found.placements.retired == {7} and found.end.count == 1
        disk.crash(keep=0.0)


def test_what_a_start_finds_is_made_durable_without_space() -> None:
    disk = new_disk()
    write_placements(disk, HOME, 5, 1, [PlacementRecord(PlacementKind.WHOLE, 7)])
    disk.capacity = disk.used()
    found = recall_placements(disk, HOME, VolumeList(5), {}, boot=2, published=PlacementsEnd(1, 1))
    assert found.placements.retired == {7}


@pytest.mark.parametrize("doubt", ["limbo", "rebuilt", ""])
@pytest.mark.rule("B5")
def test_what_a_volume_in_doubt_lacks_is_still_placed_there(doubt: str) -> None:
    """Else it would be denied: that nothing of it is there is what the volume does not know."""
    door = filled()
    listed = door.volumes.volume_list
    disk = RecordingDisk({path: data for path, data in door.disk.files().items() if not path.startswith("/d1/")})
    engines = {each.number: Engine.open(share_of(CONFIG, each, 1), disk, QueueWorkers()) for each in listed}
    if doubt == "limbo":
        engines[1].report.limbo_reason = "a file is gone"
    engines[1].report.rebuilt = doubt == "rebuilt"
    found = recall_placements(disk, HOME, listed, engines, boot=2, published=NOTHING_YET)
    assert found.placements.ledgers_on(1) == ([1, 3] if doubt else [])


# -- a file that ends early ---------------------------------------------------------------------------------


def cut(records: int) -> Any:
    """What changes a file into one that ends with so many records, and shows no damage."""

    def change(data: bytes) -> bytes:
        found = decode_placements(data, 77, "x")
        return encode_file(found.records[:records], 77, found.end.generation)[0]

    return change


def cut_there(records: int) -> Any:
    """The same by cutting the file itself, at a record's border."""
    return lambda data: data[: offset_of(records)]


def an_older_copy(records: int) -> Any:
    """The same by putting back what the file was before its last groups: it has its end."""

    def change(data: bytes) -> bytes:
        found = decode_placements(data, 77, "x")
        older, _ = encode_file((), 77, found.end.generation)
        return older[: offset_of(0)] + encode_group(found.records[:records], 0, 77) + older[offset_of(1) :]

    return change


SHORTER = {"cut": cut_there, "an older copy": an_older_copy, "cut and given an end": cut}


@pytest.mark.parametrize("how", SHORTER)
@pytest.mark.rule("K35", "K32", "B5")
def test_with_a_loss_a_file_that_ends_early_is_refused_as_one_that_is_missing(how: str) -> None:
    """Cause: nothing outside of the file said where it ends, and each of its prefixes is a good file. With a disk dead
    the ledgers that were placed behind the cut were denied, and a recovery closed a ledger before entries that were
    acknowledged."""
    door = filled()
    end = door.published[-1][1]
    assert end == PlacementsEnd(1, 4)
    for records in range(4):
        with pytest.raises(CorruptionError, match=r"placements was cut, or put back .*/d2 is lost: which ledgers"):
            Door(files=changed(door, SHORTER[how](records)), without=[2], published=end, boot=2)
    again = Door(files=door.disk.files(), without=[2], published=end, boot=2)
    assert again.volumes.suspects == {2, 4}


@pytest.mark.parametrize("how", SHORTER)
@pytest.mark.rule("K35", "K32", "B3", "B5")
def test_a_ledger_that_was_moved_is_in_doubt_where_the_file_ends_before_the_move(how: str) -> None:
    """Cause: as above. The source was taken for the ledger's volume: entries that were acknowledged after the move were
    denied, the durable fence was gone, and a regular add was taken."""
    door = filled()
    move = moving(door, 1)
    assert door.done(lambda done: door.volumes.moves.finish(move, done)) is None
    door.acked(1, 2)
    assert door.fenced(1) is None
    end = door.published[-1][1]
    for records in range(5):
        again = Door(files=changed(door, SHORTER[how](records)), published=end, boot=2)
        assert again.volumes.suspects == {1}
        assert isinstance(again.read(1, 2), bytes | DataUnknownError)
        assert again.volumes.is_fenced(LedgerId(1))
        with pytest.raises(BookKeeperError):
            again.add(1, 3)
        assert all(again.has(ledger, 1) for ledger in (2, 3, 4))
        last = again.published[-1][1]
        assert last > end, "the next start believes what this one has written"
        further = again.again(published=last, boot=3)
        assert further.volumes.suspects == {1} and further.published[-1][1] == last


@pytest.mark.rule("K35", "B3")
def test_a_ledger_that_was_in_doubt_stays_retired_when_the_file_is_damaged_again() -> None:
    """Its fence may have been in the copy that did not count; that it is retired only the file has said."""
    door = filled()
    move = moving(door, 1)
    assert door.done(lambda done: door.volumes.moves.finish(move, done)) is None
    again = Door(files=changed(door, cut(2)), published=door.published[-1][1], boot=2)
    assert again.volumes.suspects == {1}
    assert again.volumes.end_suspicion(LedgerId(1), again.volumes.suspicion(LedgerId(1)))
    again.pump()
    further = Door(files=changed(again, DAMAGE["missing"]), published=again.published[-1][1], boot=3)
    assert further.volumes.is_fenced(LedgerId(1))


@pytest.mark.rule("K35", "K32")
def test_what_was_let_go_of_is_not_lost_when_the_file_is_older() -> None:
    """The file still has ledgers on a directory that is drained: they were moved since."""
    door = filled()
    older = door.disk.files()[PLACEMENTS]
    for ledger in (1, 3):
        move = moving(door, ledger)
        assert door.done(lambda done, move=move: door.volumes.moves.finish(move, done)) is None  # type: ignore[misc]
    assert door.done(lambda done: door.volumes.members.set_state(1, DRAINED, done)) is None
    again = Door(files={**door.disk.files(), PLACEMENTS: older}, published=door.published[-1][1], boot=2)
    assert not again.volumes.suspects and all(again.has(ledger, 1) for ledger in (1, 2, 3, 4))


@pytest.mark.rule("K32")
def test_a_file_is_whole_where_it_ends_at_or_behind_what_was_published() -> None:
    door = filled()
    for published in (None, NOTHING_YET, PlacementsEnd(1, 0), PlacementsEnd(1, 4)):
        again = Door(files=door.disk.files(), published=published, boot=2)
        assert not again.volumes.suspects
        assert again.volumes.placement_log.end == PlacementsEnd(1, 4)
    for published in (PlacementsEnd(1, 5), PlacementsEnd(2, 0)):
        with pytest.raises(CorruptionError):
            Door(files=door.disk.files(), without=[2], published=published, boot=3)


@pytest.mark.rule("K32")
def test_of_a_file_of_which_nothing_was_published_the_end_must_be_there() -> None:
    door = filled()
    with pytest.raises(CorruptionError, match="placements was cut: its end is missing, and /d2 is lost"):
        Door(files=changed(door, cut_there(3)), without=[2], published=None, boot=2)
    rewritten = Door(files=changed(door, cut_there(4)), boot=2)
    assert rewritten.volumes.placement_log.end == PlacementsEnd(2, 4)
    for published in (None, PlacementsEnd(1, 4)):
        with pytest.raises(CorruptionError, match="it was cut, and /d2 is lost"):
            Door(files=changed(rewritten, cut_there(3)), without=[2], published=published, boot=3)


def test_a_file_of_the_first_version_is_read_and_written_anew() -> None:
    door = filled()
    first = stamp(b"BKPL", 1, (77).to_bytes(8, "big"))
    first += b"".join(encode_record(each, at, 77) for at, each in enumerate(door.volumes.placements.records()))
    files = changed(door, lambda data: first)
    again = Door(files=files, published=None, boot=2, without=[2])
    assert again.volumes.suspects == {2, 4} and again.volumes.placement_log.end.generation == 2
    assert decode_placements(again.disk.files()[PLACEMENTS], 77, "x").tidy
    with pytest.raises(CorruptionError, match="put back from an older copy"):
        Door(files=files, published=PlacementsEnd(2, 0), boot=3, without=[2])
