"""How full a journal's node in the metadata store is: about 150 bytes for each segment, until it is purged (pure)."""

from __future__ import annotations

import logging
from typing import Final

from journal_manager.errors import JournalFullError

_log = logging.getLogger(__name__)

NODE_BYTES_MAX: Final = 960 * 1024
"""No segment begins if the node were longer. ZooKeeper takes requests of up to 1 MiB; the rest is left for what must
always be possible: to claim the journal, to end a segment, to discard edits, and to purge."""

NODE_BYTES_WARNED: Final = NODE_BYTES_MAX // 2
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
    if size > NODE_BYTES_MAX:
        raise JournalFullError(
            f"the list of snapshots of journal {name}, which has {snapshots - 1}, is full ({size} of {NODE_BYTES_MAX} "
            "bytes with one more): no other can be kept; remove old ones, with delete_snapshot of the edit log or "
            "bk journal purge; a replica does so by its retention policy"
        )


class NodeSize:
    """Watches the node of one writer's journal."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._warned = False

    def begins(self, size: int, segments: int) -> None:
        """A segment is to begin; the node has ``size`` bytes and ``segments`` then. Warns once from half of
        NODE_BYTES_MAX on, and again when it was below that since.

        Raises:
            JournalFullError: it would be longer than NODE_BYTES_MAX. Nothing was changed.
        """
        if size > NODE_BYTES_MAX:
            raise JournalFullError(
                f"the node of journal {self._name} has a list of segments ({segments - 1} of them), "
                f"and is full ({size} of "
                f"{NODE_BYTES_MAX} bytes with one more): no segment can begin; {ADVICE}. Then open the journal again"
            )
        if size >= NODE_BYTES_WARNED and not self._warned:
            _log.warning(
                "the node of journal %s has a list of segments (%d of them), and is %d %% full (%d of %d bytes); no "
                "segment can begin when it is full: %s",
                self._name,
                segments,
                100 * size // NODE_BYTES_MAX,
                size,
                NODE_BYTES_MAX,
                ADVICE,
            )
        self._warned = size >= NODE_BYTES_WARNED
