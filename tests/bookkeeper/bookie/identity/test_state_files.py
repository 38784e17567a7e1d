"""A bookie's notes about itself are checked by the codecs that write them."""

from __future__ import annotations

import errno
from random import Random

import pytest

from bookkeeper.bookie.identity import checked_note
from bookkeeper.bookie.identity.bookie_identity import BookieIdentity, write_identity
from bookkeeper.bookie.identity.disk_identity import DiskIdentity, write_disk_identity
from bookkeeper.bookie.identity.state_files import check_state_files
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta.records import cookies
from bookkeeper.meta.records.cookies import Cookie
from bookkeeper.storage.base.durable_file import replace_file
from bookkeeper.storage.scrub.damage import DamagedPlace, FileKind
from bookkeeper.testing.world import Fault, SimDisk

B1 = BookieId("b1")
NAMES = ("VERSION", "identity.json", "birth.json", "boot", "rollback-kept", "metadata-transaction", "metadata-beacon")


def disk_with_everything() -> SimDisk:
    disk = SimDisk(Random(1))
    disk.make_directories("/d")
    cookie = Cookie(bookie_id=B1, journal_dirs=("/d",), ledger_dirs=("/d",), instance_id="x")
    replace_file(disk, "/d/VERSION", cookies.encode(cookie))
    write_identity(disk, "/d", BookieIdentity(B1, 3181))
    write_disk_identity(disk, "/d", DiskIdentity(LedgerId(7)), B1)
    for name in NAMES[3:]:
        replace_file(disk, f"/d/{name}", checked_note.encode("7"))
    return disk


def damages(disk: SimDisk) -> list[DamagedPlace]:
    return [each for each in check_state_files(disk, "/d", ["/d"]) if isinstance(each, DamagedPlace)]


def test_whole_files_are_read_and_pass() -> None:
    disk = disk_with_everything()
    assert list(check_state_files(disk, "/d", ["/d"])) == [1] * len(NAMES)
    for name in NAMES:
        disk.unlink(f"/d/{name}")
    assert list(check_state_files(disk, "/d", ["/d"])) == [], "not every bookie has each"


@pytest.mark.rule("K30")
@pytest.mark.parametrize("name", NAMES)
def test_every_one_is_missed_when_it_rots(name: str) -> None:
    disk = disk_with_everything()
    text = disk.read_file(f"/d/{name}")
    replace_file(disk, f"/d/{name}", text.replace(b"7", b"8").replace(b"3181", b"3182").replace(b"5\n", b"9\n"))
    (found,) = damages(disk)
    assert found.path == f"/d/{name}" and found.kind is FileKind.STATE and found.what and "/d/" not in found.what


def test_a_file_that_cannot_be_read_is_damaged_unless_that_passes() -> None:
    disk = disk_with_everything()
    disk.faults.append(Fault(operation="pread", code=errno.EIO, path="boot"))
    (found,) = damages(disk)
    assert found.path == "/d/boot" and found.what.startswith("it cannot be read")
    disk.faults = [Fault(operation="open", code=errno.EMFILE, path="boot")]
    with pytest.raises(OSError, match="open files"):
        damages(disk)
