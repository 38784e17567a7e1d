"""What reading needs of a stream: the client of its cluster, its node, and its ledgers. Nothing is recovered here."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from bookkeeper.errors import BookKeeperError, NoSuchLedgerError
from segments.error_translation import stream_error
from segments.read.source.chain_follower import ChainFollower

if TYPE_CHECKING:
    from bookkeeper import BookKeeper, ReadHandle
    from segments.chain import StreamHead, StreamSegment
    from segments.read.source.known_part import KnownPart

_log = logging.getLogger(__name__)

CROWD: Final = 64
"""With so many streams resting, a further one rests sooner."""


class StreamSource:
    """One stream, for all its readers in this process."""

    __slots__ = ("_known", "chain", "client", "node")

    def __init__(
        self, client: BookKeeper, node: StreamHead, known: KnownPart | None = None, *, pinned: bool = False
    ) -> None:
        self.client = client
        self.node = node
        self._known = known
        self.chain = ChainFollower(node, None if known is None else known.chain, pinned=pinned)

    @property
    def name(self) -> str:
        """The stream's name, for messages."""
        return self.node.name

    @property
    def stream_id(self) -> str:
        return self.node.stream_id

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return self.client.services.seams.clock.wall_ms()

    @property
    def is_crowded(self) -> bool:
        """Whether this client follows so many streams that one at its end should not keep its ledger open for long."""
        return len(self.client.quiet_ledgers) >= CROWD

    async def open_segment(self, segment: StreamSegment) -> ReadHandle | None:
        """Open a segment's ledger for reading. None: the ledger is gone.

        Raises:
            StreamUnavailableError, StreamMetadataError.
        """
        known = None if self._known is None else self._known.ledgers.get(segment.ledger_id)
        try:
            if known is not None:
                return await self.client.open_known(known)  # reads need no key
            return await self.client.open_ledger(segment.ledger_id, None, recovery=False)
        except NoSuchLedgerError:
            return None
        except BookKeeperError as error:
            raise stream_error(error, f"opening segment {segment} of stream {self.name}", self.name) from error
