"""Shell: the owner of a stream that publishes batches, each by one compare-and-set of the stream's node.

The write names the batch's ledgers as completed segments, remembers the batch of its application, and ends the
staging: all or none. Between two batches no segment is open, so an owner that dies leaves nothing to recover.

Rows that came in messages get a ledger here, and a query waits for it. So ``prepare`` makes that of the next batch
(:mod:`~segments.publish.prepared_ledger`), and what this owner itself has written of an application is not read again:
the write fails if somebody else has changed it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from bookkeeper.access import ResourceKind
from bookkeeper.access.ownership import owner_text
from bookkeeper.amounts import counted
from bookkeeper.errors import (
    BookKeeperError,
    KeyExistsError,
    MetadataConflictError,
    NoSuchKeyError,
)
from bookkeeper.meta.store import OUTCOME_UNKNOWN, Operation, Version, settled_create
from segments.chain import SegmentContents, StreamHead, ledger_tags
from segments.config import StreamConfig
from segments.entries.entry import encode_payload
from segments.entries.layout import EntryKind
from segments.error_translation import worded
from segments.errors import BatchRefusedError, StreamError
from segments.publish.app_record import AppRecords, MayPublish
from segments.publish.batch_key import (
    AppRecord,
    BatchKey,
    KnownBatch,
    NewBatch,
    judge_batch,
    outcome_unknown,
    require_key,
)
from segments.publish.claiming import claim_stream
from segments.publish.prepared_ledger import PreparedLedger
from segments.publish.staged_check import check_staged
from segments.publish.staged_writer import StagedLedger, StagedRows, StagedWriter, by_staging, records_of
from segments.retention.agreed_time import AgreedTime
from segments.retention.stagings import Stagings
from segments.write.segment.segment_change import end_segment
from segments.write.state.contents_tally import ContentsTally
from segments.write.state.snapshot import encode_snapshot
from segments.write.state.stream_owner import StreamOwner
from segments.write.take_over import find_end

if TYPE_CHECKING:
    from bookkeeper import BookKeeper

_log = logging.getLogger(__name__)

LEDGERS_MAX: Final = 1_000
"""The most ledgers of one batch, and so the most segments that it adds."""
TELL_EVERY: Final = 500
"""After so many published segments one tells of the stream's producers."""
_PAUSE_S: Final = 0.05

ReadConfig = Callable[[], Awaitable[StreamConfig]]


@dataclass(frozen=True, slots=True)
class PublishedBatch:
    """What became of a batch."""

    number: int
    """As its application counts; 0 without an application."""
    records: int
    first_seq_no: int
    already_there: bool
    """An earlier attempt has published it; what was staged this time is dropped."""


class PublisherFront(Protocol):
    """What publishes batches to one stream, in this process or through a gateway."""

    async def publish(self, key: BatchKey | None, staged: Sequence[StagedRows]) -> PublishedBatch: ...

    async def prepare(self, app: str) -> None: ...

    async def clean(self, app: str | None = None, own: Collection[str] = ()) -> list[int]: ...

    async def close(self) -> None: ...


class StreamPublisher:
    """Publishes batches to one stream, until another owner claims it. One call at a time."""

    def __init__(
        self,
        client: BookKeeper,
        owner: StreamOwner,
        read_config: ReadConfig,
        *,
        by: str = "",
        may_publish: MayPublish = lambda known: None,
    ) -> None:
        """
        Args:
            by: for whom it publishes. An application of nobody, and a new one, becomes his with its next batch.
            may_publish: is asked about each application that the stream remembers, and raises if he may not.
        """
        self._by, self._may_publish = by, may_publish
        self._client, self._owner, self._read_config = client, owner, read_config
        self._name, self._stream_id = owner.node.name, owner.node.stream_id
        self._apps = AppRecords(client.metadata_store, self._stream_id, self._name)
        self._stagings = Stagings(client, self._stream_id, self._name)
        self._time = AgreedTime(client, owner.node)
        self._publishing = asyncio.Lock()
        self._written: tuple[AppRecord, Version] | None = None
        """What this owner has written last of an application. None: it is read."""
        self.last_was_small = False
        """Whether the last batch had rows in messages."""
        seams = client.services.seams
        self._ahead = PreparedLedger(self._name, seams.clock.monotonic, self._writer, self._new_staging)

    @classmethod
    async def open(
        cls,
        client: BookKeeper,
        node: StreamHead,
        read_config: ReadConfig,
        *,
        owner: str | None = None,
        take_over: bool = False,
        by: str = "",
        may_publish: MayPublish = lambda known: None,
    ) -> StreamPublisher:
        """Claim the stream.

        A gateway that has left the stream open, and renews its lease no more, is no owner: this waits as long as
        another gateway would, one and a half leases, and takes the stream.

        Args:
            take_over: also from a writer that has a segment open, which may be alive: the segment is recovered, and
                that writer appends no more.
            by, may_publish: for whom it publishes, and whether he may in the name of an application.

        Raises:
            StreamOwnedError: a writer or a gateway has it open, and not ``take_over``. StreamNotFoundError,
            StreamSealedError, StreamUnavailableError, StreamMetadataError, OwnershipLostError.
        """
        config = await read_config()
        name = owner or f"{os.uname().nodename}-{os.getpid()}"
        owned = await claim_stream(client, node, name, take_over=take_over)
        publisher = cls(client, owned, read_config, by=by, may_publish=may_publish)
        if owned.chain.open_segment is not None or owned.chain.next_ledger is not None:
            found = await find_end(client, owned, config.producers)
            now_ms = client.services.seams.clock.wall_ms()
            await owned.step(lambda chain: end_segment(chain, found.recovered, now_ms).discard_next())
        with worded(f"publishing to stream {node.name}", node.name):
            store = client.metadata_store.store
            try:
                await settled_create(store, publisher._apps.parent, b"", parents=True)
            except KeyExistsError:
                pass
        return publisher

    async def publish(self, key: BatchKey | None, staged: Sequence[StagedRows]) -> PublishedBatch:
        """Make a batch visible: whole, in the order of ``staged``, once.

        Args:
            key: what it is known by; None: it is new in any case.

        Raises:
            AppendOutcomeUnknownError: without a key it cannot be known whether it was published.
            StreamAccessError: the application is somebody else's.
            BatchRefusedError: of another query, twice by one run, of too many ledgers, of another stream of this name,
                or it was given up meanwhile. Nothing was published.
            OwnershipLostError: another owner has the stream; open a publisher again, and publish it again.
            StreamUnavailableError, StreamMetadataError: it may have been published; publishing it again tells.
        """
        async with self._publishing:
            self._check(staged)
            attempt = staged[0].staging if staged else self._new_staging()
            known = None
            if key is not None:
                require_key(key, self._name)
                with worded(f"publishing to stream {self._name}", self._name):
                    known = await self._judged(key, attempt)
                    if known.record is None:
                        await self._apps.check_room()
                if isinstance(known.verdict, KnownBatch):
                    return await self._already(key, known.verdict, staged)
            self.last_was_small = any(each.ledger is None and each.records for each in staged)
            while True:
                ledgers = await self._ledgers(staged, "" if key is None else key.app)
                try:
                    return await self._published(key, staged, ledgers, attempt, known)
                except _PreparedLedgerLostError:
                    known = None

    async def prepare(self, app: str) -> None:
        """Make the ledger of the next small batch of ``app`` now, if its last batch was small: the next one waits for
        fewer steps then. Called between two batches, and need not be waited for. What fails is told in the log.

        The ledger is deleted by ``close``, by the application's next batch through another publisher, or when nobody
        has renewed it.
        """
        if not self.last_was_small:
            return
        try:
            config = await self._read_config()
        except (BookKeeperError, StreamError) as error:
            _log.info("stream %s: no ledger is made ahead for the next batch: %s", self._name, error)
            return
        await self._ahead.prepare(config, app)

    def _new_staging(self) -> str:
        return f"{self._client.services.seams.rng.getrandbits(128):032x}"

    def _writer(self, config: StreamConfig, staging: str, app: str) -> StagedWriter:
        return StagedWriter(self._client, (self._name, self._stream_id), config, staging, app, inline=-1)

    def _check(self, staged: Sequence[StagedRows]) -> None:
        for each in staged:
            if each.stream_id != self._stream_id:
                raise BatchRefusedError(
                    f"the batch was written for another stream that was named {self._name}: it was deleted, and made "
                    "again, meanwhile",
                    stream=self._name,
                )
        if (count := sum(each.ledger is not None for each in staged)) > LEDGERS_MAX - 1:
            raise BatchRefusedError(
                f"a batch has at most {LEDGERS_MAX - 1} tasks with many rows, and this one has {count}: write it with "
                "fewer partitions, by coalesce()",
                stream=self._name,
            )

    async def _judged(self, key: BatchKey, attempt: str) -> _BatchVerdict:
        """What is remembered of the application, and so whether the batch is new. Raises BatchRefusedError, and what
        ``may_publish`` raises: of somebody else's application nobody is told what it has published."""
        (record, version), self._written = self._written or (None, None), None
        if record is not None and record.app == key.app:
            verdict = _verdict_of_own(key, record, self._name, attempt)
            if verdict is not None:
                return _BatchVerdict(record, version, verdict)
        record, version = await self._apps.read(key.app)
        if record is not None:
            self._may_publish(record)
        return _BatchVerdict(record, version, judge_batch(key, record, self._name, attempt))

    async def _already(self, key: BatchKey, known: KnownBatch, staged: Sequence[StagedRows]) -> PublishedBatch:
        """It is there. What was staged again is dropped."""
        record = known.record
        if known.same_rows:
            return PublishedBatch(known.number, record.records, record.first_seq_no, already_there=False)
        _log.warning(
            "stream %s: batch %d of application %s is not published again: number %d, with %s, was published "
            "before",
            self._name, known.number, key.app, record.last, counted(record.records, "record"),
        )  # fmt: skip
        # of the application's other stagings one may be a later batch, which another program writes just now
        await self.clean(own=frozenset(each.staging for each in staged))
        return PublishedBatch(known.number, record.records, record.first_seq_no, already_there=True)

    async def _ledgers(self, staged: Sequence[StagedRows], app: str) -> list[tuple[StagedLedger, str]]:
        """The ledgers to publish, in order, each with its staging, each looked at: closed, and as long as it must be.
        Rows that came along in messages share one ledger for each run of them, and nothing is made of them before all
        others were looked at."""
        written = [(each.ledger, each.staging) for each in staged if each.ledger is not None]
        await self._check_written(written)
        found: list[tuple[StagedLedger, str]] = []
        small: list[StagedRows] = []
        staging = staged[0].staging if staged else ""
        for each in staged:
            if each.ledger is None:
                small += [each] if each.entries else []
                continue
            found += await self._gathered(small, staging, app)
            small = []
            found.append((each.ledger, each.staging))
        found += await self._gathered(small, staging, app)
        said, there = sum(each.records for each in staged), sum(each.contents.records for each, _ in found)
        if said != there:
            await self._clean(None, {staging for _, staging in found})
            raise BatchRefusedError(
                f"the tasks of a batch for stream {self._name} have said that they wrote "
                f"{counted(said, 'record')}, and "
                f"they wrote {there}: the batch is not published",
                stream=self._name,
            )
        return found

    async def _check_written(self, written: Sequence[tuple[StagedLedger, str]]) -> None:
        await check_staged(self._client, (self._name, self._stream_id), written)

    async def _gathered(self, small: Sequence[StagedRows], staging: str, app: str) -> list[tuple[StagedLedger, str]]:
        if not small:
            return []
        config = await self._read_config()
        if (ahead := await self._ahead.take(config, app)) is not None:
            try:
                return [await self._filled(ahead, small)]
            except (BookKeeperError, StreamError) as error:
                _log.info("stream %s: a ledger that was made ahead is given up: %s", self._name, error)
        return [await self._filled(self._writer(config, staging, app), small)]

    async def _filled(self, writer: StagedWriter, small: Sequence[StagedRows]) -> tuple[StagedLedger, str]:
        try:
            for each in small:
                await writer.add(*records_of(each.entries))
            done = (await writer.finish()).ledger
        except BaseException:
            await writer.abandon()
            raise
        assert done is not None
        return done, writer.staging

    async def _published(
        self,
        key: BatchKey | None,
        staged: Sequence[StagedRows],
        ledgers: Sequence[tuple[StagedLedger, str]],
        attempt: str,
        judged: _BatchVerdict | None,
    ) -> PublishedBatch:
        """Write until it is known what became of it.

        Args:
            judged: what was found of the application; it is read again before a second try.

        Raises: _PreparedLedgerLostError: a ledger that was made ahead was deleted, and nothing was published.
        """
        named = [(each.ledger_id, each.contents) for each, _ in ledgers]
        records = sum(each.records for each in staged)
        stagings = by_staging(ledgers)
        own = {each.staging for each in staged}
        unsure = False
        while True:
            await self._owner.make_room()
            now_ms = self._client.services.seams.clock.wall_ms()
            others: list[Operation] = [each for about in stagings.items() for each in self._stagings.end(*about)]
            number, app = 0, None
            if key is not None:
                if judged is None:
                    with worded(f"publishing to stream {self._name}", self._name):
                        judged = await self._judged(key, attempt)
                (known, version, verdict), judged = judged, None
                if isinstance(verdict, KnownBatch):
                    return await self._already(key, verdict, staged)
                if known is None:
                    await self._apps.check_room()
                number = verdict.number
                first, by = self._owner.chain.records, ("" if known is None else known.by) or self._by
                app = AppRecord(key.app, key.query, verdict.base, number, key.run, first, records, now_ms, attempt, by)
                others.append(self._apps.write(app, version))
            elif self._is_listed(named):
                return PublishedBatch(0, records, self._owner.chain.records - records, already_there=False)
            if not named and key is None:
                return PublishedBatch(0, 0, self._owner.chain.records, already_there=False)
            try:
                versions = await self._owner.step_with(lambda chain: chain.publish(named, now_ms), others)  # noqa: B023
            except (MetadataConflictError, KeyExistsError, NoSuchKeyError):
                await self._ensure_not_given_up(stagings, named, own)
            except OUTCOME_UNKNOWN as error:
                unsure = True
                _log.warning("stream %s: it is not known yet whether a batch was published: %s", self._name, error)
            else:
                if app is not None and (done := versions[-1]) is not None:
                    self._written = app, done
                return await self._finish(None if key is None else key.app, number, records)
            await asyncio.sleep(_PAUSE_S)
            try:
                await self._owner.refresh()
            except StreamError as error:
                if unsure and key is None:  # publishing it again would tell nothing, and could do it twice
                    raise outcome_unknown(self._name, named[0][0], records) from error
                raise

    async def _finish(self, app: str | None, number: int, records: int) -> PublishedBatch:
        """The batch is published, as the last one: what was for it alone goes."""
        first = self._owner.chain.records - records
        await self._clean(app, kept=self._ahead.stagings)
        await self._write_producers()
        return PublishedBatch(number, records, first, already_there=False)

    def _is_listed(self, named: Sequence[tuple[int, object]]) -> bool:
        """Whether the node names the batch's last ledger, which moves to no page meanwhile: an attempt of unknown
        outcome has published it."""
        return bool(named) and named[-1][0] in self._owner.chain.recent_ledgers

    async def _ensure_not_given_up(
        self, stagings: Mapping[str, Collection[int]], named: Sequence[tuple[int, object]], own: Collection[str]
    ) -> None:
        """Check that the batch may still be published.

        Args:
            own: its stagings; another one is of a ledger that was made ahead.
        """
        with worded(f"publishing to stream {self._name}", self._name):
            await self._owner.refresh()
            if self._is_listed(named):
                return
            for staging, ledgers in stagings.items():
                if not await self._stagings.has(staging, ledgers):
                    if staging not in own:
                        raise _PreparedLedgerLostError
                    raise BatchRefusedError(
                        f"the batch for stream {self._name} was given up, because nobody had renewed it: write it "
                        "again",
                        stream=self._name,
                    )

    async def _write_producers(self) -> None:
        """Now and then a segment that tells the next writer of the stream's producers, as published ones do not: so
        retention need not keep an old one for it."""
        behind = 0
        for segment in reversed(self._owner.chain.recent):
            if not segment.is_published:
                break
            behind += 1
        if behind < TELL_EVERY:
            return
        try:
            config = await self._read_config()
            found = await find_end(self._client, self._owner, config.producers)
            ledger = await self._client.create_ledger(
                ensemble=config.ensemble,
                write_quorum=config.write_quorum,
                ack_quorum=config.ack_quorum,
                digest=config.ledger_digest,
                password=self._owner.chain.password,
                custom_metadata=ledger_tags(self._stream_id, self._owner.epoch),
                owner=owner_text(ResourceKind.STREAMS, self._name),
            )
            now_ms = self._client.services.seams.clock.wall_ms()
            payload = encode_payload(
                EntryKind.SNAPSHOT,
                encode_snapshot(ContentsTally(), found.state.producers),
                next_seq_no=self._owner.chain.records,
                append_ms=now_ms,
            )
            await ledger.append_nowait(payload)
            await ledger.close()
            contents = SegmentContents(bytes=len(payload), last_entry=0)
            await self._owner.step(lambda chain: chain.add_producer_segment(ledger.id, contents, now_ms))
        except (BookKeeperError, StreamError) as error:
            _log.warning("stream %s: its producers are told of later: %s", self._name, error)

    async def clean(self, app: str | None = None, own: Collection[str] = ()) -> list[int]:
        """Delete what batches of ``app``, the stagings ``own``, and batches that nobody renews, have left. Returns the
        ledgers."""
        return await self._clean(app, own)

    async def _clean(self, app: str | None, own: Collection[str] = (), kept: Collection[str] = ()) -> list[int]:
        time = self._time
        try:
            return await self._stagings.clean(
                self._named, time.here_ms(), app=app, own=own, kept=kept, agreed_ms=time.now_ms
            )
        except BookKeeperError as error:
            _log.warning("stream %s: what batches have left is deleted later: %s", self._name, error)
            return []

    async def _named(self) -> Collection[int]:
        return (await self._owner.node.read())[0].ledgers

    async def close(self) -> None:
        """Say that nobody publishes now. Raises StreamMetadataError."""
        if left := await self._ahead.end():
            await self.clean(own=left)
        await self._owner.step(lambda chain: chain.release())


class _BatchVerdict(NamedTuple):
    """What is remembered of an application, and what it says of a batch."""

    record: AppRecord | None
    version: Version | None
    verdict: NewBatch | KnownBatch


class _PreparedLedgerLostError(Exception):
    """A ledger that was made ahead was given up before its batch was published."""


def _verdict_of_own(key: BatchKey, record: AppRecord, stream: str, attempt: str) -> NewBatch | None:
    """That the batch is new, as far as this owner remembers; the write proves it. None: the store has to tell."""
    try:
        verdict = judge_batch(key, record, stream, attempt)
    except BatchRefusedError:
        return None
    return verdict if isinstance(verdict, NewBatch) else None
