"""A simulated cluster whose metadata store shows everything that happens to one stream to a witness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from bookkeeper.meta.stores.memory import Fate
from bookkeeper.testing.cluster import SimCluster, WitnessedStore
from segments.chain import SegmentPage, decode_chain
from segments.errors import StreamError
from tests.segments.world.chain_witness import ChainWitness


class StreamStore(WitnessedStore):
    """Shows every version of a stream's node, with its pages, and every ledger that is deleted."""

    def __init__(self, wall_ms: Callable[[], int], witness: ChainWitness) -> None:
        super().__init__(wall_ms)
        self._stream_witness = witness

    def _witness(self, path: str) -> None:
        super()._witness(path)
        node = self.read(lambda tree: tree.find(path))
        if "/segments/streams/" in path and path.endswith("/chain"):
            if node is not None:
                chain = decode_chain(node.value)
                home = path.removesuffix("/chain")
                try:
                    pages = tuple(self._page(f"{home}/pages/{page.key}", page) for page in chain.pages)
                except StreamError as error:
                    self._stream_witness.find(f"C4: the record names a page that cannot be read: {error}")
                    return
                self._stream_witness.see(replace(chain, pages=pages))
        elif node is None and path in self.seen:
            self._stream_witness.see_deleted(int("".join(filter(str.isdigit, path))))

    def _page(self, path: str, page: SegmentPage) -> SegmentPage:
        node = self.read(lambda tree: tree.find(path))
        return page.with_value(b"" if node is None else node.value)


class StreamCluster(SimCluster):
    """A cluster with such a store."""

    def __init__(self, seed: int, witness: ChainWitness) -> None:
        super().__init__(seed, bookies=4)
        self.store: StreamStore = StreamStore(self.client.seams.clock.wall_ms, witness)


class LostReplies:
    """Requests to the metadata store take their time; some of them, and some replies, never come."""

    def __init__(self, rng: Random, requests: float, replies: float) -> None:
        self._rng = rng
        self._requests, self._replies = requests, replies

    def fate(self, session: int, kind: str, path: str) -> Fate:
        rng = self._rng
        return Fate(
            delay_before_s=rng.random() * 0.002,
            request_lost=rng.random() < self._requests,
            reply_lost=rng.random() < self._replies,
            delay_after_s=rng.random() * 0.002,
        )


class EndedWrite:
    """One session ends with its next write, which is done."""

    def __init__(self, session: int) -> None:
        self._session = session

    def fate(self, session: int, kind: str, path: str) -> Fate:
        return Fate(session_ends=session == self._session)
