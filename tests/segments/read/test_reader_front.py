from __future__ import annotations

from segments.read import Reader, ReaderFront
from segments.remote import RemoteReader


def test_readers_near_and_behind_gateways_share_it() -> None:
    names = ("next", "next_batch", "batches", "arrow_batches", "__aiter__", "skip_gap", "seek", "close", "position")
    for name in names:
        assert getattr(Reader, name) is getattr(RemoteReader, name) is getattr(ReaderFront, name)
