"""The pages of one stream where they are stored: ``.../streams/<id>/pages/<key>``.

A page is written before the node names it, and deleted after the node has ceased to. A crash in between leaves one
that nothing names; ``delete_unnamed`` finds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bookkeeper.errors import KeyExistsError, NoSuchKeyError
from bookkeeper.meta.store import settled_create, settled_delete, settled_set
from segments.chain.segment_page import SegmentPage
from segments.chain.stream_chain import FOLD_AT, StreamChain
from segments.names import stream_path

if TYPE_CHECKING:
    from bookkeeper.meta import Metadata


class StreamPages:
    """The pages of one stream. What was read is kept as long as the node names it. Raises BookKeeper's metadata
    errors."""

    def __init__(self, metadata: Metadata, stream_id: str) -> None:
        self._store: Final = metadata.store
        self._path: Final = stream_path(metadata, stream_id, "pages")
        self._known: dict[str, bytes] = {}

    async def read(self, pages: Sequence[SegmentPage]) -> tuple[SegmentPage, ...]:
        """The same pages with their values.

        Raises:
            NoSuchKeyError: one is not there. ChainCorruptError, UnsupportedStreamFormatError.
        """
        known: dict[str, bytes] = {}
        found = []
        for page in pages:
            value = self._known.get(page.key)
            if value is None:
                value = (await self._store.get(self._of(page.key))).value
            found.append(page.with_value(value) if page.key not in self._known else replace(page, value=value))
            known[page.key] = value
        self._known = known
        return tuple(found)

    async def write(self, page: SegmentPage) -> None:
        """Store a page that the node does not name yet. What an earlier attempt left there is replaced."""
        assert page.value is not None
        path = self._of(page.key)
        try:
            await settled_create(self._store, path, page.value, parents=True)
        except KeyExistsError:
            found = await self._store.get(path)
            if found.value != page.value:
                await settled_set(self._store, path, page.value, found.version)

    async def write_folded(self, chain: StreamChain) -> StreamChain:
        """The same stream, with old segments in pages until the node lists few of them; the pages are stored."""
        while (page := chain.next_page()) is not None:
            await self.write(page)
            chain = chain.fold(page)
        return chain

    async def delete_unnamed(self, chain: StreamChain) -> int:
        """Delete the pages that ``chain``, the node as it was just read, does not name and no owner will name;
        returns how many. A stream that never had a page is not looked at."""
        if chain.next_number <= FOLD_AT:
            return 0
        try:
            there = await self._store.children(self._path)
        except NoSuchKeyError:
            return 0
        named = {page.key for page in chain.pages}
        gone = [key for key in there if key not in named and _is_over(key, chain)]
        for key in gone:
            try:
                await settled_delete(self._store, self._of(key), None)
            except NoSuchKeyError:
                continue
        return len(gone)

    def _of(self, key: str) -> str:
        return f"{self._path}/{key}"


def _is_over(key: str, chain: StreamChain) -> bool:
    """Whether no step of the stream's owner can name this page any more: its segments are gone, or its writer was
    overtaken."""
    try:
        _, last, epoch = map(int, key.split("-"))
    except ValueError:
        return False
    return last < chain.first_number or epoch < chain.epoch
