"""The small files in which a bookie keeps what it knows of itself: their names, and whether they can be read.

Each is decoded by the module that writes it. A file that is missing is no damage here: not every bookie has each.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Final

from bookkeeper.bookie.identity import checked_note
from bookkeeper.bookie.identity.bookie_identity import COOKIE, IDENTITY, read_identity
from bookkeeper.bookie.identity.disk_identity import BIRTH, read_disk_identity
from bookkeeper.bookie.identity.owner_file import NAME as OWNERS
from bookkeeper.bookie.identity.owner_file import refuse_damage as refuse_damaged_owners
from bookkeeper.bookie.identity.seen_metadata import COUNTED, SEEN_TRANSACTION
from bookkeeper.errors import BookKeeperError, in_words
from bookkeeper.ids import BookieId
from bookkeeper.meta.records import cookies
from bookkeeper.seams import Disk
from bookkeeper.storage.base.durable_file import TRANSIENT
from bookkeeper.storage.scrub.damage import DamagedPlace, FileKind
from bookkeeper.storage.scrub.file_checks import let_go
from bookkeeper.volumes.disks.volume_list import NAME as VOLUMES
from bookkeeper.volumes.disks.volume_list import VolumeList
from bookkeeper.volumes.map.placement_file import NAME as PLACEMENTS
from bookkeeper.volumes.map.placement_file import refuse_damage

OPENED: Final = "boot"
"""File with the number of the last start that had the disk open. If it exists, an empty disk is a lost disk."""
KEPT: Final = "rollback-kept"
"""File that names an accepted loss of metadata, and how many seconds unknown ledgers were kept since."""
_NOTES: Final = (OPENED, KEPT, SEEN_TRANSACTION, COUNTED)


def check_state_files(
    disk: Disk, directory: str, data_directories: list[str], bookie: BookieId | None = None
) -> Iterator[int | DamagedPlace]:
    """Read and check every such file of a bookie: how many bytes were read, and what is damaged.

    Args:
        bookie: whose they must be; None: whoever ``identity.json`` names.

    Raises:
        OSError: the disk has a passing problem.
    """
    identity = bookie
    for path, read in _files(disk, directory, data_directories):
        if not disk.exists(path):
            continue
        try:
            let_go(disk, path)
            if path.endswith(IDENTITY):
                found = read_identity(disk, directory)
                identity = identity or (found.bookie_id if found is not None else None)
            elif path.endswith(BIRTH):
                if identity is not None:
                    read_disk_identity(disk, directory, identity)
            else:
                read(disk.read_file(path))
            yield 1
        except (BookKeeperError, ValueError) as error:
            text = in_words(error).removeprefix(path).lstrip(": ").removeprefix("is damaged: ")
            yield DamagedPlace(FileKind.STATE, 0, path, 0, 0, text)
        except OSError as error:
            if error.errno in TRANSIENT:
                raise
            yield DamagedPlace(FileKind.STATE, 0, path, 0, 0, f"it cannot be read: {in_words(error, beside=path)}")


def _files(disk: Disk, directory: str, data_directories: list[str]) -> Iterator[tuple[str, Callable[[bytes], object]]]:
    for each in data_directories:
        yield os.path.join(each, COOKIE), cookies.decode
    yield os.path.join(directory, IDENTITY), bytes
    yield os.path.join(directory, BIRTH), bytes
    yield os.path.join(directory, VOLUMES), lambda data: VolumeList.decode(data, VOLUMES)
    yield os.path.join(directory, PLACEMENTS), lambda data: refuse_damage(data, PLACEMENTS)
    yield os.path.join(directory, OWNERS), lambda data: refuse_damaged_owners(data, OWNERS)
    for name in _NOTES:
        yield os.path.join(directory, name), checked_note.decode
