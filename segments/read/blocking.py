"""Reading for threads: what :mod:`segments.sync` has, and what a process needs that does nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bookkeeper.background_loop import BlockingCloser, SharedAttribute, blocking, iterating, making, run
from segments.position import Position
from segments.read.known_streams import KnownStreams as AsyncKnownStreams
from segments.read.reader_front import ReaderFront as AsyncReader
from segments.record import Gap, StoredRecord

if TYPE_CHECKING:
    from bookkeeper.client.known import KnownCluster


class Reader(BlockingCloser[AsyncReader]):
    """Reads a stream, for threads. See :class:`segments.read.reader.Reader`."""

    position = SharedAttribute[Position]()
    caught_up = SharedAttribute[bool]()
    ended = SharedAttribute[bool]()
    skipped_gaps = SharedAttribute[int]()

    next = blocking(AsyncReader.next)
    next_batch = blocking(AsyncReader.next_batch)
    batches = iterating(AsyncReader.batches)
    arrow_batches = iterating(AsyncReader.arrow_batches)
    lag = blocking(AsyncReader.lag)
    state = blocking(AsyncReader.state)
    skip_gap = blocking(AsyncReader.skip_gap)
    seek = blocking(AsyncReader.seek)
    close = blocking(AsyncReader.close)

    def __iter__(self) -> Iterator[StoredRecord | Gap]:
        """Yield records, with one hop between the threads for many of them."""
        for batch in self.batches():
            if batch.gap is not None:
                yield batch.gap
            yield from batch.records()


class KnownStreams(BlockingCloser[AsyncKnownStreams]):
    """Reads parts that others knew, for threads. See :class:`segments.read.known_streams.KnownStreams`."""

    read = making(AsyncKnownStreams.read, Reader)
    learn = blocking(AsyncKnownStreams.learn)
    close = blocking(AsyncKnownStreams.close)


def connect_known(uri: str, known: KnownCluster) -> KnownStreams:
    """Read from the cluster at a metadata URI. Raises as the async one."""
    return KnownStreams(run(AsyncKnownStreams.connect(uri, known)))
