"""The cluster's list of under-replicated ledgers, as Apache BookKeeper keeps it.

    <root>/underreplication/ledgers/0000/0000/0000/0005/urL0000000005
        replica: "192.0.2.1:3181"
        ctime: 1700000000000

A ledger in this list has a *mark*: it names the bookies that lack entries, and says since when. Writers set marks,
repair removes them. A mark is a hint: repair looks for itself which entries are missing where.

    * A mark goes only after the ledger was verified as it is stored now, and only in the version that was seen
      before that: what is marked meanwhile stays marked. So whoever marks a ledger writes, also if the mark names the
      same bookies already. Apache's writers and auditors do not: a mark of theirs for the same bookies, while somebody
      repairs, changes nothing, and goes with the repair; their next check of all ledgers finds what is missing.
    * A mark that was removed and made anew begins with the same version again; it is told by the write that made it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from google.protobuf import text_format

from bookkeeper.errors import (
    KeyExistsError,
    MetadataConflictError,
    MetadataError,
    MetadataFormatError,
    NoSuchKeyError,
    NotEmptyError,
    in_words,
)
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta import metadata_pb2 as pb
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import MetadataStore, Version, get_or_none, names_below, settled_delete

_log = logging.getLogger(__name__)

_LEVELS: Final = 4
"""Directories between the list's root and a mark."""


@dataclass(frozen=True, slots=True)
class UnderReplicationMark:
    """A ledger's entry in the list, as it was read."""

    ledger_id: LedgerId
    bookies: tuple[BookieId, ...]
    """The bookies that lack entries; may be empty (a ledger that is placed badly)."""
    version: Version
    since_ms: int | None = None
    """When it was marked last, in milliseconds since 1970; None: whoever marked it did not say."""
    created_txn: int = 0
    """The write that made the mark."""


class UnderReplication:
    """The list of one cluster. Every change is a compare-and-set. Methods raise MetadataError."""

    def __init__(self, store: MetadataStore, paths: Paths) -> None:
        self._store = store
        self._root = paths.root

    async def mark(self, ledger_id: LedgerId, bookies: Sequence[BookieId], now_ms: int) -> None:
        """Enter the ledger into the list, or add these bookies to its mark. A mark that names them already is written
        again: a repair that is under way may have looked before they lacked what they lack now."""
        path = mark_path(self._root, ledger_id)
        while True:
            try:
                await self._store.create(path, encode_mark(bookies, now_ms), parents=True)
            except KeyExistsError:
                pass
            else:
                return
            try:
                found = await self._store.get(path)
                marked = decode_mark(path, found.value).replica
                named = list(dict.fromkeys([*marked, *bookies]))
                await self._store.set(path, encode_mark(named, now_ms), found.version)
            except (NoSuchKeyError, MetadataConflictError):
                continue
            return

    async def read(self, ledger_id: LedgerId) -> UnderReplicationMark | None:
        """The ledger's mark, read after a sync; None if it has none."""
        path = mark_path(self._root, ledger_id)
        if (found := await get_or_none(self._store, path, fresh=True)) is None:
            return None
        mark = decode_mark(path, found.value)
        since_ms = mark.ctime if mark.HasField("ctime") else None
        bookies = tuple(map(BookieId, mark.replica))
        return UnderReplicationMark(ledger_id, bookies, found.version, since_ms, found.created_txn)

    async def remove(self, mark: UnderReplicationMark) -> bool:
        """Remove a mark, unless it was written again, or made anew, since it was read. Returns whether that is so."""
        path = mark_path(self._root, mark.ledger_id)
        try:
            await settled_delete(self._store, path, mark.version, created_txn=mark.created_txn)
        except MetadataConflictError:
            return False
        except NoSuchKeyError:
            return await self._store.exists(path) is None
        await self._remove_empty_parents(path)
        return True

    async def _remove_empty_parents(self, path: str) -> None:
        for _ in range(_LEVELS):
            path = path.rpartition("/")[0]
            try:
                await self._store.delete(path, None)
            except (NotEmptyError, NoSuchKeyError):
                break
            except MetadataError as error:
                _log.info("an empty directory of the list of under-replicated ledgers stays (%s)", in_words(error))
                break

    async def ledgers(self) -> AsyncIterator[LedgerId]:
        """All ledgers in the list, in the order of their paths."""
        root = f"{self._root}/underreplication/ledgers"
        await self._store.sync(root)
        async for ledger_id in self._walk(root, _LEVELS):
            yield ledger_id

    async def _walk(self, path: str, levels: int) -> AsyncIterator[LedgerId]:
        for name in await names_below(self._store, path):
            if levels:
                async for ledger_id in self._walk(f"{path}/{name}", levels - 1):
                    yield ledger_id
            elif name.startswith("urL") and name[3:].isdecimal():
                yield LedgerId(int(name[3:]))


def mark_path(root: str, ledger_id: LedgerId) -> str:
    """The path of a ledger's mark in the store."""
    digits = f"{ledger_id:016x}"
    parts = "/".join(digits[i : i + 4] for i in range(0, 16, 4))
    return f"{root}/underreplication/ledgers/{parts}/urL{ledger_id:010d}"


def encode_mark(bookies: Sequence[str], ctime_ms: int) -> bytes:
    """The bytes of a mark."""
    return text_format.MessageToBytes(pb.UnderreplicatedLedgerFormat(replica=bookies, ctime=ctime_ms))


def decode_mark(path: str, value: bytes) -> pb.UnderreplicatedLedgerFormat:
    """The reverse. Raises: MetadataFormatError."""
    message = pb.UnderreplicatedLedgerFormat()
    try:
        text_format.Parse(value, message)
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise MetadataFormatError(
            f"the mark {path} cannot be read ({error}): delete it; the next check of all ledgers marks what is short"
        ) from error
    return message
