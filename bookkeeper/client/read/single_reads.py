"""Reads of single entries that are asked for in one turn of the loop: neighbours are fetched together.

Many readers that each want "the next entry" ask for neighbours at the same moment. One batch read costs about as
much as a single one, so a stretch of neighbours becomes one run. If a run fails, each of its entries is read by
itself, so that everybody gets the answer to their own question.

Entries without neighbours are asked for at once, in plain reads: those of one turn are shared out among the bookies,
and what goes to one of them is encoded, sent, and checked when it comes back, together. A good entry in time is all
there is to most reads; whatever else comes, or nothing, makes a run of it that goes on from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from bookkeeper import codec
from bookkeeper.client.read.entry_source import EntrySource, RunRead
from bookkeeper.codec import NO_LAC, ReadReplies
from bookkeeper.errors import BookieError
from bookkeeper.ids import BookieId
from bookkeeper.ledger import HEADER
from bookkeeper.ledger.metadata import Fragment
from bookkeeper.net.replies.deliveries import read_reply
from bookkeeper.seams import Buffer
from bookkeeper.wire import Reply

TOGETHER: Final = 8
"""So many entries of one turn are asked for at one bookie before another gets a share: a bookie that has them in memory
answers eight in little more time than one."""

_Waiting = list["asyncio.Future[bytes]"]


class SingleReads:
    """Collects the single reads of one turn. ``run_length(first, last)``: how many entries make one run."""

    def __init__(self, source: EntrySource, run_length: Callable[[int, int], int]) -> None:
        self._source = source
        self._run_length = run_length
        self._wanted: dict[int, _Waiting] = {}
        self._loop = asyncio.get_running_loop()
        self._asked: dict[_PendingReads, None] = {}
        """Without all their answers, and not for long: the first of them were asked for first."""
        self._timer: asyncio.TimerHandle | None = None

    def read(self, entry_id: int) -> asyncio.Future[bytes]:
        """The payload of an entry. Fails as :meth:`EntrySource.read`."""
        future: asyncio.Future[bytes] = self._loop.create_future()
        if not self._wanted:
            self._loop.call_soon(self._on_turn)
        if (waiting := self._wanted.get(entry_id)) is None:
            self._wanted[entry_id] = [future]
        else:
            waiting.append(future)
        return future

    def _on_turn(self) -> None:
        wanted, self._wanted = self._wanted, {}
        ids = alone = sorted(wanted)
        if not wanted.keys().isdisjoint([entry + 1 for entry in ids]):
            alone = []
            for first, count in self._runs(ids):
                if count == 1:
                    alone.append(first)
                else:
                    waiting = [wanted[entry] for entry in range(first, first + count)]
                    self._source.read(first, count).add_done_callback(_Handover(self._source, first, waiting))
        fragments = self._source.record.metadata.fragments
        if len(fragments) == 1:
            self._share_out(fragments[0], alone, wanted)
        else:
            for fragment, some in self._by_fragment(alone).items():
                self._share_out(fragment, some, wanted)

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

    def _by_fragment(self, ids: list[int]) -> dict[Fragment, list[int]]:
        found: dict[Fragment, list[int]] = {}
        for entry_id in ids:
            found.setdefault(self._source.record.metadata.fragment_of(entry_id), []).append(entry_id)
        return found

    def _share_out(self, fragment: Fragment, ids: list[int], wanted: dict[int, _Waiting]) -> None:
        """Each bookie gets its share; few of them stay together."""
        metadata, ensemble = self._source.record.metadata, fragment.ensemble
        parts = min(len(ensemble), -(-len(ids) // TOGETHER))
        for part in range(parts):
            order = self._source.order(ensemble)
            some = ids[len(ids) * part // parts : len(ids) * (part + 1) // parts]
            if not metadata.spec.is_striped:
                self._ask(order, order[0], some, wanted)
                continue
            shares: dict[BookieId, list[int]] = {}
            for entry_id in some:
                write_set = metadata.write_set(entry_id)
                shares.setdefault(next(one for one in order if one in write_set), []).append(entry_id)
            for bookie, share in shares.items():
                self._ask(order, bookie, share, wanted)

    def _ask(self, order: Sequence[BookieId], bookie: BookieId, ids: list[int], wanted: dict[int, _Waiting]) -> None:
        """Ask the bookie for these entries, over the connection to it, if there is one now; else each is a run."""
        source = self._source
        connection = source.services.pool.ready(bookie)
        if connection is None:
            for entry_id in ids:
                source.read(entry_id).add_done_callback(_Handover(source, entry_id, [wanted[entry_id]]))
            return
        now = self._loop.time()
        asked = _PendingReads(self, source, order, bookie, now, {entry_id: wanted[entry_id] for entry_id in ids})
        self._asked[asked] = None
        if self._timer is None:
            self._timer = self._loop.call_at(now + source.read_config.hedge_ms / 1000, self._on_time)
        deadline = now + source.services.config.request_timeout_ms / 1000
        connection.reads_nowait(source.record.ledger_id, ids, deadline, asked)

    def _on_time(self) -> None:
        """One timer for all of them: whatever takes too long becomes a run, which asks the next bookie, too."""
        self._timer = None
        hedge_s, now = self._source.read_config.hedge_ms / 1000, self._loop.time()
        for asked in list(self._asked):
            if asked.asked_at + hedge_s > now:
                self._timer = self._loop.call_at(asked.asked_at + hedge_s, self._on_time)
                return
            asked.go_on()

    def ended(self, asked: _PendingReads) -> None:
        """Everything is answered, or a run by now."""
        self._asked.pop(asked, None)


class _PendingReads:
    """Entries asked for together at one bookie; the connection tells what comes (``ReadSink``)."""

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
        """What has become of those that were not simply answered in time."""
        self.bookie = bookie
        self.asked_at = asked_at

    def found(self, buffer: Buffer, replies: ReadReplies, picked: list[int], entry_ids: list[int]) -> None:
        """Payloads whose digest and ids are right go to those who wait."""
        source, digest = self._source, self._source.digest
        payloads, lac = codec.unseal_replies(
            buffer, replies, picked, source.record.ledger_id, entry_ids, digest.digest_type, digest.mac_key
        )
        if lac != NO_LAC:
            source.on_lac(lac)
        waiting = self._waiting
        for i, entry_id, payload in zip(picked, entry_ids, payloads, strict=True):
            if payload is None or entry_id not in waiting:
                self.answered(entry_id, read_reply(replies, i, buffer))
                continue
            if source.is_end(entry_id):
                source.on_end(HEADER.unpack_from(buffer, replies.begins[i])[3])
            for future in waiting.pop(entry_id):
                if not future.done():
                    future.set_result(payload)
        if not waiting:
            self._reads.ended(self)

    def answered(self, entry_id: int, reply: Reply | BookieError) -> None:
        """Bad copies, refusals, late answers: a run knows what to do."""
        run = self._runs.pop(entry_id, None) or self._run_of(entry_id)
        if not self._waiting:
            self._reads.ended(self)
        run.answered(self.bookie, reply)

    def lost(self, error: BookieError) -> None:
        """The connection, or the time to answer."""
        for entry_id in [*self._waiting, *self._runs]:
            self.answered(entry_id, error)

    def go_on(self) -> None:
        """Each entry that is not here yet becomes a run."""
        self._reads.ended(self)
        for entry_id in list(self._waiting):
            self._runs[entry_id] = self._run_of(entry_id)

    def _run_of(self, entry_id: int) -> RunRead:
        """The run that goes on from where the read is."""
        run = RunRead(self._source, entry_id, order=self._order)
        run.done.add_done_callback(_Handover(self._source, entry_id, [self._waiting.pop(entry_id)]))
        run.start_asked(self.bookie, self.asked_at)
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
