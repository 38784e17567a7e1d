"""How far the metadata store was when this bookie last saw it, kept on its disk: a start notices an older state.

metadata-transaction   the highest transaction of the store that the bookie has seen
metadata-beacon        the number up to which the bookie has counted in the store, and the copy of the metadata to which
                       it belongs

Both are notes with a checksum: a note that is damaged proves nothing about the metadata.
"""

from __future__ import annotations

import logging
import os
from typing import Final

from bookkeeper.bookie.identity import checked_note
from bookkeeper.errors import CookieError, MetadataRolledBackError, in_words
from bookkeeper.ids import BookieId
from bookkeeper.meta import Metadata
from bookkeeper.meta.records.rollback import RollbackCounter
from bookkeeper.seams import Disk
from bookkeeper.storage.base.durable_file import NO_SPACE, replace_file

log = logging.getLogger(__name__)

SEEN_TRANSACTION: Final = "metadata-transaction"
COUNTED: Final = "metadata-beacon"


class SeenMetadata:
    """The notes of one bookie. Made at its start, before it believes the store.

    Raises:
        CookieError: a file is damaged.
    """

    def __init__(self, metadata: Metadata, disk: Disk, directory: str, bookie: BookieId) -> None:
        self._metadata = metadata
        self._disk = disk
        self._directory = directory
        self.counter: Final = RollbackCounter(metadata.store, metadata.own("seen", bookie), metadata.present)
        """The number that this bookie counts up in the store. Counts from before a move of the metadata, or before a
        loss that an operator has accepted, are not compared."""
        metadata.present.counter = self.counter
        path = os.path.join(directory, COUNTED)
        if disk.exists(path):
            try:
                count, *lineage = checked_note.decode(disk.read_file(path)).split()
                if lineage == metadata.lineage.id.split():
                    self.counter.count = int(count)
            except ValueError as error:
                raise CookieError(_damaged(path)) from error

    async def check(self) -> None:
        """Check that the store shows no older state than this bookie saw before its last stop.

        Raises:
            MetadataRolledBackError: it shows an older state: what it says about deleted ledgers may be wrong.
            CookieError: a file is damaged.
        """
        path = os.path.join(self._directory, SEEN_TRANSACTION)
        if self._disk.exists(path):
            try:
                await self._metadata.check_not_rolled_back(checked_note.decode(self._disk.read_file(path)).encode())
            except MetadataRolledBackError as error:
                raise MetadataRolledBackError(
                    f"the metadata are in an older state than this bookie has seen ({error}): put a newer copy back; "
                    "if there is none, bk metadata accept-rollback lets the cluster go on from this one"
                ) from error
            except ValueError as error:
                raise CookieError(_damaged(path)) from error
        await self.counter.check()

    def remember(self) -> None:
        """Write down what was seen and counted, for the next start. On a full disk the older note stays: the garbage
        pass that calls this may make room."""
        notes = {
            SEEN_TRANSACTION: self._metadata.seen().decode().rstrip(),
            COUNTED: f"{self.counter.count} {self._metadata.lineage.id}".rstrip(),
        }
        try:
            for name, text in notes.items():
                replace_file(self._disk, os.path.join(self._directory, name), checked_note.encode(text))
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            log.warning(
                "the disk is full: the bookie keeps its older note of the metadata's state (%s)", in_words(error)
            )


def _damaged(path: str) -> str:
    return (
        f"{path} is damaged: it says how far the metadata were when this bookie last saw them; if you are sure that "
        "they were not put back to an older state since, remove the file"
    )
