"""The node of a journal, changed by compare-and-set."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from bookkeeper.chains.chain_node import ChainNode
from bookkeeper.errors import NoSuchKeyError
from bookkeeper.meta.store import Version
from journal_manager.errors import JournalNotFormattedError
from journal_manager.journals.chain import Chain

if TYPE_CHECKING:
    from bookkeeper.meta import Metadata


class JournalNode(ChainNode[Chain]):
    """The node of one journal."""

    def __init__(self, metadata: Metadata, name: str) -> None:
        super().__init__(metadata.store, metadata.own("journals", quote(name, safe="")), Chain.decode, Chain.encode)
        self.name = name

    async def read(self) -> tuple[Chain, Version]:
        """Read the node as it is now.

        Raises:
            JournalNotFormattedError: there is none.
        """
        try:
            return await super().read()
        except NoSuchKeyError as error:
            raise JournalNotFormattedError(f"there is no journal named {self.name}") from error


async def journal_names(metadata: Metadata) -> tuple[str, ...]:
    """The names of all journals of a cluster, sorted. Raises MetadataError."""
    try:
        return tuple(sorted(unquote(each) for each in await metadata.store.children(metadata.own("journals"))))
    except NoSuchKeyError:
        return ()
