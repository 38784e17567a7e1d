"""A journal's node, held by the writer who claimed it. Its errors are those of journals."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from bookkeeper.chains.owned_node import ClaimLostError, OwnedNode
from bookkeeper.errors import BookKeeperError, LedgerFencedError, NoSuchLedgerError, in_words
from journal_manager.backends.bookkeeper.error_translation import journal_error, worded
from journal_manager.backends.bookkeeper.journal_node import JournalNode
from journal_manager.edits import FencingToken, fenced
from journal_manager.errors import JournalError, JournalUnavailableError
from journal_manager.journals.backend import NamespaceInfo
from journal_manager.journals.chain import Chain

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from bookkeeper.meta.store import Check

_claims = itertools.count(1)


class JournalOwner:
    """The right to change one journal's node, until another writer claims it."""

    def __init__(self, node: JournalNode, owned: OwnedNode[Chain]) -> None:
        self.node, self._owned = node, owned
        self.token: FencingToken = owned.value.token

    @classmethod
    async def claim(
        cls,
        node: JournalNode,
        owner: str,
        nonce: str,
        namespace: NamespaceInfo | None,
        also: Callable[[Chain], object] = lambda chain: None,
        *,
        reads_with: BookKeeper | None = None,
    ) -> JournalOwner:
        """Take the next epoch. ``also`` raises to refuse the node as it was found; and the key of the last segment
        must be to be had by ``reads_with``, the client that is going to read it: who could not go on fences nobody.

        Raises:
            JournalNotFormattedError, NamespaceMismatchError, JournalUnavailableError.
        """

        def check(chain: Chain) -> None:
            if namespace is not None:
                namespace.ensure_same(chain.namespace)
            also(chain)

        async def look(chain: Chain) -> None:
            if reads_with is not None and chain.segments:
                with suppress(NoSuchLedgerError):
                    await reads_with.require_key(int(chain.segments[-1].location))

        with worded(f"claiming journal {node.name}"):
            return cls(node, await OwnedNode.claim(node, owner, nonce, check, look=look))

    @property
    def chain(self) -> Chain:
        """The node as this writer last read or wrote it."""
        return self._owned.value

    async def step(self, change: Callable[[Chain], Chain]) -> None:
        """Replace the node by ``change`` of it.

        Raises:
            JournalFencedError: another owner has it. JournalUnavailableError: the outcome is unknown.
            And what ``change`` raises.
        """
        with self._worded("changing"):
            await self._owned.step(change)

    async def ensure_current(self) -> None:
        """Check that this writer still owns the node. Raises JournalFencedError, JournalUnavailableError."""
        with self._worded("reading"):
            await self._owned.ensure_current()

    async def condition(self) -> Check:
        """A condition for another write: that the node is still as this owner has just read it.

        Raises:
            JournalFencedError: another owner has it. JournalUnavailableError: the store does not answer.
        """
        with self._worded("reading"):
            return await self._owned.condition()

    async def why_refused(self, error: BookKeeperError) -> JournalError:
        """Find out why our ledger takes no more entries."""
        try:
            await self.ensure_current()
        except JournalUnavailableError:
            return (
                fenced(self.token, None) if isinstance(error, LedgerFencedError) else journal_error(error, "appending")
            )
        except JournalError as overtaken:
            return overtaken
        return JournalUnavailableError(
            f"another client closed or deleted the open ledger of journal {self.node.name}: {in_words(error)}"
        )

    @contextmanager
    def _worded(self, doing: str) -> Iterator[None]:
        try:
            with worded(f"{doing} the node of journal {self.node.name}"):
                yield
        except JournalUnavailableError as error:
            if isinstance(error.__cause__, ClaimLostError):
                raise fenced(self.token, error.__cause__.found.token) from error.__cause__
            raise


def claim_nonce(client: BookKeeper) -> str:
    """A number that tells apart two claims of one epoch under one owner's name, also when a reply was lost."""
    rng = client.services.seams.rng
    return f"{client.metadata_store.store.session_id:x}-{next(_claims)}-{rng.getrandbits(64):x}"
