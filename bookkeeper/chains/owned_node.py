"""A chain's node, held by the owner who claimed it.

    claim          epoch + 1, by compare-and-set; whoever loses the race takes the epoch after that
    step           one legal change, by compare-and-set of the version written last
    overtaken      another owner has claimed: no step succeeds any more

A claim stops former owners from extending the chain. Their appends to the last ledger are stopped by recovering that
ledger, which is the next thing that a new owner does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

from bookkeeper.chains.chain_node import ChainNode, ChainValue
from bookkeeper.errors import KeyExistsError, MetadataConflictError, MetadataError, NoSuchKeyError
from bookkeeper.meta.store import Check, Operation, Version

V = TypeVar("V", bound=ChainValue)


class ClaimLostError(MetadataError):
    """Another owner has claimed the node. ``found`` is its value."""

    def __init__(self, message: str, found: Any = None) -> None:
        super().__init__(message)
        self.found = found


class OwnedNode(Generic[V]):
    """The node of one owner: it remembers the value, and changes it step by step. One step at a time."""

    def __init__(self, node: ChainNode[V], value: V, version: Version, created_txn: int = 0) -> None:
        """``created_txn``: as ``ChainNode.read_created`` gives it."""
        self.node, self.value, self._created_txn = node, value, created_txn
        self._epoch, self._nonce = value.epoch, value.nonce
        self._version: Version | None = version
        """None after a step whose outcome is unknown."""

    @classmethod
    async def claim(
        cls,
        node: ChainNode[V],
        owner: str,
        nonce: str,
        check: Callable[[V], None] | None = None,
        *,
        look: Callable[[V], Awaitable[None]] | None = None,
    ) -> OwnedNode[V]:
        """Take the next epoch. Each lost race means that someone else got one; then the next.

        ``nonce`` is unique to this call. ``check`` raises to refuse the node as it was found; so does
        ``look``, which may ask others.

        Raises:
            NoSuchKeyError: there is no node. MetadataUnavailableError: the outcome is unknown.
        """
        while True:
            value, version, created_txn = await node.read_created()
            if check is not None:
                check(value)
            if look is not None:
                await look(value)
            value = value.claim(owner, nonce)
            try:
                return cls(node, value, await node.write(value, version, created_txn=created_txn), created_txn)
            except MetadataConflictError:
                continue

    async def step(self, change: Callable[[V], V]) -> None:
        """Replace the value by ``change`` of it.

        Raises:
            ClaimLostError: another owner has the node. MetadataUnavailableError: the outcome is unknown; the next
            step reads the node again. And what ``change`` raises.
        """
        if self._version is None:
            self.value, self._version = await self._read()
        value, version, self._version = change(self.value), self._version, None
        try:
            self._version = await self.node.write(value, version, created_txn=self._created_txn)
            self.value = value
        except MetadataConflictError as error:
            await self.ensure_current()
            raise MetadataConflictError(f"{self.node.path} changed, although its owner did not change it") from error

    async def step_with(self, change: Callable[[V], V], others: Sequence[Operation]) -> list[Version | None]:
        """Replace the value by ``change`` of it, in one write with ``others``: all or none. Returns their versions.

        Raises:
            ClaimLostError: another owner has the node. MetadataConflictError, KeyExistsError, NoSuchKeyError: nothing
            was changed. MetadataUnavailableError: the outcome is unknown, and nothing settles it here: ``others`` tell.
        """
        if self._version is None:
            self.value, self._version = await self._read()
        value, version, self._version = change(self.value), self._version, None
        try:
            done, versions = await self.node.write_with(value, version, others)
        except (MetadataConflictError, KeyExistsError, NoSuchKeyError):
            await self.ensure_current()
            raise
        self.value, self._version = value, done
        return versions

    async def refresh(self) -> None:
        """Read the value again: somebody else may have changed it. Raises ClaimLostError."""
        self.value, self._version = await self._read()

    async def ensure_current(self) -> None:
        """Check that the node is still this owner's. Raises ClaimLostError."""
        await self._read()

    async def condition(self) -> Check:
        """A condition for a write of something else: that the node is as this owner has just read it.

        Raises:
            ClaimLostError: another owner has the node.
        """
        return Check(self.node.path, (await self._read())[1])

    async def _read(self) -> tuple[V, Version]:
        value, version = await self.node.read()
        if (value.epoch, value.nonce) != (self._epoch, self._nonce):
            raise ClaimLostError(f"epoch {value.epoch} has taken {self.node.path} over from {self._epoch}", value)
        return value, version
