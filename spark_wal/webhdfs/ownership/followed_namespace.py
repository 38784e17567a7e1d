"""A namespace's tree as somebody sees it who is not its owner: read from snapshot and journal, without fencing anybody.

It has what was durable at the last call of ``catch_up``, which reads only what is new. Nothing of it is an answer to a
client of the gateway: those see what the owner has now.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from bookkeeper.errors import BookKeeperError
from journal_manager import (
    FIRST_TXID,
    EditsDiscardedError,
    JournalError,
    JournalGapError,
    JournalNotFormattedError,
    SnapshotStore,
    TxId,
    open_reader,
    open_snapshots,
    read_ops,
)
from spark_wal.webhdfs.files import snapshot
from spark_wal.webhdfs.files.namespace import Namespace
from spark_wal.webhdfs.files.records import RecordFormatError
from spark_wal.webhdfs.ownership.replay import replay_edit

if TYPE_CHECKING:
    from bookkeeper import BookKeeper

BYTES_MAX: Final = 32 << 20
"""Bytes of the newest snapshot above which a namespace is not followed: the tree would be in memory a second time."""


class NamespaceNotFollowedError(BookKeeperError):
    """The tree cannot be had now, or not here. The text says why."""


class FollowedNamespace:
    """One namespace of the cluster of ``client``."""

    def __init__(self, client: BookKeeper, name: str) -> None:
        self.name = name
        self._client = client
        self._uri = f"bk:webhdfs/{quote(name)}"
        self._tree: Namespace | None = None
        self._bytes = 0
        """Of the snapshot that the tree began with, and of the edits since: an upper bound of what it has in memory."""
        self._reading = asyncio.Lock()

    async def catch_up(self) -> Namespace | None:
        """The tree with every edit that is durable now; None if there is no such namespace. A call that is cancelled
        leaves to the next one what it has read.

        Raises:
            NamespaceNotFollowedError: it is too large, or its journal cannot be read.
        """
        async with self._reading:
            try:
                return await self._caught_up()
            except JournalNotFormattedError:
                self._tree = None
                return None
            except (JournalError, RecordFormatError) as error:
                self._tree = None
                raise NamespaceNotFollowedError(f"namespace {self.name} cannot be read: {error}") from error

    async def _caught_up(self) -> Namespace:
        if self._tree is not None and self._bytes <= 2 * BYTES_MAX:
            try:
                return await self._replayed(self._tree)
            except (JournalGapError, EditsDiscardedError):
                pass  # the edits behind it are purged by now
        self._tree = None
        async with await open_snapshots(self._uri, client=self._client) as store:
            self._tree = tree = await self._loaded(store)
        return await self._replayed(tree)

    async def _loaded(self, store: SnapshotStore) -> Namespace:
        kept = await store.list()
        if kept and kept[-1].size > BYTES_MAX:
            raise NamespaceNotFollowedError(
                f"namespace {self.name} has {kept[-1].size >> 20} MiB, and those up to {BYTES_MAX >> 20} MiB are shown "
                "here: ask its gateway, as bk checkpoint list does"
            )
        loaded = await store.load()
        if loaded is None:
            self._bytes = 0
            return Namespace()
        self._bytes = len(loaded[1])
        return snapshot.load(loaded[1])

    async def _replayed(self, tree: Namespace) -> Namespace:
        start = TxId(tree.sequence + 1) if tree.sequence else FIRST_TXID
        async with await open_reader(self._uri, client=self._client) as reader:
            async for op in read_ops(reader, start):
                replay_edit(tree, op)
                self._bytes += len(op.body)
                if self._bytes > 2 * BYTES_MAX:
                    raise NamespaceNotFollowedError(
                        f"namespace {self.name} has more than {2 * BYTES_MAX >> 20} MiB of edits behind its newest "
                        "snapshot: look again when its gateway has kept another one"
                    )
        return tree
