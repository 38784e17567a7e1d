"""The entries of a ledger as its reader gets them: as they are stored, or opened, where the ledger is encrypted.

A valid digest does not prove that the writer made an entry: a bookie can make one. Such an entry does not open, and its
other copies are read, as for a damaged one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from bookkeeper.client.read.entry_source import EntrySource
from bookkeeper.encryption import EntryOpener
from bookkeeper.errors import BookieError, CorruptionError, DecryptionError, LedgerError

_log = logging.getLogger(__name__)


class OpenedEntries:
    """What ``source`` has read of a ledger, opened. ``opener`` is None where entries are not encrypted."""

    __slots__ = ("_opener", "_source", "as_stored")

    def __init__(self, source: EntrySource, opener: EntryOpener | None) -> None:
        self._source = source
        self._opener = opener
        self.as_stored = opener is None
        """Whether entries are as they are stored: there is nothing to open."""

    def open_if_valid(self, first: int, stored: Sequence[bytes]) -> Sequence[bytes]:
        """Open consecutive payloads from memory. Empty if one of them does not open: read them instead."""
        if self._opener is None or not stored:
            return stored
        try:
            return self._opener.open(first, stored)
        except DecryptionError:
            return ()

    async def open(self, first: int, stored: Sequence[bytes]) -> Sequence[bytes]:
        """Open consecutive payloads. If one does not open, the other copies of its entry are read.

        Raises: DecryptionError: no copy of an entry that could be read opens.
        """
        opener = self._opener
        if opener is None:
            return stored
        try:
            return opener.open(first, stored)
        except DecryptionError:
            return [await self._open_any_copy(opener, entry_id, copy) for entry_id, copy in enumerate(stored, first)]

    async def _open_any_copy(self, opener: EntryOpener, entry_id: int, copy: bytes) -> bytes:
        """The payload of one entry, of which this ``copy`` came first."""
        try:
            return opener.open(entry_id, [copy])[0]
        except DecryptionError as error:
            failure = error
        self._source.corrupt.add()
        _log.error("%s; other copies are tried", failure)
        ensemble = self._source.record.metadata.fragment_of(entry_id).ensemble
        for bookie in self._source.record.metadata.write_set(entry_id):
            order = (bookie, *(other for other in ensemble if other != bookie))
            try:
                (copy,) = await self._source.read(entry_id, unconfirmed=True, order=order)
                return opener.open(entry_id, [copy])[0]
            except (BookieError, CorruptionError, LedgerError):
                continue
        raise failure
