"""Readers that know which of the values they have read were changed since, of stores that number their transactions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bookkeeper.meta.store import Versioned
from bookkeeper.meta.stores.tree import Tree

Changes = tuple[list[str], int]
"""Paths that were written, and the newest transaction."""


class TreeFollower:
    """See :class:`~bookkeeper.meta.store.ValueFollower`: a question to the store finds every value that was written
    since the one before, so nothing is kept of what was read. Deleted values are not named: whoever lists misses
    them."""

    def __init__(
        self,
        get: Callable[[str], Awaitable[Versioned[bytes]]],
        changes: Callable[[Callable[[Tree], Changes]], Awaitable[Changes]],
        newest: Callable[[], int],
    ) -> None:
        """
        Args:
            get: reads a value.
            changes: has a job read the tree.
            newest: the newest transaction, within such a job.
        """
        self._get, self._changes, self._newest = get, changes, newest
        self._seen: int | None = None
        """The newest transaction at the last question."""

    async def get(self, path: str) -> Versioned[bytes]:
        """See :class:`~bookkeeper.meta.store.ValueFollower`."""
        return await self._get(path)

    async def changed(self) -> list[str] | None:
        """See :class:`~bookkeeper.meta.store.ValueFollower`."""
        before = self._seen
        found, self._seen = await self._changes(
            lambda tree: (tree.written_after(before) if before is not None else [], self._newest())
        )
        return None if before is None or self._seen < before else found

    def close(self) -> None:
        """See :class:`~bookkeeper.meta.store.ValueFollower`."""
