"""Reads of single entries that are asked for in one turn of the loop: neighbours are fetched together.

Many readers that each want "the next entry" ask for neighbours at the same moment. One batch read costs about as
much as a single one, so a stretch of neighbours becomes one run. If a run fails, each of its entries is read by
itself, so that everybody gets the answer to their own question.

An entry without neighbours is asked for at once, at the bookie that a run would ask first. A good entry in time is all
there is to most reads; whatever else comes, or nothing, makes a run of it that goes on from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Final

from bookkeeper import runs
from bookkeeper.client.reading import EntrySource, RunRead
from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.wire import ReadReply, Reply, Status

_LENGTH: Final = Struct(">I")
_Waiting = list["asyncio.Future[bytes]"]


class SingleReads:
    """Collects the single reads of one turn. ``run_length(first, last)``: how many entries make one run."""

    def __init__(self, source: EntrySource, run_length: Callable[[int, int], int]) -> None:
        self._source = source
        self._run_length = run_length
        self._wanted: dict[int, _Waiting] = {}
        self._loop = asyncio.get_running_loop()
        self._asked: dict[_OneRead, None] = {}
        """Without an answer, and not for long: the first of them was asked first."""
        self._timer: asyncio.TimerHandle | None = None

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
            if count == 1 and self._ask_one(first, wanted[first]):
                continue
            waiting = [wanted[entry] for entry in range(first, first + count)]
            self._source.read(first, count).add_done_callback(_Handover(self._source, first, waiting))

    def _runs(self, ids: list[int]) -> Iterator[tuple[int, int]]:
        """Stretches of neighbours, no longer than a run may be."""
        index = 0
        while index < len(ids):
            end = index + 1
            while end < len(ids) and ids[end] == ids[end - 1] + 1:
                end += 1
            count = 1 if end == index + 1 else min(end - index, self._run_length(ids[index], ids[end - 1]))
            yield ids[index], count
            index += count

    # -- entries without neighbours -----------------------------------------------------------------------

    def _ask_one(self, entry_id: int, waiting: _Waiting) -> bool:
        """Ask the first bookie for the entry. False: there is no connection to it now."""
        source = self._source
        metadata = source.record.metadata
        fragments = metadata.fragments
        fragment = fragments[0] if len(fragments) == 1 else metadata.fragment_of(entry_id)
        order = source.order(fragment.ensemble)
        bookie = order[0]
        if metadata.spec.is_striped:
            write_set = metadata.write_set(entry_id)
            bookie = next(one for one in order if one in write_set)
        connection = source.services.pool.ready(bookie)
        if connection is None:
            return False
        now = self._loop.time()
        read = _OneRead(self, entry_id, order, bookie, now, waiting)
        self._asked[read] = None
        if self._timer is None:
            self._timer = self._loop.call_at(now + source.read_config.hedge_ms / 1000, self._on_time)
        deadline = now + source.services.config.request_timeout_ms / 1000
        connection.read_nowait(source.record.ledger_id, EntryId(entry_id), deadline, read)
        return True

    def _on_time(self) -> None:
        """One timer for all of them: whoever waits too long becomes a run, which asks the next bookie, too."""
        self._timer = None
        hedge_s, now = self._source.read_config.hedge_ms / 1000, self._loop.time()
        for read in list(self._asked):
            if read.asked_at + hedge_s > now:
                self._timer = self._loop.call_at(read.asked_at + hedge_s, self._on_time)
                return
            read.go_on()

    def payload_in(self, reply: Reply | BookKeeperError, entry_id: int) -> bytes | None:
        """The payload, if this is the entry, its digest and ids checked (L5)."""
        if type(reply) is not ReadReply or reply.status is not Status.OK or (entry := reply.entry) is None:
            return None
        source = self._source
        digest = source.digest
        framed = _LENGTH.pack(len(entry)) + entry
        found = runs.split_entries(
            framed, 0, len(framed), source.record.ledger_id, entry_id, digest.digest_type, digest.mac_key
        )
        if not found.payloads:
            return None
        lac = found.lacs[0]
        source.on_lac(lac if reply.max_lac is None or reply.max_lac < lac else reply.max_lac)
        return found.payloads[0]

    def ended(self, read: _OneRead) -> None:
        """It is answered, or a run by now."""
        del self._asked[read]

    def run_of(self, read: _OneRead) -> RunRead:
        """The run that goes on from where ``read`` is."""
        run = RunRead(self._source, read.entry_id, order=read.order)
        run.done.add_done_callback(_Handover(self._source, read.entry_id, [read.waiting]))
        run.start_asked(read.bookie, read.asked_at)
        return run


class _OneRead:
    """One entry asked for at one bookie; called with the answer."""

    __slots__ = ("_reads", "_run", "asked_at", "bookie", "entry_id", "order", "waiting")

    def __init__(
        self,
        reads: SingleReads,
        entry_id: int,
        order: Sequence[BookieId],
        bookie: BookieId,
        asked_at: float,
        waiting: _Waiting,
    ) -> None:
        self._reads = reads
        self._run: RunRead | None = None
        self.entry_id = entry_id
        self.order = order
        self.bookie = bookie
        self.asked_at = asked_at
        self.waiting = waiting

    def __call__(self, reply: Reply | BookKeeperError) -> None:
        run = self._run
        if run is None:
            payload = self._reads.payload_in(reply, self.entry_id)
            if payload is not None:
                self._reads.ended(self)
                for future in self.waiting:
                    if not future.done():
                        future.set_result(payload)
                return
            run = self.go_on()
        run.answered(self.bookie, reply)

    def go_on(self) -> RunRead:
        """Become a run."""
        self._reads.ended(self)
        self._run = run = self._reads.run_of(self)
        return run


class _Handover:
    """Gives each reader of a run its payload, or reads its entry again by itself."""

    __slots__ = ("first", "source", "waiting")

    def __init__(self, source: EntrySource, first: int, waiting: list[_Waiting]) -> None:
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
