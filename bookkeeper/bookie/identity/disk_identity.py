"""Which ledgers existed when a bookie started on empty storage.

Storage is empty in a new bookie, and in one whose disk and cookie an operator took away. In the second case
acknowledged entries and fences of this id are gone, and nobody else knows. So before such a bookie serves, and before
others know it, it looks at every ledger, and keeps in ``birth.json``

* ``highest``: no ledger that existed then, or was deleted before, has a greater id (unless its id was chosen by hand,
  and it was deleted). A ledger with a greater id is younger than this disk: nothing of it can have been lost here.
* ``suspects`` (the file's word), the ledgers in *doubt*: their metadata name this bookie, or cannot be read. The bookie
  may have had entries of them.

The file is durable before the storage is opened for the first time; after a crash in between the next start begins
anew. Nothing else holds what the file says. So a bookie that finds it missing, damaged or put back from an older copy
looks at all ledgers once more (the metadata hold the greatest ``highest`` and the number of starts).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from bookkeeper.amounts import counted
from bookkeeper.codec import crc32c
from bookkeeper.errors import (
    CookieError,
    IdsUsedUpError,
    MetadataFormatError,
    NoSuchKeyError,
    NoSuchLedgerError,
)
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta import Metadata
from bookkeeper.meta.records.layout import SHORT_MAX
from bookkeeper.seams import Disk
from bookkeeper.storage.base.durable_file import replace_file

log = logging.getLogger(__name__)

BIRTH: Final = "birth.json"
NO_LEDGER: Final = LedgerId(-1)
"""Stands for "no ledger": below every ledger id."""

READS: Final = 100
"""Ledgers whose metadata are read at a time."""


@dataclass(frozen=True, slots=True)
class DiskIdentity:
    """What ``birth.json`` says: the mark ``highest`` and the ledgers in doubt."""

    highest: LedgerId = NO_LEDGER
    doubted: frozenset[LedgerId] = frozenset()

    def with_highest(self, ledger_id: LedgerId) -> DiskIdentity:
        """A copy for a disk that lost something later, when ``ledger_id`` was the greatest id."""
        return replace(self, highest=max(self.highest, ledger_id))


def read_disk_identity(disk: Disk, directory: str, bookie: BookieId) -> DiskIdentity | None:
    """Read ``birth.json``. None if there is none: the bookie began on a new cluster.

    Raises:
        CookieError: the file is damaged, or belongs to another bookie.
    """
    path = os.path.join(directory, BIRTH)
    if not disk.exists(path):
        return None
    try:
        found = json.loads(disk.read_file(path))
        disk_identity = DiskIdentity(
            LedgerId(int(found["highest"])), frozenset(LedgerId(int(key)) for key in found["suspects"])
        )
        crc, whose = found.get("crc"), found.get("bookie", bookie)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CookieError(f"{path} is damaged: {error}") from error
    if crc is not None and crc != _crc(disk_identity):  # files of before it was kept have none
        raise CookieError(f"{path} is damaged: its checksum does not match")
    if whose != bookie:
        raise CookieError(f"{path} belongs to bookie {whose}, not to {bookie}")
    return disk_identity


def write_disk_identity(disk: Disk, directory: str, disk_identity: DiskIdentity, bookie: BookieId) -> None:
    """Write ``birth.json``. It is durable when this returns."""
    found = {
        "bookie": bookie,
        "highest": disk_identity.highest,
        "suspects": sorted(disk_identity.doubted),
        "crc": _crc(disk_identity),
    }
    replace_file(disk, os.path.join(directory, BIRTH), json.dumps(found).encode() + b"\n")


def _crc(disk_identity: DiskIdentity) -> int:
    return crc32c(" ".join(map(str, [disk_identity.highest, *sorted(disk_identity.doubted)])).encode())


async def survey(metadata: Metadata, bookie: BookieId, *, served_before: bool = False) -> DiskIdentity:
    """Read the metadata of every ledger. One round trip on a new cluster, and one more for each hundred ledgers.

    Args:
        served_before: a bookie of this id has served; it may also have had ledgers that are deleted by now.

    Raises:
        MetadataError: the store does not answer.
    """
    listed = [ledger async for ledger in metadata.ledgers.list()]  # after a sync
    listed += [ledger async for ledger in metadata.ledgers.restorable.all()]
    if not listed and not served_before:
        return DiskIdentity()
    log.info(
        "bookie %s starts on an empty disk: it reads the metadata of %s once", bookie, counted(len(listed), "ledger")
    )
    highest = max(listed, default=NO_LEDGER)
    return DiskIdentity(await newest(metadata, highest), await naming(metadata, bookie, listed))


async def newest(metadata: Metadata, highest: LedgerId) -> LedgerId:
    """An id not below ``highest``, and above every id that was ever generated, also for ledgers that are deleted.

    Raises:
        MetadataError: the store does not answer.
    """
    try:
        return max(highest, await metadata.ledgers.next_id())
    except IdsUsedUpError:
        return max(highest, LedgerId(SHORT_MAX))


async def naming(metadata: Metadata, bookie: BookieId, ledgers: Iterable[LedgerId]) -> frozenset[LedgerId]:
    """The ledgers among ``ledgers`` whose metadata name the bookie, or cannot be read. Metadata of a deleted ledger
    that can be brought back count as well.

    Raises:
        MetadataError: the store does not answer.
    """

    async def is_named(ledger: LedgerId) -> bool:
        try:
            try:
                found = (await metadata.ledgers.read(ledger)).value
            except NoSuchLedgerError:
                found = (await metadata.ledgers.restorable.read(ledger)).metadata
        except NoSuchKeyError:
            return await metadata.store.exists(metadata.ledgers.path(ledger)) is not None  # brought back just now
        except MetadataFormatError:
            return True
        return any(bookie in fragment.ensemble for fragment in found.fragments)

    named: set[LedgerId] = set()
    rest = sorted(ledgers)
    for at in range(0, len(rest), READS):
        some = rest[at : at + READS]
        answers = await asyncio.gather(*map(is_named, some))
        named.update(ledger for ledger, answer in zip(some, answers, strict=True) if answer)
    return frozenset(named)
