"""A cluster in a dict for streams: the one of journals' tests, with ledgers that fail as real ones do.

Every call of a client is a step before and after it takes effect, at which a test can kill the caller
(``die_after``), let it fail (``fail_at``), or look (``step``).
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

from bookkeeper.errors import (
    BookKeeperError,
    ClientClosedError,
    LedgerClosedError,
    LedgerFencedError,
    NoSuchLedgerError,
    TooManyRequestsError,
)
from bookkeeper.metrics import Metrics
from bookkeeper.testing.world import OWNER, drop_task
from segments.chain import StreamChain
from segments.config import RollPolicy, StreamConfig
from segments.entries.layout import EntryKind
from segments.entries.stored_entry import StoredEntry, decode_entry
from segments.namespace import StreamNamespace
from segments.stream import Stream
from tests.journal_manager.backends.bookkeeper.fake import Client as JournalClient
from tests.journal_manager.backends.bookkeeper.fake import Cluster as JournalCluster
from tests.journal_manager.backends.bookkeeper.fake import Died, Ledger, Reader
from tests.segments.clusters import whole
from tests.spark_wal.webhdfs.virtual import LoopClock

__all__ = ["AT_ONCE", "Client", "Cluster", "Died", "records_of", "stream_on", "values_of"]

AT_ONCE = StreamConfig(roll=RollPolicy(min_age_s=0))


class Cluster(JournalCluster):
    """What all clients share."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__()
        self.rng = Random(seed)
        self.delay_s = 0.001
        """How long an append takes."""
        self.kept_after_failure = 0
        """How many of the appends behind one that failed are stored all the same."""
        self.room: int | None = None
        """How many appends a ledger's writer takes at a time."""
        self.created: list[dict[str, Any]] = []
        """The options of every ledger that was made."""
        self.breaks: Callable[[FakeWriter, bytes], BookKeeperError | None] = lambda writer, payload: None
        """Says which append breaks its ledger, and how."""

        self._counter = [0]
        self.died = asyncio.Event()
        self.process = Process()

    def client(self) -> Client:
        return Client(self)

    def sibling(self) -> Cluster:
        """The same cluster as another process sees it, with a life and faults of its own."""
        other = Cluster(self.rng.getrandbits(32))
        other.ledgers, other.metadata, other._counter = self.ledgers, self.metadata, self._counter
        other.delay_s = self.delay_s
        return other

    def new(self, password: bytes, tags: dict[str, bytes]) -> Ledger:
        self._counter[0] += 1
        ledger = self.ledgers[self._counter[0]] = Ledger(self._counter[0], password, tags)
        return ledger

    def step(self, name: str) -> None:
        try:
            super().step(name)
        except Died:
            self.process.alive = False
            self.died.set()
            raise

    async def live(self, life: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Run ``life`` as a process of its own until it ends, or dies; True if it died. Nothing of a dead process runs
        any more."""
        context = contextvars.copy_context()
        context.run(OWNER.set, self.process)
        task = asyncio.get_running_loop().create_task(life(), context=context)
        death = asyncio.ensure_future(self.died.wait())
        await asyncio.wait([task, death], return_when=asyncio.FIRST_COMPLETED)
        if not self.died.is_set():
            death.cancel()
            task.result()
            return False
        for each in self.process.tasks:
            drop_task(each)
        _buried.extend(self.process.tasks)
        return True


class Process:
    """Whose callbacks these are: those of a dead process never run, those of a frozen one wait."""

    def __init__(self) -> None:
        self.alive, self.frozen = True, False
        self.held: list[asyncio.Handle] = []
        self.tasks: list[asyncio.Task[Any]] = []

    def freeze(self) -> None:
        self.frozen = True

    def thaw(self) -> None:
        self.frozen = False
        held, self.held = self.held, []
        for handle in held:
            asyncio.get_running_loop()._ready.append(handle)  # type: ignore[attr-defined]


_buried: list[asyncio.Task[Any]] = []
"""Tasks of dead processes: they stay as they are, because their ``finally`` must not run."""


class Client(JournalClient):
    """The part of BookKeeper that streams use."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.fakes = cluster
        seams = SimpleNamespace(clock=LoopClock(), rng=Random(cluster.rng.getrandbits(32)))
        self.metrics = Metrics()
        self.services = SimpleNamespace(seams=seams, metrics=self.metrics)
        self.writers: list[FakeWriter] = []

    async def create_ledger(self, **options: Any) -> Any:
        self.cluster.step("create_ledger")
        await asyncio.sleep(0.002)
        self.fakes.created.append(options)
        writer = FakeWriter(self.fakes, self.cluster.new(b"", dict(options["custom_metadata"])))
        self.writers.append(writer)
        self.cluster.step("create_ledger done")
        return writer

    async def open_ledger(self, ledger: int, password: bytes | None = b"", *, recovery: bool = True) -> Reader:
        return await super().open_ledger(ledger, password, recovery=recovery)

    async def close(self) -> None:
        for writer in self.writers:
            writer.fail(ClientClosedError("the client was closed"))


@dataclass
class _Append:
    payload: bytes
    future: asyncio.Future[int] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class FakeWriter:
    """Appends in order; the first failure fails all that come after it."""

    def __init__(self, cluster: Cluster, ledger: Ledger) -> None:
        self.cluster, self.ledger = cluster, ledger
        self.id = ledger.id
        self.last_add_confirmed = -1
        self.failure: BookKeeperError | None = None
        self._queue: list[_Append] = []
        self._runs = False
        self._kept = 0

    def append_nowait(self, payload: bytes) -> asyncio.Future[int]:
        if self.failure is not None:
            raise type(self.failure)(str(self.failure))
        if self.cluster.room is not None and len(self._queue) >= self.cluster.room:
            raise TooManyRequestsError("too many appends")
        append = _Append(payload)
        self._queue.append(append)
        if not self._runs:
            self._runs = True
            asyncio.get_running_loop().call_later(self.cluster.delay_s, self._run)
        return append.future

    async def room(self) -> None:
        while self.cluster.room is not None and len(self._queue) >= self.cluster.room and self.failure is None:  # noqa: ASYNC110
            await asyncio.sleep(self.cluster.delay_s)

    def _run(self) -> None:
        """All that is queued reaches the bookies, or none does from some point on."""
        self._runs = False
        queue, self._queue = self._queue, []
        for append in queue:
            if append.future.done():
                continue
            error = self.failure or self._refusal(append.payload)
            if error is None:
                self.ledger.entries.append(append.payload)
                self.last_add_confirmed = len(self.ledger.entries) - 1
                append.future.set_result(self.last_add_confirmed)
                continue
            if self.failure is None:
                self.failure, self._kept = error, self.cluster.kept_after_failure
            if self._kept > 0 and not self.ledger.fenced:
                self._kept -= 1
                self.ledger.entries.append(append.payload)
            append.future.set_exception(type(error)(str(error)))

    def _refusal(self, payload: bytes) -> BookKeeperError | None:
        if self.id not in self.cluster.ledgers:
            return NoSuchLedgerError(f"no ledger {self.id}")
        if self.ledger.fenced:
            return LedgerFencedError(f"ledger {self.id} is fenced")
        try:
            self.cluster.step("append")
        except BookKeeperError as error:
            return error
        return self.cluster.breaks(self, payload)

    def fail(self, error: BookKeeperError) -> None:
        self.failure = self.failure or error
        queue, self._queue = self._queue, []
        for append in queue:
            if not append.future.done():
                append.future.set_exception(type(error)(str(error)))

    async def close(self) -> None:
        self.cluster.step("close")
        await asyncio.sleep(0.001)
        if self.ledger.fenced:
            raise LedgerFencedError(f"ledger {self.id}") if not self.ledger.closed else LedgerClosedError("closed")
        self.ledger.closed = self.ledger.fenced = True
        self.fail(LedgerClosedError(f"ledger {self.id} is closed"))
        self.cluster.step("close done")

    async def abandon(self) -> None:
        self.fail(ClientClosedError(f"the writer of ledger {self.id} abandoned it"))


async def stream_on(cluster: Cluster, name: str = "s", config: StreamConfig = AT_ONCE) -> Stream:
    """A stream, made if it is not there, through a client of its own."""
    return await StreamNamespace(cluster.client()).open(name, create=True, config=config)  # type: ignore[arg-type]


async def chain_of(stream: Stream) -> StreamChain:
    return (await stream.node.read())[0]


async def records_of(cluster: Cluster, stream: Stream) -> list[StoredEntry]:
    """The data entries of all segments, in order, with pieces put together."""
    found: list[StoredEntry] = []
    for segment in (await chain_of(stream)).segments:
        entries = cluster.ledgers[segment.ledger_id].entries
        found += [decode_entry(payload, segment.number, entry) for entry, payload in enumerate(entries)]
    return [entry for entry in whole(found) if entry.kind is EntryKind.DATA]


async def values_of(cluster: Cluster, stream: Stream) -> list[bytes]:
    """The values of all records, in order."""
    return [value for entry in await records_of(cluster, stream) for value in entry.values()]


async def check_stream(cluster: Cluster, stream: Stream) -> None:
    """Chain, ledgers and entries fit together: dense sequence numbers, one open segment, no ledger left behind."""
    chain = await chain_of(stream)
    seq_no = chain.segments[0].start_seq_no if chain.segments else 0
    for segment in chain.segments:
        ledger = cluster.ledgers[segment.ledger_id]
        assert segment.is_open or ledger.closed
        assert segment.start_seq_no == seq_no
        decoded = [decode_entry(payload, segment.number, entry) for entry, payload in enumerate(ledger.entries)]
        entries = [entry for entry in whole(decoded) if entry.kind is EntryKind.DATA]
        for entry in entries:
            assert entry.first_seq_no == seq_no, f"{entry.segment}:{entry.entry}"
            seq_no += entry.count
        if not segment.is_open:
            contents = segment.contents
            assert contents.records == sum(entry.count for entry in entries)
            assert contents.last_entry == len(ledger.entries) - 1
            assert contents.bytes == sum(map(len, ledger.entries))
            assert seq_no == segment.end_seq_no
            counted = [entry for entry in entries if entry.count]
            assert contents.last == ((counted[-1].entry, counted[-1].count - 1) if counted else None)
            assert contents.first_append_ms == (counted[0].append_ms if counted else None)
            assert contents.last_append_ms == (counted[-1].append_ms if counted else None)
    for ledger in cluster.ledgers.values():
        assert ledger.tags["application"] == b"bookkeeper-py"
        assert ledger.tags["component"] == b"segments"
        assert ledger.tags["stream"] == stream.id.encode()
