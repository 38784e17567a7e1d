"""Follows a reader's last add confirmed: asks for it, waits for it, and notices the end of the ledger.

This is the shell around ``KnownLac``, ``LacByCoverage``, ``LongPoll`` and ``PollPauses``. While the ledger is open it
watches the metadata, and also reads them on a timer: a recovery ends the ledger by a change of the metadata alone.

What a bookie claims without a digest is hearsay. With a keyed digest it must be proven by an entry, which costs one
request; otherwise it is accepted until it proves wrong, and from then on that bookie's claims need proof.

If the same client writes the ledger, its writer reports what is confirmed (:mod:`bookkeeper.client.tail_caches`), and
no request is sent until it ends.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Final

from bookkeeper.client.bookie_request import entry_of, failure_of, send_request
from bookkeeper.client.bookies.bookie_pool import ConnectionPurpose
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.read.poll_ahead import PendingPoll, PollAhead
from bookkeeper.client.read.poll_pauses import PollPauses
from bookkeeper.client.services import ClientServices
from bookkeeper.client.tail_caches import TailCache
from bookkeeper.client.tasks import Tasks
from bookkeeper.client.write.append_futures import copy_error
from bookkeeper.client.write.metadata_writes import STORE_AWAY
from bookkeeper.errors import (
    BookieFailedError,
    BookKeeperError,
    MalformedFrameError,
    NoSuchLedgerError,
)
from bookkeeper.ids import NO_ENTRY, BookieId, EntryId
from bookkeeper.ledger import DigestScheme, DigestType, Entry, classify
from bookkeeper.ledger.read import KnownLac, LacByCoverage, LongPoll, Poll
from bookkeeper.meta import Watch
from bookkeeper.wire import LacReply, ReadEntry, ReadLac, ReadReply, Reply

_log = logging.getLogger(__name__)

GRACE_S: Final = 0.5
"""Seconds that a bookie has after the end of a long poll, or to show what it claims, before the next bookie is asked. A
later answer is used, too."""


class UnfoundedLacError(BookieFailedError):
    """An entry was read because a bookie said that it is confirmed, and it is not there. Ask again how far one may
    read."""


def has_passed(loop: asyncio.AbstractEventLoop, until: float) -> bool:
    """Whether the time ``until`` has come. A loop may wake a waiter a little early. Simulated time passes only while
    all tasks wait; there a limit in whole milliseconds could stay a rounding error away for ever."""
    return loop.time() >= until - 1e-6


class LacFollower:
    """Keeps a reader's last add confirmed up to date."""

    def __init__(self, services: ClientServices, record: LedgerView, digest: DigestScheme, tasks: Tasks) -> None:
        self.known = KnownLac(record.metadata)
        self._services = services
        self._record = record
        self._digest = digest
        self._tasks = tasks
        self._waiters: dict[asyncio.Future[Reply | BookKeeperError | None], PendingPoll | None] = {}
        """The waiters for news, each with the poll whose reply it gets."""
        self._changed = asyncio.Event()
        self._watch: Watch | None = None
        self._failure: BookKeeperError | None = None
        self._stopped = False
        self._has_key = digest.digest_type is DigestType.HMAC
        self._latest_hearsay: tuple[BookieId, int] | None = None
        """The bookie and the value of the latest hearsay that was accepted."""
        self._distrusted: set[BookieId] = set()
        """Bookies whose hearsay proved wrong."""
        self._proofs: dict[BookieId, asyncio.Future[None]] = {}
        """Pending requests for proof of a claim, by bookie."""
        self._pauses = PollPauses(services.seams.rng)
        self._ahead = PollAhead()
        self._tail: TailCache | None = None
        """The writer's tail cache, while this client writes the ledger."""
        self._leave_tail: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Follow the ledger's metadata until it is closed."""
        if self.known.closed_at is None:
            self._watch = self._services.metadata.ledgers.watch(self._record.ledger_id, self._changed.set)
            self._tasks.start(self._follow(), "follow the metadata")
            self._tail = self._services.tails.get(self._record.ledger_id)
            if self._tail is not None:
                self._leave_tail = self._tail.follow(self._on_tail)
                self.on_lac(self._tail.last_add_confirmed)

    def stop(self) -> None:
        """End all waits: the reader is closed."""
        self._stopped = True
        self._unwatch()
        self._wake()

    def fail(self, error: BookKeeperError) -> None:
        """End all waits with ``error``: the metadata are no longer trusted."""
        self._failure = error
        self.stop()

    def _unwatch(self) -> None:
        self._tail = None
        self._leave_tail()
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _on_tail(self) -> None:
        """The writer, in this client, has confirmed something, or has ended."""
        tail = self._tail
        if tail is not None and tail.ended:
            self._tail = None
            self._wake()
        elif tail is not None:
            self.on_lac(tail.last_add_confirmed)

    def on_lac(self, lac: int | None) -> None:
        """Accept a last add confirmed from a checked entry, or from this client's writer."""
        if self.known.on_proven(lac):
            self._wake()

    def on_hearsay(self, bookie: BookieId, lac: int | None) -> None:
        """Accept a last add confirmed that only ``bookie`` claims, unless it needs a proof."""
        if lac is not None and not self._needs_proof(bookie) and self.known.on_hearsay(lac):
            self._latest_hearsay = (bookie, lac)
            self._wake()

    def on_absent(self, entry_id: int) -> BookKeeperError | None:
        """This entry provably does not exist. If only hearsay said that it is confirmed, the hearsay is withdrawn.
        Returns the error for the entry's reader; None if the entry was proven."""
        if not self.known.on_absent(entry_id):
            return None
        what = f"entry {entry_id} of ledger {self._record.ledger_id} is not there"
        if self._latest_hearsay is None:
            return UnfoundedLacError(f"{what}, and no entry shows that it is confirmed: ask again how far one may read")
        bookie, claimed = self._latest_hearsay
        self._distrust(bookie, claimed)
        said = f"{bookie} said that all up to {claimed} are confirmed, and is not believed any more"
        return UnfoundedLacError(f"{what}: {said}; ask again how far one may read")

    def _distrust(self, bookie: BookieId, claimed: int) -> None:
        """Accept no hearsay of this bookie any more; log that once."""
        if bookie not in self._distrusted:
            self._distrusted.add(bookie)
            text = "bookie %s says that entries of ledger %d up to %d are confirmed, and that is not so"
            _log.warning(text, bookie, self._record.ledger_id, claimed)

    def _needs_proof(self, bookie: BookieId) -> bool:
        return self._has_key or bookie in self._distrusted

    def _request_proof(self, bookie: BookieId, claimed: int) -> asyncio.Future[None]:
        """Request an entry that proves the claim of ``bookie``. The future is done with the reply or the failure."""
        if (under_way := self._proofs.get(bookie)) is not None:
            return under_way
        proof = self._proofs[bookie] = asyncio.get_running_loop().create_future()

        def answered(reply: Reply | BookKeeperError) -> None:
            del self._proofs[bookie]
            try:
                shown = self._lac_of(reply, bookie)
            except BookKeeperError as error:
                _log.debug("%s shows no last add confirmed: %s", bookie, error)
            else:
                self.on_lac(shown)
                if self.known.closed_at is None and self.known.proven < claimed:
                    self._distrust(bookie, claimed)
            if not proof.done():
                proof.set_result(None)

        send_request(
            self._services, self._tasks, bookie, ReadLac(self._record.ledger_id), answered, use=ConnectionPurpose.LAC
        )
        return proof

    def _wake(self) -> None:
        """Wake all waiters: there is news."""
        for waiter in list(self._waiters):
            if not waiter.done():
                waiter.set_result(None)

    # -- metadata -----------------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Read the metadata now. Raises: NoSuchLedgerError, MetadataUnavailableError."""
        if self.known.on_metadata(await self._record.refresh()):
            self._wake()

    async def _follow(self) -> None:
        period_s = self._services.config.metadata_poll_ms / 1000
        try:
            while self.known.closed_at is None:
                try:
                    async with asyncio.timeout(period_s):
                        await self._changed.wait()
                except TimeoutError:
                    pass
                self._changed.clear()
                try:
                    await self.refresh()
                except STORE_AWAY as error:
                    text = "the metadata of ledger %d cannot be read now; its reader tries again: %s"
                    _log.warning(text, self._record.ledger_id, error)
        except BookKeeperError as error:  # the ledger was deleted, or its metadata are unreadable
            if not isinstance(error, NoSuchLedgerError):
                text = "the reader of ledger %d stops following it, because its metadata cannot be used: %s"
                _log.error(text, self._record.ledger_id, error)
            self._failure = error
        finally:
            self._wake()
            self._unwatch()

    # -- asking (coverage) --------------------------------------------------------------------------------

    async def query_bookies(self) -> EntryId:
        """Read the last add confirmed from the bookies of the last fragment, until those that answered cover it.

        Raises: UnauthorizedError: the password is wrong. BookieError: too few bookies answer.
        """
        metadata = self._record.metadata
        ensemble = metadata.last_fragment.ensemble
        question = LacByCoverage(metadata.spec, ensemble, self.known.value)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for bookie in ensemble:
            self._query_bookie(bookie, question, done)
        await done
        self.on_lac(question.value)
        return self.known.value

    def _query_bookie(self, bookie: BookieId, question: LacByCoverage, done: asyncio.Future[None]) -> None:
        def answered(reply: Reply | BookKeeperError) -> None:
            try:
                lac = self._lac_of(reply, bookie)
            except BookKeeperError as error:
                question.on_answer(bookie, classify(error), None, error)
            else:
                question.on_answer(bookie, classify(None), lac)
            if done.done():
                self.on_lac(question.value)  # the answer is late, but may be news
            elif question.is_covered:
                done.set_result(None)
            elif (error_now := question.error) is not None:
                done.set_exception(error_now)

        send_request(
            self._services, self._tasks, bookie, ReadLac(self._record.ledger_id), answered, use=ConnectionPurpose.LAC
        )

    def _lac_of(self, reply: Reply | BookKeeperError, bookie: BookieId) -> int | None:
        """The highest last add confirmed in a READ_LAC reply, digests checked."""
        ledger_id = self._record.ledger_id
        what = f"last add confirmed of ledger {ledger_id} on {bookie}"
        if (error := failure_of(reply, what)) is not None:
            raise error
        if not isinstance(reply, LacReply):
            raise MalformedFrameError(f"{what}: the bookie sent a reply of another kind ({type(reply).__name__})")
        heard = []
        if reply.last_entry:
            heard.append(self._digest.unseal(reply.last_entry, ledger_id, None).last_add_confirmed)
        if reply.lac_body:
            heard.append(self._digest.unseal_lac(reply.lac_body, ledger_id))
        return max(heard, default=None)

    # -- waiting (long poll) ------------------------------------------------------------------------------

    async def wait_past(self, last: int, until: float | None = None) -> Entry | None:
        """Wait until the last add confirmed exceeds ``last`` or the ledger is closed, but for one round at most.

        A round takes ``long_poll_ms``, and ends at the loop's time ``until`` if that is earlier. On a striped ledger a
        bookie may answer with a newer last add confirmed and no entry; the round then continues with what was heard.

        Returns the entry that came with the news, if there was one.

        Raises:
            NoSuchLedgerError: the ledger was deleted.
            BookKeeperError: its metadata cannot be decoded (MetadataFormatError), or contradict what was heard.
        """
        loop = asyncio.get_running_loop()
        ensemble = self._record.metadata.last_fragment.ensemble
        began, round_ms = loop.time(), self._services.config.long_poll_ms
        if until is not None:
            round_ms = min(round_ms, max(1, math.ceil((until - began) * 1000)))
        polls = LongPoll(ensemble, round_ms)
        while self.known.value <= last:
            if self._failure is not None:
                raise copy_error(self._failure)
            if self._stopped or (until is not None and has_passed(loop, until)):
                break
            if self._tail is not None:
                await self._pause(began + round_ms / 1000 - loop.time())
                if has_passed(loop, began + round_ms / 1000):
                    return None
                continue
            poll = polls.next(self.known, int((loop.time() - began) * 1000))
            if poll is None:
                return None
            entry = await self._poll(poll, until)
            if entry is not None and self.known.value > last:
                return entry
        return None

    async def _poll(self, poll: Poll, until: float | None) -> Entry | None:
        """Send a long poll and wait for its reply or for other news, until ``until`` at the latest."""
        loop, ahead = asyncio.get_running_loop(), self._ahead
        asked = ahead.take_over(poll, loop.time()) or self._send_poll(poll)
        if (further := ahead.next(asked.poll)) is not None:
            ahead.pending = self._send_poll(further)
        waiter: asyncio.Future[Reply | BookKeeperError | None] = loop.create_future()
        self._waiters[waiter] = asked
        poll = asked.poll
        late = asked.sent_at + poll.timeout_ms / 1000 + GRACE_S
        try:
            async with asyncio.timeout_at(late if until is None else min(late, until)):
                reply = await waiter
        except TimeoutError:
            ahead.on_answered(asked, None, loop.time())
            return None
        finally:
            self._waiters.pop(waiter, None)
        if reply is None:
            return None
        took_s = loop.time() - asked.sent_at
        entry, error = self._read_poll(poll, reply)
        ahead.on_answered(asked, entry, loop.time())
        if (proof := self._proofs.get(poll.bookie)) is not None and self.known.value <= poll.previous_lac:
            limit_s = GRACE_S if until is None else min(GRACE_S, max(0.0, until - loop.time()))
            await asyncio.wait([proof], timeout=limit_s)
        if error is not None:
            pause_s = self._pauses.on_failed()
        else:
            news = self.known.value > poll.previous_lac
            pause_s = self._pauses.on_answered(took_s=took_s, timeout_s=poll.timeout_ms / 1000, news=news)
        if pause_s > 0:
            await self._pause(pause_s)
        return entry

    def _send_poll(self, poll: Poll) -> PendingPoll:
        """Send a long poll. Its reply goes to its waiter; without one its last add confirmed is used."""
        asked = PendingPoll(poll, asyncio.get_running_loop().time())
        request = ReadEntry(
            self._record.ledger_id,
            NO_ENTRY,
            previous_lac=poll.previous_lac,
            timeout_ms=poll.timeout_ms,
            piggyback=True,
        )
        limit_s = poll.timeout_ms / 1000 + self._services.config.request_timeout_ms / 1000

        def answered(reply: Reply | BookKeeperError) -> None:
            for waiter, awaited in self._waiters.items():
                if awaited is asked and not waiter.done():
                    waiter.set_result(reply)
                    return
            if asked is self._ahead.pending:
                self._ahead.on_answered_early(self._read_poll(poll, reply)[0])
            elif isinstance(reply, ReadReply):
                self._on_poll_hearsay(poll, reply)

        send_request(
            self._services, self._tasks, poll.bookie, request, answered, use=ConnectionPurpose.LAC, timeout_s=limit_s
        )
        return asked

    def take_ready(self, entry_id: int, count_max: int | None = None) -> list[bytes]:
        """The payloads in memory from a confirmed entry on: those that this client has just written, or one that a long
        poll has brought ahead of its turn, which is handed out once."""
        if self._tail is not None and (run := self._tail.run_at(entry_id, count_max)):
            return run
        polled = self._ahead.take(entry_id)
        return [] if polled is None else [polled]

    async def _pause(self, seconds: float) -> None:
        """Wait for ``seconds``, or until there is news."""
        waiter: asyncio.Future[Reply | BookKeeperError | None] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = None
        try:
            async with asyncio.timeout(seconds):
                await waiter
        except TimeoutError:
            pass
        finally:
            self._waiters.pop(waiter, None)

    def _read_poll(self, poll: Poll, reply: Reply | BookKeeperError) -> tuple[Entry | None, BookKeeperError | None]:
        what = f"long poll of ledger {self._record.ledger_id} on {poll.bookie}"
        error = failure_of(reply, what)
        entry: Entry | None = None
        if error is None and isinstance(reply, ReadReply):
            if reply.entry is not None and reply.entry_id != NO_ENTRY:
                try:
                    entry = entry_of(reply, self._digest, self._record.ledger_id, reply.entry_id, what)
                except BookKeeperError as bad:
                    error = bad
                else:
                    self.on_lac(entry.last_add_confirmed)
            if error is None:
                self._on_poll_hearsay(poll, reply)
        if error is not None:
            _log.debug("%s: %s", what, error)
        return entry, error

    def _on_poll_hearsay(self, poll: Poll, reply: ReadReply) -> None:
        """Take what a long poll's reply says of the last add confirmed; have the bookie show it, if it must."""
        self.on_hearsay(poll.bookie, reply.max_lac)
        if reply.max_lac is not None and reply.max_lac > self.known.value and self.known.closed_at is None:
            self._request_proof(poll.bookie, reply.max_lac)
