"""Undoing a first start that failed before the bookie served anybody: afterwards it is as if it had never been.

The cluster must not know the bookie any more, and its directories must be as empty as before. Each step is durable
before the next one begins, so that the next start can go on wherever this one was cut short:

1. an empty file ``undone`` in every directory,
2. the cookie removed from the metadata,
3. the files removed from every directory, then the bookie's own notes, then ``VERSION``, and ``undone`` last.

A start that finds ``undone`` asks the metadata. If they have the cookie, step 2 has not been done, and nothing is
missing yet: the mark is taken away, and the first start goes on. Else step 3 is finished, and the start is a first one.
An empty file needs no space: a full disk is what first starts fail of.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Final

from bookkeeper.bookie.identity.bookie_identity import (
    COOKIE,
    IDENTITY,
    read_cookie,
    read_identity,
    remove_files,
)
from bookkeeper.bookie.identity.disk_identity import BIRTH
from bookkeeper.bookie.identity.state_files import OPENED
from bookkeeper.errors import NoSuchKeyError
from bookkeeper.meta.records.cookies import Cookie, Cookies
from bookkeeper.seams import Disk
from bookkeeper.volumes.disks.volume_list import NAME as VOLUMES
from bookkeeper.volumes.map.placement_file import NAME as PLACEMENTS

log = logging.getLogger(__name__)

UNDONE: Final = "undone"
_KEPT: Final = {UNDONE, COOKIE, "lost+found", "bookie.lock", "journal", "ledgers"}
_NOTES: Final = (OPENED, BIRTH, IDENTITY, VOLUMES, PLACEMENTS)
"""What a bookie writes into its own directory."""


async def undo_first_start(
    disk: Disk, cookies: Cookies, cookie: Cookie, directories: Sequence[str], directory: str
) -> None:
    """Undo a first start whose cookie is in all ``directories`` and in the metadata.

    Args:
        directory: the bookie's own, with its notes.

    Raises:
        MetadataError, OSError: it was cut short. The next start goes on where this one stopped.
    """
    found = await cookies.read(cookie.bookie_id)
    if found.value != cookie:
        return
    for place in directories:
        disk.open(os.path.join(place, UNDONE), create=True).close()
        disk.sync_directory(place)
    await cookies.delete(cookie.bookie_id, found.version)
    _empty(disk, directories, directory)


async def finish_undoing(
    disk: Disk, cookies: Cookies, instance_id: str, directories: Sequence[str], directory: str
) -> None:
    """Go on with an undoing that was cut short; without one do nothing. Called before the identity is read.

    Args:
        instance_id: of the cluster. What was begun in another one stays.
        directories: of the data; those of the cookie that is undone are looked at, too.
        directory: the bookie's own, with its notes.

    Raises:
        CookieError: a file is damaged.
        MetadataError: the store does not answer.
    """
    marked = _marked(disk, directories)
    cookie = next((found for place in marked if (found := read_cookie(disk, place, COOKIE)) is not None), None)
    if cookie is None:  # all else is done
        remove_files(disk, [os.path.join(place, UNDONE) for place in marked])
        return
    if cookie.instance_id != instance_id:
        return  # the start is going to be refused
    places = [*dict.fromkeys([*directories, *cookie.ledger_dirs, *cookie.journal_dirs])]
    places = [place for place in _marked(disk, places) if read_cookie(disk, place, COOKIE) in (cookie, None)]
    try:
        stands = (await cookies.read(cookie.bookie_id)).value == cookie
    except NoSuchKeyError:
        stands = False
    if stands:
        remove_files(disk, [os.path.join(place, UNDONE) for place in places])
        return
    log.warning("the first start of bookie %s was undone, and that is finished now", cookie.bookie_id)
    identity = read_identity(disk, directory)
    in_use = any(disk.exists(os.path.join(place, COOKIE)) for place in directories if place not in marked)
    others = in_use or (identity is not None and identity.bookie_id != cookie.bookie_id)
    _empty(disk, places, None if others else directory)


def _marked(disk: Disk, directories: Sequence[str]) -> list[str]:
    return [place for place in directories if disk.exists(os.path.join(place, UNDONE))]


def forget_notes(disk: Disk, directory: str) -> None:
    """Remove the bookie's notes from its own directory."""
    remove_files(disk, [os.path.join(directory, name) for name in _NOTES])


def _empty(disk: Disk, directories: Sequence[str], directory: str | None) -> None:
    """Remove the data, then the notes in ``directory``, then what says that this is going on."""
    remove_files(
        disk, [os.path.join(place, name) for place in directories for name in disk.list(place) if name not in _KEPT]
    )
    if directory is not None:
        forget_notes(disk, directory)
    for name in (COOKIE, UNDONE):
        remove_files(disk, [os.path.join(place, name) for place in directories])
