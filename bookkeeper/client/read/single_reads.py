"""Reads the single entries that are asked for in one turn of the loop.

``ledger.read.read_plan`` decides which of them are read together, and which bookie is asked for the rest;
``ledger.read.hedged_reads`` decides when a second bookie is asked too. This module performs both. If a run of
consecutive entries fails, each of its entries is read again, so that every caller gets the answer to its own request.

The entries of one share are encoded, sent and checked together. Most reads end with a good entry in time. Any other
entry becomes a ``RunRead``, which continues with the other bookies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bookkeeper import codec
from bookkeeper.client.read.entry_source import EntrySource, RunRead
from bookkeeper.codec import ReadReplies
from bookkeeper.errors import BookieError
from bookkeeper.ids import NO_ENTRY, BookieId
from bookkeeper.ledger import HEADER
from bookkeeper.ledger.read import HedgedReads, LoneReads, ReadShare, lone_share, plan_reads
from bookkeeper.net.replies.deliveries import read_reply
from bookkeeper.seams import Buffer
from bookkeeper.wire import Reply

_Waiting = list["asyncio.Future[bytes]"]


class SingleReads:
    """Collects the single reads of one turn."""

    def __init__(self, source: EntrySource) -> None:
        self._source = source
        self._wanted: dict[int, _Waiting] = {}
        self._loop = asyncio.get_running_loop()
        self._hedged: HedgedReads[_PendingReads] = HedgedReads(source.read_config.hedge_ms)
        self._lone = LoneReads()
        self._latest: asyncio.Future[bytes] = self._loop.create_future()
        """The first read of the latest turn."""
        self._latest.cancel()
        self._timeout_s = source.services.config.request_timeout_ms / 1000

    @property
    def is_first(self) -> bool:
        """Whether nothing was asked for in this turn yet."""
        return not self._wanted

    def read(self, entry_id: int) -> asyncio.Future[bytes]:
        """The payload of an entry. Fails as :meth:`EntrySource.read`."""
        future: asyncio.Future[bytes] = self._loop.create_future()
        wanted = self._wanted
        if not wanted:
            if self._lone.at_once and self._latest.done():
                self._latest = future
                source = self._source
                self._send(lone_share(entry_id, source.record.metadata, source.order), {entry_id: [future]})
                return future
            self._loop.call_soon(self._on_turn)
            wanted[entry_id] = [future]
        elif (waiting := wanted.get(entry_id)) is None:
            wanted[entry_id] = [future]
        else:
            waiting.append(future)
        return future

    def _on_turn(self) -> None:
        wanted, self._wanted = self._wanted, {}
        self._lone.on_turn(len(wanted), under_way=not self._latest.done())
        (self._latest, *_), *_ = wanted.values()
        source = self._source
        plan = plan_reads(wanted, source.record.metadata, source.order, source.run_length)
        for first, count in plan.runs:
            waiting = [wanted[entry] for entry in range(first, first + count)]
            source.read(first, count).add_done_callback(_Handover(source, first, waiting))
        for share in plan.shares:
            self._send(share, wanted)

    def _send(self, share: ReadShare, wanted: dict[int, _Waiting]) -> None:
        """Ask over the connection to the share's bookie, if there is one now; otherwise each entry is a run."""
        source, bookie, ids = self._source, share.bookie, share.entry_ids
        connection = source.services.pool.ready(bookie)
        if connection is None:
            for entry_id in ids:
                source.read(entry_id).add_done_callback(_Handover(source, entry_id, [wanted[entry_id]]))
            return
        now = self._loop.time()
        waiting = wanted if len(ids) == len(wanted) else {entry_id: wanted[entry_id] for entry_id in ids}
        asked = _PendingReads(self, source, share.order, bookie, now, waiting)
        if self._hedged.on_asked(asked, now):
            self._set_timer()
        connection.reads_nowait(source.record.ledger_id, ids, now + self._timeout_s, asked)

    def _set_timer(self) -> None:
        if self._hedged.wake_at is not None:
            self._loop.call_at(self._hedged.wake_at, self._on_tick)

    def _on_tick(self) -> None:
        """Turn the reads that take too long into runs, which ask the next bookie, too."""
        late = self._hedged.on_tick(self._loop.time())
        self._set_timer()
        for asked in late:
            asked.continue_as_runs()

    def on_ended(self, asked: _PendingReads) -> None:
        """Every entry of ``asked`` is answered, or has become a run."""
        self._hedged.on_ended(asked)


class _PendingReads:
    """Entries that were asked for together at one bookie. The connection reports the replies (``ReadSink``)."""

    __slots__ = ("_order", "_reads", "_runs", "_source", "_waiting", "asked_at", "bookie")

    def __init__(
        self,
        reads: SingleReads,
        source: EntrySource,
        order: Sequence[BookieId],
        bookie: BookieId,
        asked_at: float,
        waiting: dict[int, _Waiting],
    ) -> None:
        self._reads = reads
        self._source = source
        self._order = order
        self._waiting = waiting
        self._runs: dict[int, RunRead] = {}
        """The entries that became runs because no good reply came in time."""
        self.bookie = bookie
        self.asked_at = asked_at

    def found(self, buffer: Buffer, replies: ReadReplies, picked: list[int], entry_ids: list[int]) -> None:
        """Give their readers the payloads whose digest and ids are right."""
        source, digest = self._source, self._source.digest
        payloads, said = codec.unseal_replies(
            buffer, replies, picked, source.record.ledger_id, entry_ids, digest.digest_type, digest.mac_key
        )
        waiting = self._waiting
        if (end := source.last_entry) == NO_ENTRY:
            self._report_lac(buffer, replies, picked, payloads, said)
        elif end in entry_ids and payloads[at := entry_ids.index(end)] is not None:
            source.check_length(HEADER.unpack_from(buffer, replies.begins[picked[at]])[3])
        for i, entry_id, payload in zip(picked, entry_ids, payloads, strict=True):
            if payload is None or (futures := waiting.pop(entry_id, None)) is None:
                self.answered(entry_id, read_reply(replies, i, buffer))
                continue
            for future in futures:
                if not future.done():
                    future.set_result(payload)
        if not waiting:
            self._reads.on_ended(self)

    def _report_lac(
        self, buffer: Buffer, replies: ReadReplies, picked: list[int], payloads: list[bytes | None], said: int
    ) -> None:
        """Tell how far one may read: what the last good entry carries, and what the bookie says at most."""
        good = [i for i, payload in zip(picked, payloads, strict=True) if payload is not None]
        if good:
            self._source.on_lac(HEADER.unpack_from(buffer, replies.begins[good[-1]])[2])
            self._source.on_hearsay(self.bookie, said)

    def answered(self, entry_id: int, reply: Reply | BookieError) -> None:
        """Give a bad copy, a refusal or a late reply to a run, which decides what to do."""
        run = self._runs.pop(entry_id, None) or self._run_of(entry_id)
        if not self._waiting:
            self._reads.on_ended(self)
        run.on_reply(self.bookie, reply)

    def lost(self, error: BookieError) -> None:
        """The connection was lost, or the time is over: runs ask other bookies for what is missing."""
        for entry_id in [*self._waiting, *self._runs]:
            self.answered(entry_id, error)

    def continue_as_runs(self) -> None:
        """Turn each entry that has not come yet into a run."""
        self._reads.on_ended(self)
        for entry_id in list(self._waiting):
            self._runs[entry_id] = self._run_of(entry_id)

    def _run_of(self, entry_id: int) -> RunRead:
        """The run that continues the read of one entry."""
        run = RunRead(self._source, entry_id, order=self._order)
        run.done.add_done_callback(_Handover(self._source, entry_id, [self._waiting.pop(entry_id)]))
        run.start_sent(self.bookie, self.asked_at)
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
