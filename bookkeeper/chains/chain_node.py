"""The node of a chain at its path in the metadata store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, Self, TypeVar

from bookkeeper.meta.store import (
    MetadataStore,
    Operation,
    Set,
    Version,
    Versioned,
    Watch,
    ensure_created,
    settled_set,
)


class ChainValue(Protocol):
    """What a node holds. Values are immutable."""

    @property
    def epoch(self) -> int:
        """Counts the owners; 0 before the first."""

    @property
    def nonce(self) -> str:
        """What tells apart two claims of one epoch, of which one was in vain."""

    def claim(self, owner: str, nonce: str) -> Self:
        """The same value in the next epoch, owned by ``owner``."""


V = TypeVar("V", bound=ChainValue)


class ChainNode(Generic[V]):
    """One node. The methods raise BookKeeper's metadata errors, and what ``decode`` and ``encode`` raise."""

    def __init__(
        self, store: MetadataStore, path: str, decode: Callable[[bytes], V], encode: Callable[[V], bytes]
    ) -> None:
        self.store = store
        self.path = path
        self._decode = decode
        self._encode = encode

    async def read(self) -> tuple[V, Version]:
        """Read the node as it is now.

        Raises:
            NoSuchKeyError: there is none.
        """
        found = await self._found()
        return found.value, found.version

    async def read_created(self) -> tuple[V, Version, int]:
        """As ``read``, and the write that created the node, for nodes that may be deleted and made anew under their
        names; 0 for others."""
        return (*await self.read(), 0)

    async def _found(self) -> Versioned[V]:
        await self.store.sync(self.path)
        found = await self.store.get(self.path)
        return found.over(self._decode(found.value))

    async def create_if_absent(self, value: V) -> None:
        """Make the node if there is none."""
        if await self.store.exists(self.path) is not None:
            return
        await ensure_created(self.store, self.path, self._encode(value))

    async def write(self, value: V, expected: Version, *, created_txn: int = 0) -> Version:
        """Replace version ``expected``. A lost reply is settled by reading again.

        Raises:
            MetadataConflictError: someone else replaced it.
            NoSuchKeyError: there is none, or another write than ``created_txn`` has created it.
        """
        return await settled_set(self.store, self.path, self._encode(value), expected, created_txn=created_txn)

    async def write_with(
        self, value: V, expected: Version, others: Sequence[Operation]
    ) -> tuple[Version, list[Version | None]]:
        """Replace version ``expected`` in one write with ``others``: all or none.

        Returns:
            the node's version, and those of the others; None for one that has none.

        Raises:
            MetadataConflictError, KeyExistsError, NoSuchKeyError: nothing was changed. MetadataUnavailableError: it is
            not known whether it was done.
        """
        version, *rest = await self.store.multi([Set(self.path, self._encode(value), expected), *others])
        assert version is not None, "a Set has a version"
        return version, rest

    def watch(self, callback: Callable[[], None]) -> Watch:
        """Call back when the node may have changed."""
        return self.store.watch(self.path, callback)
