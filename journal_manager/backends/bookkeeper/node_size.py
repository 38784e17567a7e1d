"""How full a journal's record in the metadata store is: about 150 bytes for each segment, until it is purged (pure)."""

from __future__ import annotations

import logging
from typing import Final

from journal_manager.errors import JournalFullError

_log = logging.getLogger(__name__)

RECORD_MAX: Final = 960 * 1024
"""No segment begins if the record were longer. ZooKeeper takes requests of up to 1 MiB; the rest is left for what must
always be possible: to claim the journal, to end a segment, to discard edits, and to purge."""

RECORD_WARNED: Final = RECORD_MAX // 2
"""From so many bytes on a writer warns."""

ADVICE: Final = (
    "remove what newer snapshots hold already, with purge of the edit log or bk journal purge; a replica does so by "
    "its retention policy"
)


def ensure_snapshots_fit(name: str, size: int, snapshots: int) -> None:
    """A journal's list of snapshots, which grows by one, fits into a value of the metadata store.

    Raises:
        JournalFullError: it does not. Nothing was changed.
    """
    if size > RECORD_MAX:
        raise JournalFullError(
            f"journal {name} keeps {snapshots - 1} snapshots, and the list of them is full ({size} of {RECORD_MAX} "
            "bytes with one more): no other can be kept; remove old ones, with delete_snapshot of the edit log or "
            "bk journal purge; a replica does so by its retention policy"
        )


class NodeSize:
    """Watches the record of one writer's journal."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._warned = False

    def begins(self, size: int, segments: int) -> None:
        """A segment is to begin; the record has ``size`` bytes and ``segments`` then. Warns once from half of
        RECORD_MAX on, and again when it was below that since.

        Raises:
            JournalFullError: it would be longer than RECORD_MAX. Nothing was changed.
        """
        if size > RECORD_MAX:
            raise JournalFullError(
                f"the record of journal {self._name} lists {segments - 1} segments and is full ({size} of {RECORD_MAX} "
                f"bytes with one more): no segment can begin; {ADVICE}. Then open the journal again"
            )
        if size >= RECORD_WARNED and not self._warned:
            _log.warning(
                "the record of journal %s lists %d segments and is %d %% full (%d of %d bytes); no segment can begin "
                "when it is full: %s",
                self._name,
                segments,
                100 * size // RECORD_MAX,
                size,
                RECORD_MAX,
                ADVICE,
            )
        self._warned = size >= RECORD_WARNED
