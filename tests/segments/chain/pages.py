"""Streams with very many segments, made without writing them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from segments.chain import (
    SegmentContents,
    SegmentPage,
    StreamChain,
    StreamHead,
    StreamSegment,
    stream_chain,
    stream_pages,
)

RECORDS = 3
"""Of each segment."""


def many(count: int, first: int = 1) -> tuple[StreamSegment, ...]:
    """Completed segments from this number on: number n has ledger 1,000,000 + n, and 100 bytes."""
    return tuple(
        StreamSegment(
            number,
            1_000_000 + number,
            RECORDS * (number - 1),
            number,
            1,
            number + 1,
            SegmentContents(RECORDS, 100, 2, (1, 1), 2 * number, 2 * number + 1, number, number + 1, None, None, 2),
        )
        for number in range(first, first + count)
    )


def long_chain(count: int) -> StreamChain:
    """A record that lists so many segments by itself."""
    return StreamChain(
        "id", 1, "n1", "a", recent=many(count), next_number=count + 1, records=RECORDS * count, last_txid=2 * count + 1
    )


def folded(chain: StreamChain, size: int, pages: int = 1) -> StreamChain:
    """The chain with so many pages of this size, which are read."""
    for _ in range(pages):
        page = SegmentPage.of(chain.recent[:size], chain.epoch)
        chain = chain.fold(page)
        chain = replace(chain, pages=(*chain.pages[:-1], page))
    return chain


def make_pages_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record lists at most four segments before a page comes, and a page has two."""
    monkeypatch.setattr(stream_chain, "FOLD_AT", 4)
    monkeypatch.setattr(stream_chain, "PAGE_SEGMENTS", 2)
    monkeypatch.setattr(stream_pages, "FOLD_AT", 4)


async def fold(record: StreamHead) -> StreamChain:
    """Move old segments of a stored stream to pages; returns the record with them."""
    chain, version = await record.read()
    await record.write(await record.pages.write_folded(chain), version)
    return (await record.read())[0]
