"""Several journals written as one: ``set:`` with the option ``members``.

    members = [Member("bk:edits?metadata=zk://…", shared=True), Member("file:///var/edits")]
    log = await EditLog.open("set:", members=members)

Each batch goes to the leading member first, then to the other required ones, then to the redundant ones. It is
acknowledged when all that work have it. A redundant member that fails is switched off; at the next segment it is opened
again, gets what it lacks, and joins. A failure of a required member is the set's failure; if it may be tried again the
edit log repeats the step.

Snapshots and the election are the leading member's. Edits are read from it; what is damaged there is read from a copy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from journal_manager.backends.set_copies import bring_up, holds
from journal_manager.edits import Batch, DiscardedEdits, FencingToken, SegmentInfo, TxId, encode_batch
from journal_manager.errors import (
    JournalClosedError,
    JournalCorruptionError,
    JournalError,
    SegmentNotFoundError,
)
from journal_manager.journals.backend import (
    Backend,
    JournalReader,
    JournalWriter,
    NamespaceInfo,
    Options,
    RecoveryReport,
    SegmentWriter,
)
from journal_manager.journals.election import ElectableBackend, Election, open_election
from journal_manager.journals.journal_uri import JournalURI
from journal_manager.journals.open_journal import format_journal, has_data, open_reader, open_snapshots, open_writer
from journal_manager.journals.registry import parse_options
from journal_manager.journals.set_rules import Member, MemberStatus, SetRules
from journal_manager.read import read_ops_over
from journal_manager.snapshots.snapshots import Chunks, SnapshotInfo, SnapshotStore

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SetOptions:
    """Options of ``set:`` journals."""

    members: Sequence[Member] = field(default_factory=tuple)
    minimum: int = 1
    """So many redundant members must work, if there are any."""
    rejoin_s: float = 5.0
    """The most seconds that opening, or a new segment, waits for a redundant member to have what the others have."""


class SetReader(JournalReader):
    """Reads the leading member, and where it is damaged those members that hold the same edits."""

    def __init__(self, readers: Sequence[JournalReader]) -> None:
        self._readers = readers
        """The leading member's comes first."""

    async def _copies(self, segment: SegmentInfo) -> list[JournalReader]:
        """The members that hold the leading one's edits of a final segment."""
        leading, *others = self._readers
        found: list[JournalReader] = []
        for copy in others:
            try:
                if await holds(copy, leading, segment):
                    found.append(copy)
                else:
                    logger.warning(
                        "a member of the journal set has other edits than segment %s: it is not read", segment
                    )
            except JournalError as error:
                logger.warning("a member of the journal set cannot be compared, and is not read: %s", error)
        return found

    async def discarded(self) -> DiscardedEdits:
        return await self._readers[0].discarded()

    async def segments(self) -> tuple[SegmentInfo, ...]:
        return await self._readers[0].segments()

    async def read(self, segment: SegmentInfo, start: TxId) -> AsyncGenerator[Batch, None]:
        wanted = start
        try:
            async with aclosing(self._readers[0].read(segment, start)) as batches:
                async for batch in batches:
                    if batch.first > wanted:
                        break
                    yield batch
                    wanted = batch.last + 1
            if segment.last is not None and wanted <= segment.last:
                raise JournalCorruptionError(
                    f"edit {wanted} is not in segment {segment} ({segment.location})",
                    first_missing=wanted,
                    location=segment.location,
                )
        except SegmentNotFoundError:
            raise
        except JournalError as error:
            if segment.last is None or not (copies := await self._copies(segment)):
                raise
            logger.warning("edits from %s on are read from a copy: %s", wanted, error)
            try:
                async with aclosing(read_ops_over(copies, wanted, segment.last)) as ops:
                    async for op in ops:
                        yield encode_batch(op.txid, [(op.opcode, op.body)], op.request)
                        wanted = op.txid + 1
            except JournalError as also:
                error.add_note(f"no copy has edit {wanted} either: {also}")
                raise error from None

    async def changed(self, timeout_s: float) -> None:
        await self._readers[0].changed(timeout_s)

    async def close(self) -> None:
        for reader in self._readers:
            await reader.close()


class SetSegmentWriter(SegmentWriter):
    """Writes one segment to every member that works."""

    def __init__(self, owner: SetWriter, info: SegmentInfo, parts: dict[Member, SegmentWriter]) -> None:
        self._owner, self._info = owner, info
        self.parts = parts
        """The members that are written; one that fails is taken out."""
        self._before: asyncio.Future[None] | None = None
        """The append before, which the members get first."""

    @property
    def info(self) -> SegmentInfo:
        return self._info

    def append(self, batch: Batch) -> Awaitable[None]:
        leading = asyncio.ensure_future(self.parts[self._owner.rules.leading].append(batch))
        self._before = asyncio.ensure_future(self._append(batch, leading, self._before))
        return self._before

    async def _append(self, batch: Batch, leading: Awaitable[None], before: asyncio.Future[None] | None) -> None:
        await leading
        if before is not None:
            await asyncio.wait([before])
            before.result()  # a batch that a member lacks is followed by none
        rules = self._owner.rules
        for member in [member for member in list(self.parts)[1:] if rules.is_required(member)]:
            await self.parts[member].append(batch)
        copies = [member for member in self.parts if not rules.is_required(member)]
        results = await asyncio.gather(*(self._on_copy(member, batch) for member in copies), return_exceptions=True)
        for member, result in zip(copies, results, strict=True):
            if isinstance(result, JournalError):
                await self._owner.switch_off(member, result)
            elif isinstance(result, BaseException):
                raise result
        rules.ensure_enough()

    async def _on_copy(self, member: Member, batch: Batch) -> None:
        # Who joined later than the log was opened may take shorter batches than the log makes.
        copy = self.parts[member]
        for part in batch.parts(self._owner.max_batch_bytes_of(member)):
            await copy.append(part)

    async def close(self) -> None:
        await self._owner.each(list(self.parts), lambda member: self.parts[member].close())
        self._owner.rules.ensure_enough()

    async def abort(self) -> None:
        for part in list(self.parts.values()):
            await part.abort()


class SetWriter(JournalWriter):
    """The one writer of a journal set. Made by :meth:`open`."""

    def __init__(
        self, rules: SetRules, namespace: NamespaceInfo | None, owner: str, create: bool, rejoin_s: float
    ) -> None:
        self.rules = rules
        self._namespace, self._owner, self._create, self._rejoin_s = namespace, owner, create, rejoin_s
        self._writers: dict[Member, JournalWriter] = {}
        self._inner: dict[Member, JournalWriter] = {}
        """The same as they were opened, without what ``Member.wrap`` has put around them."""
        self._started: dict[Member, SegmentWriter] = {}
        """The parts of the segment that is being begun."""
        self._segment: SetSegmentWriter | None = None
        self._closed = False

    @classmethod
    async def open(
        cls, rules: SetRules, namespace: NamespaceInfo | None, *, owner: str, create: bool, rejoin_s: float
    ) -> SetWriter:
        """Claim and recover every member, and bring the others up to the leading one."""
        writer = cls(rules, namespace, owner, create, rejoin_s)
        try:
            for member in rules.members:
                if rules.is_required(member):
                    await writer._join(member)
                else:
                    await writer._try_to_join(member)
            rules.ensure_enough()
        except BaseException:
            await writer.close()
            raise
        return writer

    def status(self) -> tuple[MemberStatus, ...]:
        """Which members are written, and why the others are not."""
        return self.rules.status()

    # -- members -------------------------------------------------------------------------------------------

    async def switch_off(self, member: Member, why: Exception) -> None:
        """A redundant member failed: go on without it until the next segment."""
        if not self.rules.is_off(member):
            logger.warning("member %s of the journal set is off until the next segment: %s", member.uri, why)
        self.rules.switch_off(member, why)
        writer, _ = self._writers.pop(member, None), self._inner.pop(member, None)
        for part in (self._started.pop(member, None), self._segment and self._segment.parts.pop(member, None)):
            if part:
                await part.abort()
        if writer is not None:
            await _close_quietly(writer)

    async def each(
        self, members: Sequence[Member], step: Callable[[Member], Awaitable[object]]
    ) -> dict[Member, object]:
        """Do a step on members in order. A redundant one that fails is switched off; the failure of a required one is
        raised, and those after it are not asked."""
        results: dict[Member, object] = {}
        for member in members:
            try:
                results[member] = await step(member)
            except JournalError as error:
                if self.rules.is_required(member):
                    raise
                await self.switch_off(member, error)
        return results

    async def _join(self, member: Member) -> None:
        """Open a member, and give it what it lacks."""
        options = dict(member.options)
        inner = await open_writer(
            member.uri, namespace=self._namespace, owner=self._owner, create=self._create, **options
        )
        writer = inner if member.wrap is None else member.wrap(inner)
        try:
            if member != self.rules.leading:
                await bring_up(self._leading, writer, member.uri, inner)
        except BaseException:
            await _close_quietly(writer)
            raise
        self._writers[member], self._inner[member] = writer, inner
        self.rules.join(member)

    async def _rejoin(self) -> None:
        """Try the members that are off."""
        for member in self.rules.members:
            if self.rules.is_off(member):
                await self._try_to_join(member)

    async def _try_to_join(self, member: Member) -> None:
        """Join a redundant member, or leave it off. What it got in time it keeps, and needs no more the next time."""
        was_off = self.rules.is_off(member)
        try:
            async with asyncio.timeout(self._rejoin_s):
                await self._join(member)
        except TimeoutError:
            await self.switch_off(member, TimeoutError(f"it was not ready within {self._rejoin_s:g} s"))
        except JournalError as error:
            await self.switch_off(member, error)
        else:
            if was_off:
                logger.info("member %s of the journal set is written again", member.uri)

    @property
    def _leading(self) -> JournalWriter:
        return self._writers[self.rules.leading]

    def _open_members(self) -> list[Member]:
        if self._closed:
            raise JournalClosedError("this journal was closed")
        return [member for member in self.rules.members if member in self._writers]

    # -- a writer ------------------------------------------------------------------------------------------

    @property
    def token(self) -> FencingToken:
        return self._leading.token

    @property
    def recovery(self) -> RecoveryReport:
        return self._leading.recovery

    @property
    def max_batch_bytes(self) -> int:
        return min(writer.max_batch_bytes for writer in self._writers.values())

    def max_batch_bytes_of(self, member: Member) -> int:
        """The longest batch that a member takes, which is being written."""
        return self._writers[member].max_batch_bytes

    @property
    def durable_txid(self) -> TxId:
        return self._leading.durable_txid

    async def start_segment(self, first: TxId, layout_version: int) -> SegmentWriter:
        self._open_members()
        if not self._started:
            await self._rejoin()

        async def start(member: Member) -> SegmentWriter:
            if member not in self._started:  # when the step is repeated some have begun it
                self._started[member] = await self._writers[member].start_segment(first, layout_version)
            return self._started[member]

        await self.each(self._open_members(), start)
        self.rules.ensure_enough()
        parts, self._started = self._started, {}
        self._segment = SetSegmentWriter(self, parts[self.rules.leading].info, parts)
        return self._segment

    async def finalize_segment(self, first: TxId, last: TxId) -> SegmentInfo:
        members = self._open_members()
        results = await self.each(members, lambda member: self._writers[member].finalize_segment(first, last))
        self.rules.ensure_enough()
        self._segment = None
        final = results[self.rules.leading]
        assert isinstance(final, SegmentInfo)
        return final

    async def discard_segment(self, first: TxId) -> None:
        members = self._open_members()
        await self.each(members, lambda member: self._writers[member].discard_segment(first))
        self._segment = None

    async def purge(self, min_txid: TxId) -> tuple[SegmentInfo, ...]:
        leading, *others = self._open_members()
        gone = await self._writers[leading].purge(min_txid)
        await self.each(others, lambda member: self._writers[member].purge(min_txid))
        return gone

    async def save_snapshot(self, at: TxId, chunks: Chunks) -> SnapshotInfo:
        self._open_members()
        return await self._leading.save_snapshot(at, chunks)

    async def delete_snapshot(self, at: TxId) -> None:
        self._open_members()
        await self._leading.delete_snapshot(at)

    async def adopt_snapshots(self) -> tuple[SnapshotInfo, ...]:
        self._open_members()
        return await self._leading.adopt_snapshots()

    async def ensure_owner(self) -> None:
        self._open_members()
        await self._leading.ensure_owner()

    # -- reading -------------------------------------------------------------------------------------------

    async def segments(self) -> tuple[SegmentInfo, ...]:
        self._open_members()
        return await self._leading.segments()

    async def read(self, segment: SegmentInfo, start: TxId) -> AsyncGenerator[Batch, None]:
        reader = SetReader([self._inner[member] for member in self._open_members()])
        async with aclosing(reader.read(segment, start)) as batches:
            async for batch in batches:
                yield batch

    async def discarded(self) -> DiscardedEdits:
        self._open_members()
        return await self._leading.discarded()

    async def changed(self, timeout_s: float) -> None:
        self._open_members()
        await self._leading.changed(timeout_s)

    async def close(self) -> None:
        self._closed = True
        for writer in self._writers.values():
            await _close_quietly(writer)


async def _close_quietly(journal: JournalWriter) -> None:
    try:
        await journal.close()
    except JournalError as error:
        logger.warning("a member of a journal set could not be closed in order: %s", error)


class JournalSetBackend(Backend, ElectableBackend):
    """The backend of ``set:`` journals."""

    async def format(self, uri: JournalURI, namespace: NamespaceInfo, options: Options, *, force: bool = False) -> None:
        for member in _rules(uri, options)[0].members:
            await format_journal(member.uri, namespace=namespace, force=force, **dict(member.options))

    async def has_data(self, uri: JournalURI, options: Options) -> bool:
        rules, _ = _rules(uri, options)
        return any([await has_data(member.uri, **dict(member.options)) for member in rules.members])

    async def open_reader(self, uri: JournalURI, namespace: NamespaceInfo | None, options: Options) -> JournalReader:
        rules, _ = _rules(uri, options)
        readers: list[JournalReader] = []
        for member in rules.members:
            try:
                readers.append(await open_reader(member.uri, namespace=namespace, **dict(member.options)))
            except JournalError as error:
                if member == rules.leading:
                    raise
                logger.warning("member %s of the journal set cannot be read: %s", member.uri, error)
        return SetReader(readers)

    async def open_writer(
        self, uri: JournalURI, namespace: NamespaceInfo | None, options: Options, *, owner: str, create: bool = True
    ) -> JournalWriter:
        rules, parsed = _rules(uri, options)
        return await SetWriter.open(rules, namespace, owner=owner, create=create, rejoin_s=parsed.rejoin_s)

    async def open_snapshots(self, uri: JournalURI, options: Options) -> SnapshotStore:
        leading = _rules(uri, options)[0].leading
        return await open_snapshots(leading.uri, **dict(leading.options))

    async def open_election(self, uri: JournalURI, options: Options, *, name: str) -> Election:
        leading = _rules(uri, options)[0].leading
        return await open_election(leading.uri, name=name, **dict(leading.options))


def _rules(uri: JournalURI, options: Options) -> tuple[SetRules, SetOptions]:
    parsed = parse_options(SetOptions, uri, options)
    return SetRules(parsed.members, parsed.minimum), parsed
