"""What a start makes of several directories and of the file of placements, whatever state they are in."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from bookkeeper.errors import (
    CookieError,
    CorruptionError,
    StorageError,
)
from bookkeeper.real.disk import PosixDisk
from bookkeeper.storage.base.durable_file import SyncFailedError
from bookkeeper.testing.world import Fault
from bookkeeper.volumes.disks.volume_list import VolumeList, VolumeState, read_volumes, share_of, write_volumes
from bookkeeper.volumes.start.volume_directories import (
    is_disk_failure,
    list_volumes,
    lose_offline,
    lost,
    refuse_emptied,
    refuse_filled,
    without_failed,
    without_forgotten,
)
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG
from tests.bookkeeper.volumes.doors import HOME, Door, new_disk

NEW, USED, DRAINING, DRAINED, LOST = VolumeState


def states(listed: VolumeList) -> dict[str, str]:
    return {each.ledger_dir: each.state.value for each in listed}


def test_a_new_bookie_has_new_volumes() -> None:
    disk = new_disk("/a")
    listed = list_volumes(disk, HOME, [("/a", "/ja"), ("/b", "/b")], CONFIG, 9)
    assert [(each.number, each.ledger_dir, each.journal_dir) for each in listed] == [(1, "/a", "/ja"), (2, "/b", "/b")]
    assert states(listed) == {"/a": "new", "/b": "new"} and listed.file_id == 9
    assert read_volumes(disk, HOME) is None, "it writes nothing"


def test_a_bookie_that_had_one_directory_has_its_data_in_a_volume_that_is_used() -> None:
    door = Door(1)
    door.acked(1, 0)
    disk = RecordingDisk({path: data for path, data in door.disk.files().items() if path.startswith("/d1/")})
    for path in ("/d1", "/d2"):
        disk.names[path] = disk.names[next(iter(disk.names))]  # the directories are there
    listed = list_volumes(disk, HOME, [("/d2", "/d2"), ("/d1", "/d1")], CONFIG, 9)
    assert states(listed) == {"/d2": "new", "/d1": "used"}


def test_a_known_bookie_has_its_list_and_what_is_configured_now() -> None:
    disk = new_disk("/a", "/b", "/c", "/e")
    listed = VolumeList(5)
    for place, state in (("/a", USED), ("/b", DRAINED), ("/c", LOST), ("/e", DRAINED)):
        listed = listed.with_new(place, place, state)
    write_volumes(disk, HOME, listed)
    found = list_volumes(disk, HOME, [("/a", "/a"), ("/b", "/b"), ("/f", "/f")], CONFIG, 9)
    assert states(found) == {"/a": "used", "/b": "drained", "/c": "lost", "/f": "new"}
    assert found.file_id == 5 and found.entries[-1].number == 5
    with pytest.raises(CookieError, match="/a holds ledgers of this bookie"):
        list_volumes(disk, HOME, [("/b", "/b")], CONFIG, 9)
    assert states(without_forgotten(listed, ["/b"])) == {"/a": "used", "/b": "drained", "/c": "lost"}
    assert without_forgotten(listed, []).next_number == listed.next_number


@pytest.mark.parametrize("code", [errno.EIO, errno.ENODEV, errno.EROFS, errno.ESTALE, errno.ENOTCONN])
@pytest.mark.parametrize("place", ["/a", "/ja"])
def test_a_disk_that_cannot_be_listed_is_lost(code: int, place: str, caplog: pytest.LogCaptureFixture) -> None:
    disk = new_disk("/a", "/ja", "/b")
    disk.faults.append(Fault(operation="list", code=code, path=place))
    listed = VolumeList(1).with_new("/a", "/ja", USED).with_new("/b", "/b", USED)
    found = without_failed(disk, listed, HOME)
    assert states(found) == {"/a": "lost", "/b": "used"} and found.entries[0].reason
    assert "ledger directory /a does not work" in caplog.text


def test_a_directory_that_is_not_mounted_is_not_lost() -> None:
    disk = new_disk("/a")
    listed = VolumeList(1).with_new("/a", "/a", USED).with_new("/b", "/b", USED)
    assert without_failed(disk, listed, HOME) == listed
    assert without_failed(disk, VolumeList(1).with_new("/c", "/c"), HOME).entries[0].state is NEW


def test_without_any_disk_there_is_no_start() -> None:
    disk = new_disk("/a", "/b")
    disk.faults.append(Fault(operation="list", code=errno.EIO))
    listed = VolumeList(1).with_new("/a", "/a", USED).with_new("/b", "/b", USED).with_new("/c", "/c", LOST)
    with pytest.raises(StorageError, match="the new ledger directory /a does not work: gone"):
        lost(listed, VolumeList(1).with_new("/a", "/a").entries[0], OSError("gone"))
    with pytest.raises(StorageError, match="no ledger directory of this bookie works: /b: "):
        without_failed(disk, listed, HOME)
    with pytest.raises(StorageError, match="no ledger directory of this bookie works: /a: gone"):
        lost(VolumeList(1).with_new("/a", "/a", USED), listed.entries[0], OSError("gone"))


def _caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.EIO, "x"), True),
        (OSError(errno.EUCLEAN, "x"), True),
        (_caused(SyncFailedError("x"), OSError(errno.EIO, "x")), True),
        (_caused(StorageError("y"), _caused(SyncFailedError("x"), OSError(errno.ENXIO, "x"))), True),
        (OSError(errno.ENOENT, "x"), False),
        (OSError(errno.EACCES, "x"), False),
        (OSError(errno.ENOSPC, "x"), False),
        (CorruptionError("x"), False),
        (None, False),
    ],
)
def test_what_says_that_a_disk_does_not_work(error: BaseException | None, expected: bool) -> None:
    assert is_disk_failure(error) is expected


def test_an_empty_directory_that_was_used_is_refused() -> None:
    door = Door(2)
    listed = door.volumes.volume_list
    refuse_emptied(door.disk, listed, CONFIG, HOME)
    for path in [path for path in door.disk.names if path.startswith("/d2/")]:
        del door.disk.names[path]
    with pytest.raises(CookieError) as raised:
        refuse_emptied(door.disk, listed, CONFIG, HOME)
    assert str(raised.value) == (
        "/d2 is empty, but ledgers of this bookie were on it: mount its disk; or, if that is lost, give it up with "
        "`bk bookie lose-directory --dir /home /d2`"
    )
    for state in (NEW, LOST, DRAINED):
        refuse_emptied(door.disk, listed.with_state(2, state), CONFIG, HOME)


def test_a_new_directory_with_data_is_refused() -> None:
    door = Door(1)
    entry = door.volumes.volume_list.entries[0]
    assert door.done(door.volumes.close) is None
    with pytest.raises(CookieError, match=r"/d1 \(journal in /d1\) is not empty, and a new ledger directory must be"):
        refuse_filled(door.disk, share_of(CONFIG, entry, 1))
    refuse_filled(RecordingDisk(), share_of(CONFIG, entry, 1))


def test_a_directory_that_somebody_has_open_is_refused_and_not_to_be_emptied() -> None:
    """It may be this bookie's own, under another name."""
    door = Door(1)
    door.disk.open("/d1/lock", create=True).close()  # as a real disk has it
    config = share_of(CONFIG, door.volumes.volume_list.entries[0], 1)
    with pytest.raises(CookieError, match=r"^/d1 is in use by a bookie, perhaps under another name") as caught:
        refuse_filled(door.disk, config)
    assert "empty" not in str(caught.value)
    assert door.done(door.volumes.close) is None
    for _ in range(2):
        with pytest.raises(CookieError, match=r"/d1 \(journal in /d1\) is not empty"):
            refuse_filled(door.disk, config)


@pytest.mark.parametrize("state", [NEW, USED])
def test_a_file_in_the_place_of_a_directory_ends_the_start(state: VolumeState, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "c").write_text("x")
    listed = VolumeList(1)
    for name in ("a", "b", "c"):
        listed = listed.with_new(str(tmp_path / name), str(tmp_path / name), state)
    what = "choose a directory" if state is NEW else f"mount its disk; .*lose-directory --dir {HOME} {tmp_path}/c"
    with pytest.raises(CookieError, match=f"{tmp_path}/c is no directory: {what}"):
        without_failed(PosixDisk(), listed, HOME)


def test_a_volume_of_a_stopped_bookie_is_given_up() -> None:
    disk = new_disk("/a", "/b")
    listed = VolumeList(1).with_new("/a", "/a", USED).with_new("/b", "/b", DRAINING).with_new("/c", "/c", LOST)
    with pytest.raises(CookieError, match="/a is no ledger directory in use of the bookie in /home"):
        lose_offline(disk, HOME, "/a")
    write_volumes(disk, HOME, listed)
    for wrong in ("/c", "/x"):
        with pytest.raises(CookieError, match=f"{wrong} is no ledger directory in use"):
            lose_offline(disk, HOME, wrong)
    assert lose_offline(disk, HOME, "/b").number == 2
    found = read_volumes(disk, HOME)
    assert found is not None and states(found) == {"/a": "used", "/b": "lost", "/c": "lost"}
    with pytest.raises(CookieError, match="/a is the last ledger directory of the bookie in /home"):
        lose_offline(disk, HOME, "/a")


# -- what is on each --------------------------------------------------------------------------------------
