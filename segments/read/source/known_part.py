"""What one reader knows of a part of a stream, for readers elsewhere that are to read it without asking again.

It can be pickled, and nothing in it is secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from segments.chain import StreamChain
from segments.position import Position

if TYPE_CHECKING:
    from bookkeeper.client.known import KnownCluster, KnownLedger


@dataclass(frozen=True, slots=True)
class KnownPart:
    """The segments of a stream from one position to another, as they were."""

    name: str
    stream_id: str
    chain: StreamChain
    """The stream's node, with the segments of this part alone."""
    ledgers: Mapping[int, KnownLedger]
    """By ledger id. The ledger of a segment that is not here is asked for when it is read."""
    cluster: KnownCluster

    def part(self, start: Position, stop: Position) -> KnownPart:
        """What is known of a smaller part."""
        chain = chain_between(self.chain, start, stop)
        ids = {segment.ledger_id for segment in chain.recent}
        return replace(self, chain=chain, ledgers={at: each for at, each in self.ledgers.items() if at in ids})


def chain_between(chain: StreamChain, start: Position, stop: Position) -> StreamChain:
    """The node as who reads from ``start`` to ``stop`` needs it: without other segments, and who owns it."""
    segments = tuple(each for each in chain.segments if start.segment <= each.number <= stop.segment)
    return StreamChain(
        stream_id=chain.stream_id,
        epoch=chain.epoch,
        recent=segments,
        start=chain.start,
        start_seq_no=chain.start_seq_no,
        next_number=chain.next_number,
        sealed=chain.sealed,
        records=chain.records,
    )
