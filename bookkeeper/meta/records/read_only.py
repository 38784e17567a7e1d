"""Orders to bookies to take no new entries, given from afar: ``bk bookies read-only``.

    <root>-py/read-only/<bookie>     exists: the bookie is to be read-only; the text says who asked

The cluster's access rules decide who may write here. An order outlives the bookie's restarts, until it is taken back.
Java's bookies do not know it.
"""

from __future__ import annotations

from collections.abc import Callable

from bookkeeper.ids import BookieId
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import MetadataStore, Watch, ensure_created, ensure_deleted, get_or_none


class ReadOnlyOrders:
    """The orders of one cluster. Methods raise MetadataError."""

    def __init__(self, store: MetadataStore, paths: Paths) -> None:
        self._store = store
        self._paths = paths

    def _path(self, bookie: BookieId) -> str:
        return self._paths.own("read-only", bookie)

    async def give(self, bookie: BookieId, by: str) -> None:
        """Order a bookie to be read-only. Idempotent."""
        await ensure_created(self._store, self._path(bookie), by.encode())

    async def take_back(self, bookie: BookieId) -> None:
        """Take the order back. Idempotent."""
        await ensure_deleted(self._store, self._path(bookie))

    async def read(self, bookie: BookieId) -> str | None:
        """Who ordered this bookie to be read-only; None: nobody."""
        found = await get_or_none(self._store, self._path(bookie), fresh=True)
        return found.value.decode(errors="replace") if found is not None else None

    def watch(self, bookie: BookieId, callback: Callable[[], None]) -> Watch:
        """Call back when the order of this bookie is given or taken back."""
        return self._store.watch(self._path(bookie), callback)
