"""Reads of single entries that are asked for in one turn of the loop: neighbours are fetched together.

Many readers that each want "the next entry" ask for neighbours at the same moment. One batch read costs about as
much as a single one, so a stretch of neighbours becomes one run. If a run fails, each of its entries is read by
itself, so that everybody gets the answer to their own question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from bookkeeper.client.reading import EntrySource


class SingleReads:
    """Collects the single reads of one turn. ``run_length(first, last)``: how many entries make one run."""

    def __init__(self, source: EntrySource, run_length: Callable[[int, int], int]) -> None:
        self._source = source
        self._run_length = run_length
        self._wanted: dict[int, list[asyncio.Future[bytes]]] = {}
        self._loop = asyncio.get_running_loop()

    def read(self, entry_id: int) -> asyncio.Future[bytes]:
        """The payload of an entry. Fails as :meth:`EntrySource.read`."""
        future: asyncio.Future[bytes] = self._loop.create_future()
        if not self._wanted:
            self._loop.call_soon(self._on_turn)
        self._wanted.setdefault(entry_id, []).append(future)
        return future

    def _on_turn(self) -> None:
        wanted, self._wanted = self._wanted, {}
        for first, count in self._runs(sorted(wanted)):
            waiting = [wanted[entry] for entry in range(first, first + count)]
            self._source.read(first, count).add_done_callback(_Handover(self._source, first, waiting))

    def _runs(self, ids: list[int]) -> Iterator[tuple[int, int]]:
        """Stretches of neighbours, no longer than a run may be."""
        index = 0
        while index < len(ids):
            end = index + 1
            while end < len(ids) and ids[end] == ids[end - 1] + 1:
                end += 1
            count = min(end - index, self._run_length(ids[index], ids[end - 1]))
            yield ids[index], count
            index += count


class _Handover:
    """Gives each reader of a run its payload, or reads its entry again by itself."""

    __slots__ = ("first", "source", "waiting")

    def __init__(self, source: EntrySource, first: int, waiting: list[list[asyncio.Future[bytes]]]) -> None:
        self.source = source
        self.first = first
        self.waiting = waiting

    def __call__(self, run: asyncio.Future[list[bytes]]) -> None:
        error = run.exception()
        if error is None:
            for payload, futures in zip(run.result(), self.waiting, strict=True):
                for future in futures:
                    if not future.done():
                        future.set_result(payload)
        elif len(self.waiting) == 1:
            for future in self.waiting[0]:
                if not future.done():
                    future.set_exception(error)
        else:
            for entry, futures in enumerate(self.waiting, self.first):
                if not all(future.done() for future in futures):
                    self.source.read(entry).add_done_callback(_Handover(self.source, entry, [futures]))
