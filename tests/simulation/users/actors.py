"""Who uses the simulated cluster: writers, recoverers, tailing readers, repairers, healers. Each is a program of one
node.

They do what applications do, write down what they were told (:mod:`~tests.simulation.watch.history`), and go on
after every error that the library promises. Any other exception ends their process and fails the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, Final

from bookkeeper.autorecovery import AutorecoveryConfig, AutorecoveryReport, AutorecoveryService
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.read.read_handle import ReadHandle
from bookkeeper.client.write.advanced_handle import AdvancedHandle
from bookkeeper.client.write.write_handle import WriteHandle
from bookkeeper.encryption import RECORD_NAME
from bookkeeper.encryption.ciphers import TAG_BYTES
from bookkeeper.errors import (
    BookKeeperError,
    DataMissingError,
    NoSuchEntryError,
    NoSuchLedgerError,
    TooManyRequestsError,
)
from bookkeeper.replication import CopyConfig
from bookkeeper.replication.copying import copies_of
from bookkeeper.replication.copying.replace import replicate_unlocked
from bookkeeper.seams import Seams
from bookkeeper.testing.world import Node
from tests.simulation.cluster import SwarmCluster
from tests.simulation.users.advanced_writer import AdvancedBursts
from tests.simulation.watch.history import EventKind, make_payload

PASSWORD: Final = b"sim"
DEADLINE_SLACK_S: Final = 0.5
DIGESTS: Final = ("crc32c", "crc32c", "crc32", "hmac", "dummy")


def payload_bytes(handle: ReadHandle | WriteHandle) -> int:
    """The bytes of all payloads: of an encrypted ledger the length counts the sealed ones."""
    sealed = RECORD_NAME in handle.metadata.custom
    return handle.length - (TAG_BYTES * (handle.last_add_confirmed + 1) if sealed else 0)


class Actor:
    """One process that uses the cluster; :meth:`program` runs anew in each of its lives."""

    kind = ""

    def __init__(self, cluster: SwarmCluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.node: Node = cluster.world.node(name)
        self.rng = Random(f"{cluster.plan.seed}/{name}")
        self.handles = 0
        self.client: BookKeeper | None = None
        """Of the present life."""
        self.done = False
        """In the quiet phase: it has nothing left to do."""

    @property
    def history(self) -> Any:
        return self.cluster.history

    def process(self) -> str:
        """A name for one handle."""
        self.handles += 1
        return f"{self.name}.{self.node.life}.{self.handles}"

    async def program(self, seams: Seams) -> None:
        self.client = client = await self.cluster.new_client(self.cluster.plan.client, self.node)
        while not self.cluster.calm:
            await self.work(client)
        await self.rest(client)
        self.done = True
        await asyncio.Event().wait()

    async def work(self, client: BookKeeper) -> None:
        """One round."""
        raise NotImplementedError

    async def rest(self, client: BookKeeper) -> None:
        """What is left to do when it is calm."""

    async def pause(self, mean_s: float) -> None:
        await asyncio.sleep(self.rng.expovariate(1 / mean_s))

    def some_ledger(self) -> int | None:
        """An existing ledger, a new one rather than an old one."""
        ledgers = self.cluster.ledgers
        if not ledgers:
            return None
        return ledgers[-min(len(ledgers), int(self.rng.expovariate(0.7)) + 1)]

    # -- reading ------------------------------------------------------------------------------------------

    def note_lac(self, process: str, reader: ReadHandle) -> None:
        """What a reader believes, beside what the writer had confirmed (L3)."""
        confirmed = -2 if reader.closed else self.cluster.handles[reader.id].last_add_confirmed
        self.history.add(EventKind.LAC, process, reader.id, entry=reader.last_add_confirmed, number=confirmed)

    def note_end(self, process: str, reader: ReadHandle) -> None:
        if reader.closed:
            self.history.add(
                EventKind.CLOSED, process, reader.id, entry=reader.last_add_confirmed, number=payload_bytes(reader)
            )

    async def read_range(self, process: str, reader: ReadHandle, first: int, last: int) -> bool:
        """Read confirmed entries; False if some could not be had now."""
        at = first
        try:
            async for entry in reader.read(first, last):
                self.history.add(EventKind.READ, process, reader.id, entry=entry.entry_id, payload=entry.payload)
                at = entry.entry_id + 1
        except (DataMissingError, NoSuchEntryError):
            self.history.add(EventKind.MISSING, process, reader.id, entry=at)
            return False
        except BookKeeperError:
            return False
        return True


class AppendingWriter(Actor):
    """Makes ledgers and appends to them, in every way there is."""

    kind = "writer"

    async def work(self, client: BookKeeper) -> None:
        rng, plan = self.rng, self.cluster.plan
        spec = rng.choice(plan.shapes)
        deferred = plan.deferred and rng.random() < 0.4
        digest = rng.choice(DIGESTS)
        advanced = plan.client.encryption is not None and rng.random() < 0.7
        made: dict[str, Any] = {"advanced": True} if advanced else {}
        try:
            handle = await client.create_ledger(
                ensemble=spec.ensemble_size,
                write_quorum=spec.write_quorum,
                ack_quorum=spec.ack_quorum,
                password=PASSWORD,
                digest=digest,
                unsafe_without_digest=digest == "dummy",
                when_short="fail" if deferred else rng.choice(["fail", "name_absent"]),
                deferred_sync=deferred,
                **made,
            )
        except BookKeeperError:
            self.cluster.monitor.count("failed_creates")
            await self.pause(0.5)
            return
        self.cluster.monitor.count("creates")
        self.cluster.handles[handle.id] = handle
        self.cluster.ledgers.append(handle.id)
        session = _DeferredWriterOf(self, handle) if deferred else WriterOf(self, handle)
        chosen = AdvancedBursts(self, session, handle) if isinstance(handle, AdvancedHandle) else None
        for _ in range(rng.randint(1, 2 * plan.ledger_bursts)):
            if self.cluster.calm or handle.closed:
                break
            try:
                await (session.burst() if chosen is None else chosen.burst())
            except BookKeeperError as error:
                session.note_error(error)
                break
            await self.pause(plan.append_pause_s)
        await session.end()


class WriterOf:
    """One writer and one ledger."""

    def __init__(self, writer: AppendingWriter, handle: WriteHandle) -> None:
        self.actor = writer
        self.handle = handle
        self.process = writer.process()
        self.number = 0
        self.rng = writer.rng
        self.cluster = writer.cluster

    def next_payload(self) -> bytes:
        size = self.rng.choice([0, 1, 20, 20, 100, 100, 600, 3000])
        payload = self.told(self.number, size)
        self.number += 1
        return payload

    def told(self, number: int, size: int) -> bytes:
        """A payload that is about to be appended."""
        payload = make_payload(self.handle.id, number, self.rng, size)
        self.cluster.history.add(EventKind.INVOKE, self.process, self.handle.id, payload=payload, number=number)
        return payload

    async def burst(self) -> None:
        """A few appends: waited for one by one, as a window, or as a run."""
        rng, handle = self.rng, self.handle
        way = rng.random()
        if way < 0.4:
            for _ in range(rng.randint(1, 3)):
                payload = self.next_payload()
                self.note_acks([payload], [await handle.append(payload)])
        elif way < 0.6:
            payloads = [self.next_payload() for _ in range(rng.randint(1, 8))]
            self.note_acks(payloads, await handle.append_many(payloads))
        else:
            for _ in range(rng.randint(1, 10)):
                await handle.room()
                payload = self.next_payload()
                future = handle.append_nowait(payload)
                began = (self.cluster.world.loop.time(), self.cluster.freezes[self.actor.name])
                future.add_done_callback(partial(self._settled, payload, began))
            if rng.random() < 0.2:
                await handle.flush()

    def _settled(self, payload: bytes, began: tuple[float, int], future: asyncio.Future[Any]) -> None:
        if future.cancelled():
            return
        took = self.cluster.world.loop.time() - began[0]
        limit = self.cluster.plan.client.add_timeout_ms / 1000 + DEADLINE_SLACK_S
        if took > limit and self.cluster.freezes[self.actor.name] == began[1]:
            self.cluster.monitor.problem("V1", f"an append to ledger {self.handle.id} ended after {took:.1f} s")
        if (error := future.exception()) is not None:
            self.note_error(error)
        else:
            self.note_acks([payload], [future.result()])

    def note_acks(self, payloads: list[bytes], entries: Any) -> None:
        cluster, ledger = self.cluster, self.handle.id
        path = cluster.ledger_path(ledger)
        for payload, entry in zip(payloads, entries, strict=True):
            cluster.history.add(EventKind.ACK, self.process, ledger, entry=entry, payload=payload)
            cluster.monitor.on_ack(ledger, entry, cluster.store.seen[path])

    def note_error(self, error: BaseException) -> None:
        self.cluster.monitor.count(f"appends ended by {type(error).__name__}")
        if isinstance(error, BookKeeperError) and not isinstance(error, TooManyRequestsError):
            self.cluster.history.add(EventKind.FAILED, self.process, self.handle.id)

    async def end(self) -> None:
        """Close the ledger, let go of it, or just stop."""
        way = self.rng.random()
        try:
            if way < 0.6:
                if self.rng.random() < 0.7:
                    await self.handle.flush()
                last, length = self.handle.last_add_confirmed, payload_bytes(self.handle)
                await self.handle.close()
                if self.handle.metadata.is_closed and last == self.handle.metadata.last_entry:
                    self.cluster.history.add(EventKind.CLOSED, self.process, self.handle.id, entry=last, number=length)
                self.cluster.monitor.count("closes")
            elif way < 0.8:
                await self.handle.abandon()
        except BookKeeperError as error:
            self.cluster.monitor.count(f"closes ended by {type(error).__name__}")


class _DeferredWriterOf(WriterOf):
    """The same with deferred sync: nothing is promised before a force (W11)."""

    def __init__(self, writer: AppendingWriter, handle: WriteHandle) -> None:
        super().__init__(writer, handle)
        self.written: dict[int, bytes] = {}
        """Acknowledged and not forced yet."""
        self.failed = False

    async def burst(self) -> None:
        await super().burst()
        if self.rng.random() < 0.4:
            await self.force()

    async def force(self) -> None:
        """Everything up to the entry that it returns is promised from now on."""
        forced = await self.handle.force()
        self.cluster.monitor.count("forces")
        if self.failed:  # the writer has been told of its end: whatever it knows by now is not news
            return
        done = sorted(entry for entry in self.written if entry <= forced)
        metadata = self.cluster.store.seen[self.cluster.ledger_path(self.handle.id)]
        for entry in done:
            self.cluster.monitor.on_forced(self.handle.id, entry, metadata)
        super().note_acks([self.written.pop(entry) for entry in done], done)

    def note_acks(self, payloads: list[bytes], entries: Any) -> None:
        self.written.update(zip(entries, payloads, strict=True))

    def note_error(self, error: BaseException) -> None:
        self.failed = True
        super().note_error(error)

    async def end(self) -> None:
        """Close with or without a force, let go, or just stop."""
        try:
            if self.rng.random() < 0.6:
                await self.force()
                await self.handle.close(force=self.rng.random() < 0.5)
                self.cluster.monitor.count("closes")
            elif self.rng.random() < 0.5:
                await self.handle.abandon()
        except BookKeeperError as error:
            self.cluster.monitor.count(f"closes ended by {type(error).__name__}")


class Recoverer(Actor):
    """Opens other people's ledgers with recovery, and reads them."""

    kind = "recoverer"

    async def work(self, client: BookKeeper) -> None:
        """Now and then a ledger of one's own choice; often the one that another recoverer has just begun with."""
        cluster = self.cluster
        try:
            async with asyncio.timeout(self.rng.expovariate(1 / 1.2)):
                await cluster.hunt.wait()
            await self.pause(0.01)
        except TimeoutError:
            cluster.hunted = self.some_ledger() or -1
            cluster.hunt.set()
            cluster.hunt = asyncio.Event()
        ledger = cluster.hunted
        if ledger >= 0:
            await self.recover(client, ledger, whole=self.rng.random() < 0.5)

    async def recover(self, client: BookKeeper, ledger: int, *, whole: bool) -> bool:
        """Open, and read all or a part. True if all was read."""
        process, monitor = self.process(), self.cluster.monitor
        monitor.recovering[ledger] += 1
        if monitor.recovering[ledger] > 1:
            monitor.count("concurrent_recoveries")
        try:
            reader = await client.open_ledger(ledger, PASSWORD)
        except BookKeeperError as error:
            monitor.count(f"recoveries ended by {type(error).__name__}")
            return False
        finally:
            monitor.recovering[ledger] -= 1
        self.note_lac(process, reader)
        self.note_end(process, reader)
        last = reader.last_add_confirmed
        first = 0 if whole else self.rng.randint(0, last + 1)
        complete = await self.read_range(process, reader, first, last)
        if complete and whole:
            self.history.add(EventKind.SCANNED, process, ledger, entry=last)
        await reader.close()
        return complete


class Tailer(Actor):
    """Follows ledgers without ending them; in the quiet phase each to its end (V7)."""

    kind = "tailer"

    async def work(self, client: BookKeeper) -> None:
        ledger = self.some_ledger()
        if ledger is None:
            await self.pause(0.5)
            return
        await self.follow(client, ledger)
        await self.pause(0.1)

    async def follow(self, client: BookKeeper, ledger: int) -> None:
        process = self.process()
        try:
            reader = await client.open_ledger(ledger, PASSWORD, recovery=False)
        except BookKeeperError:
            await self.pause(0.5)
            return
        self.note_lac(process, reader)
        limit = self.rng.uniform(1, 10)
        try:
            async with asyncio.timeout(None if self.rng.random() < 0.2 else limit):
                await self._tail(process, reader)
        except TimeoutError:
            pass
        except BookKeeperError:
            await self.pause(0.5)
        finally:
            await reader.close()

    async def _tail(self, process: str, reader: ReadHandle) -> None:
        at = self.rng.choice([0, max(0, reader.last_add_confirmed)])
        try:
            async for entry in reader.tail(at):
                self.note_lac(process, reader)
                self.history.add(EventKind.READ, process, reader.id, entry=entry.entry_id, payload=entry.payload)
                at = entry.entry_id + 1
        except (DataMissingError, NoSuchEntryError):
            self.history.add(EventKind.MISSING, process, reader.id, entry=at)
            raise
        except NoSuchLedgerError:
            return
        self.cluster.monitor.count("tails_to_the_end")
        self.note_lac(process, reader)
        self.note_end(process, reader)


class Repairer(Actor):
    """Brings copies to other bookies, whether that is needed or not; never the open end of a ledger (A3)."""

    kind = "repairer"
    config: Final = CopyConfig(
        run_bytes=4096, run_entries_max=16, striped_run_entries_max=8, window_bytes=16_384, retry_ms=100, tries_max=4
    )

    async def work(self, client: BookKeeper) -> None:
        await self.pause(0.4)
        ledger = self.some_ledger()
        if ledger is None:
            return
        monitor, rng = self.cluster.monitor, self.rng
        try:
            copy = rng.choice(copies_of(await client.metadata(ledger)))
            target = copy.bookie if rng.random() < 0.2 else None
            done = await replicate_unlocked(  # locks guard nothing (A2)
                client, ledger, copy.first_entry, copy.bookie, target=target, config=self.config
            )
        except BookKeeperError as error:
            monitor.count(f"repairs ended by {type(error).__name__}")
        else:
            monitor.count(f"repairs {done.outcome.value}")


class Healer(Actor):
    """Autorecovery, with little patience: it audits, recovers what its writers have left, and repairs."""

    kind = "healer"
    config: Final = AutorecoveryConfig(
        lost_bookie_delay_s=1,
        bookies_interval_s=20.0,
        ledgers_interval_s=3.0,
        check_ledgers_per_s=0.0,
        poll_s=0.5,
        grace_ms=2_000,
        backoff_s=0.3,
        backoff_max_s=2.0,
        copy=Repairer.config,
    )

    async def program(self, seams: Seams) -> None:
        client = await self.cluster.new_client(self.cluster.plan.client, self.node)
        self.service = AutorecoveryService(client, f"{self.name}.{self.node.life}", self.config)
        await self.service.start()
        self.done = True
        repaired = 0
        while True:
            await asyncio.sleep(0.2)
            report = self.service.report()
            for _ in range(report.repaired - repaired):
                self.cluster.monitor.count("ledgers healed")
            repaired = report.repaired

    def report(self) -> AutorecoveryReport:
        """What its present life says of itself."""
        return self.service.report()


MAKERS: Final[dict[str, Callable[[SwarmCluster, str], Actor]]] = {
    "w": AppendingWriter,
    "r": Recoverer,
    "t": Tailer,
    "d": Repairer,
    "h": Healer,
}
"""First letter of a node's name -> who runs on it."""
