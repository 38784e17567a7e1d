"""The record of a journal, changed by compare-and-set."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

from bookkeeper.errors import KeyExistsError, NoSuchKeyError
from bookkeeper.meta.store import Version, Watch, settled_create, settled_set
from journal_manager.backend import NamespaceInfo
from journal_manager.chain import Chain
from journal_manager.errors import JournalNotFormattedError

if TYPE_CHECKING:
    from bookkeeper.meta import Metadata


class JournalRecord:
    """The path of one journal's record. Its methods also raise BookKeeper's MetadataErrors."""

    def __init__(self, metadata: Metadata, name: str) -> None:
        self.name = name
        self.store = metadata.store
        self.path = metadata.own("journals", quote(name, safe=""))

    async def read(self) -> tuple[Chain, Version]:
        """Read the record.

        Raises:
            JournalNotFormattedError: there is none.
        """
        await self.store.sync(self.path)
        try:
            found = await self.store.get(self.path)
        except NoSuchKeyError as error:
            raise JournalNotFormattedError(f"there is no journal named {self.name}") from error
        return Chain.decode(found.value), found.version

    async def create_if_absent(self, namespace: NamespaceInfo) -> None:
        """Make the record if there is none."""
        if await self.store.exists(self.path) is not None:
            return
        try:
            await settled_create(self.store, self.path, Chain(namespace).encode(), parents=True)
        except KeyExistsError:
            pass

    async def write(self, chain: Chain, expected: Version) -> Version:
        """Replace version ``expected``; a lost reply is settled by reading again.

        Raises:
            MetadataConflictError: someone else did.
        """
        return await settled_set(self.store, self.path, chain.encode(), expected)

    def watch(self, callback: Callable[[], None]) -> Watch:
        """Call back when the record may have changed."""
        return self.store.watch(self.path, callback)
