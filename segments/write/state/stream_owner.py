"""A stream's node, held by the writer who claimed it. Its errors are those of streams."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from bookkeeper.chains.owned_node import ClaimLostError, OwnedNode
from bookkeeper.errors import BookKeeperError, MetadataConflictError, NoSuchKeyError, NoSuchLedgerError
from bookkeeper.outcome import Outcome
from segments.chain import StreamChain, StreamHead
from segments.error_translation import stream_error
from segments.errors import OwnershipLostError, StreamError, StreamNotFoundError, StreamSealedError
from segments.position import Position

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from bookkeeper.meta.store import Operation, Version

_claims = itertools.count(1)

END_READS_MAX: Final = 20
END_READ_PAUSE_S: Final = 0.1
"""How often, and with which pause, a writer that has lost the stream reads the node to find where the new owner has
ended its segment."""


class StreamOwner:
    """The right to change one stream's node, until another writer claims it.

    Others change the node as well: they truncate, and remove what was truncated. Such a change ends no owner; the
    step is made again on what they wrote.
    """

    def __init__(self, node: StreamHead, owned: OwnedNode[StreamChain]) -> None:
        self.node, self._owned = node, owned
        self.epoch = owned.value.epoch
        self._step = asyncio.Lock()

    @classmethod
    async def claim(
        cls,
        node: StreamHead,
        owner: str,
        nonce: str,
        may_claim: Callable[[StreamChain], None] = lambda _: None,
        *,
        reads_with: BookKeeper | None = None,
    ) -> StreamOwner:
        """Take the next epoch. ``may_claim`` raises to refuse the node as it is found.

        Args:
            reads_with: the client that will read the stream's end. It must have the key of the last segment; otherwise
                the claim is refused before it is made.

        Raises:
            StreamNotFoundError, StreamSealedError, StreamMetadataError. And what ``may_claim`` raises.
            StreamConfigError: entries are encrypted, and ``reads_with`` does not have their key.
        """

        async def require_key(chain: StreamChain) -> None:
            if reads_with is not None and chain.recent:
                with suppress(NoSuchLedgerError):
                    await reads_with.require_key(chain.recent[-1].ledger_id)

        def check(chain: StreamChain) -> None:
            may_claim(chain)
            if chain.sealed:
                raise StreamSealedError(
                    f"stream {node.name} is sealed: nothing can be appended to it any more", stream=node.name
                )

        try:
            return cls(node, await OwnedNode.claim(node.recent, owner, nonce, check, look=require_key))
        except BookKeeperError as error:
            raise stream_error(error, f"claiming stream {node.name}", node.name) from error

    @property
    def chain(self) -> StreamChain:
        """The node as this writer last read or wrote it."""
        return self._owned.value

    async def step(self, change: Callable[[StreamChain], StreamChain]) -> StreamChain:
        """Replace the node by ``change`` of it, and return it. ``change`` may be made again: on what another client
        wrote, or after an attempt of unknown outcome, on its own result.

        Raises:
            OwnershipLostError: another writer has the stream. StreamMetadataError: the outcome is unknown; the next
            step reads the node again. And what ``change`` raises.
        """
        with self.translate_errors("changing"):
            async with self._step:
                while True:
                    try:
                        await self._owned.step(change)
                        return self._owned.value
                    except MetadataConflictError:
                        continue  # not overtaken: someone truncated, or removed

    async def step_with(
        self, change: Callable[[StreamChain], StreamChain], others: Sequence[Operation]
    ) -> list[Version | None]:
        """Replace the node by ``change`` of it, in one write with ``others``: all or none. Tried once. Returns the
        versions of the others.

        Raises:
            OwnershipLostError: another writer has the stream.
            MetadataConflictError, KeyExistsError, NoSuchKeyError: nothing was changed; the node, or one of the
                others, is not what was expected. MetadataUnavailableError: the outcome is unknown. ``refresh`` comes
                before the next attempt.
        """
        async with self._step:
            try:
                return await self._owned.step_with(change, others)
            except ClaimLostError as error:
                raise StreamClaimLostError(self.node.name, self.epoch, error.found) from error

    async def refresh(self) -> None:
        """Read the node again. Raises OwnershipLostError, StreamMetadataError."""
        with self.translate_errors("reading"):
            async with self._step:
                await self._owned.refresh()

    async def make_room(self) -> None:
        """Move the oldest segments to pages while the node lists many, so that it stays small.

        Raises: as step. ChainStepError: the node names as many pages as it can.
        """
        while (page := self.chain.next_page()) is not None:
            with self.translate_errors("writing a page of"):
                await self.node.pages.write(page)
            await self.step(lambda chain, page=page: chain.fold(page))  # type: ignore[misc]

    async def ensure_current(self) -> None:
        """Check that this writer still owns the stream. Raises OwnershipLostError, StreamMetadataError."""
        with self.translate_errors("reading"):
            await self._owned.ensure_current()

    async def successor_end(self, error: StreamError, number: int) -> int | None:
        """The last entry of this owner's segment as the new owner has ended it; None if that is unknown."""
        if not isinstance(error, StreamClaimLostError):
            return None
        chain = error.found
        if chain.pages and number <= chain.pages[-1].last:  # long ago: only a page can tell
            try:
                chain, _ = await self.node.read()
            except (BookKeeperError, StreamError):
                return None
        for _ in range(END_READS_MAX):
            listed = chain.find(number)
            if listed is None:
                dropped = any(gone.number == number for gone in chain.removing)
                return -1 if dropped and chain.start <= Position(number, 0, 0) else None
            if not listed.is_open:
                return listed.contents.last_entry
            await asyncio.sleep(END_READ_PAUSE_S)
            try:
                chain, _ = await self.node.read()
            except (BookKeeperError, StreamError):
                continue
        return None

    @contextmanager
    def translate_errors(self, doing: str) -> Iterator[None]:
        """Translate errors of the metadata store into those of streams."""
        name = self.node.name
        try:
            yield
        except ClaimLostError as error:
            found: StreamChain = error.found
            raise StreamClaimLostError(name, self.epoch, found) from error
        except NoSuchKeyError as error:
            raise StreamNotFoundError(f"stream {name} was deleted", stream=name) from error
        except BookKeeperError as error:
            raise stream_error(error, f"{doing} the node of stream {name}", name) from error


class StreamClaimLostError(OwnershipLostError):
    """Another writer has claimed the stream; ``found`` is the node as it was found."""

    def __init__(self, name: str, epoch: int, found: StreamChain) -> None:
        who = f"{found.owner} (epoch {found.epoch})" if found.owner else f"epoch {found.epoch}"
        super().__init__(
            f"{who} has taken stream {name} over from epoch {epoch}: this writer is at its end", stream=name
        )
        self.owner = found.location or found.owner or None
        self.found = found


def error_for_caller(error: StreamError, outcome: Outcome) -> StreamError:
    """The error that ended a writer, for one of its callers, whose append has this outcome."""
    if isinstance(error, StreamClaimLostError):
        copy: StreamError = OwnershipLostError(str(error))
    else:
        copy = type(error)(str(error))
    copy.stream, copy.owner, copy.outcome = error.stream, error.owner, outcome
    copy.__cause__ = error
    return copy


def claim_nonce(client: BookKeeper) -> str:
    """A number that tells apart two claims of one epoch under one owner's name, also when a reply was lost."""
    rng = client.services.seams.rng
    return f"{client.metadata_store.store.session_id:x}-{next(_claims)}-{rng.getrandbits(64):x}"
