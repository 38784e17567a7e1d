"""Bookies that do as they are told, speaking real bytes; and a cluster of them in a simulated world.

For what a real bookie does rarely or never: refuse everything, say nothing, forget, lie. The stories on real bookies
are in test_stories.py.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from bookkeeper import codec, wire
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.write.write_handle import WriteHandle
from bookkeeper.ids import Address, BookieId, EntryId, LedgerId
from bookkeeper.ledger import HEADER, DigestScheme
from bookkeeper.meta import Metadata, ServiceInfo, init_cluster_in
from bookkeeper.meta.stores.memory import MemoryCluster
from bookkeeper.net.frame_protocol import FrameProtocol
from bookkeeper.seams import Seams
from bookkeeper.testing import World
from bookkeeper.wire import Status
from bookkeeper.wire.availability import encode_availability

T = TypeVar("T")

CONFIG = ClientConfig(add_timeout_ms=4_000, metadata_timeout_ms=2_000, recovery_attempts=2)


class _Connection(FrameProtocol):
    def __init__(self, bookie: ScriptedBookie) -> None:
        super().__init__()
        self.bookie = bookie
        self.detector = wire.DialectDetector()

    def on_open(self) -> None:
        self.bookie.connections.append(self)

    def on_closed(self, error: BaseException | None) -> None:
        self.bookie.connections.remove(self)

    def on_bytes(self, buffer: bytearray, start: int, end: int) -> int:
        adds = codec.split_adds(buffer, start, end, self.frame_max, self.detector.v2)
        self.detector.v2 = adds.v2
        self.bookie.received += memoryview(buffer)[start : adds.used]
        if not self.bookie.silent:
            self._adds(adds)
            for first, last in adds.slow:
                self._slow(bytes(buffer[first:last]))
        if adds.error is not None:
            raise adds.error
        return adds.used - start

    def _adds(self, adds: codec.Adds) -> None:
        for run in adds.runs:
            for i in range(run.i0, run.i1):
                if run.recovery:
                    self._recovery_add(adds, run, i)
                    continue
                status = self.bookie.add_status(run.ledger_id, run.master_key, adds.entry_ids[i])
                if status is Status.OK:
                    begin = adds.record_ends[i - 1] if i else adds.record_start
                    entry = bytes(adds.records[begin + codec.RECORD_HEADER : adds.record_ends[i]])
                    self.bookie.store(run.ledger_id, adds.entry_ids[i], entry)
                    self.write(adds.acks[adds.ack_ends[i - 1] if i else 0 : adds.ack_ends[i]])
                else:
                    refusal = codec.fail_acks(adds.acks, adds.ack_ends, i, i + 1, status)
                    asyncio.get_running_loop().call_later(self.bookie.refusal_delay_s, self.write, refusal)

    def _recovery_add(self, adds: codec.Adds, run: codec.Run, i: int) -> None:
        begin = adds.record_ends[i - 1] if i else adds.record_start
        entry = bytes(adds.records[begin + codec.RECORD_HEADER : adds.record_ends[i]])
        ledger_id, entry_id = LedgerId(run.ledger_id), EntryId(adds.entry_ids[i])
        request = wire.AddEntry(ledger_id, entry_id, run.master_key, entry, recovery=True)
        self.bookie.requests.append(request)
        ack = codec.fail_acks(adds.acks, adds.ack_ends, i, i + 1, Status.OK)
        self.bookie.handle(request, lambda reply: self.write(codec.fail_acks(ack, _whole(ack), 0, 1, reply.status)))

    def _slow(self, body: bytes) -> None:
        decoded = self.detector.decode(body)
        assert not isinstance(decoded, wire.RefusedFrame), decoded
        header, request = decoded
        self.bookie.requests.append(request)
        if self.bookie.batches_end_connections and isinstance(request, wire.BatchRead):
            self.close()
            return

        def reply(answer: wire.Reply) -> None:
            self.write(wire.encode_reply(header, answer))

        self.bookie.handle(request, reply)


def _whole(data: bytes) -> array[int]:
    return array("q", [len(data)])


class ScriptedBookie:
    """Keeps entries in a dict."""

    def __init__(self, name: str) -> None:
        self.id = BookieId(name)
        self.entries: dict[int, dict[int, bytes]] = {}
        self.keys: dict[int, bytes] = {}
        self.fenced: set[int] = set()
        self.explicit: dict[int, tuple[int, bytes]] = {}
        self.requests: list[wire.Request] = []
        """What was not a plain add; and recovery adds."""
        self.received = bytearray()
        """Every frame."""
        self.connections: list[_Connection] = []
        self.pollers: list[tuple[wire.ReadEntry, Callable[[wire.Reply], None]]] = []
        self.silent = False
        """Read everything, answer nothing."""
        self.refuse_adds: Status | None = None
        self.refuse_reads: Status | None = None
        self.lists = False
        self.refuse_forces: Status | None = None
        self.silent_on_force = False
        self.polls_wait = True
        """Otherwise a long poll is answered at once, as by a bookie that has too many of them."""
        self.batches = True
        self.batches_end_connections = False
        """As a bookie does that is older than batch reads."""
        self.refusal_delay_s = 0.0
        self.fence_at: int | None = None
        """Somebody fences the ledger right before this entry arrives."""

    def lac(self, ledger_id: int) -> int:
        lacs = [HEADER.unpack_from(entry)[2] for entry in self.entries.get(ledger_id, {}).values()]
        return max([*lacs, self.explicit.get(ledger_id, (-1, b""))[0]], default=-1)

    def add_status(self, ledger_id: int, key: bytes, entry_id: int) -> Status:
        if self.fence_at is not None and entry_id >= self.fence_at:
            self.fenced.add(ledger_id)
        if self.refuse_adds is not None:
            return self.refuse_adds
        if self.keys.setdefault(ledger_id, key) != key:
            return Status.UNAUTHORIZED
        return Status.FENCED if ledger_id in self.fenced else Status.OK

    def store(self, ledger_id: int, entry_id: int, entry: bytes) -> None:
        self.entries.setdefault(ledger_id, {})[entry_id] = entry
        self.wake()

    def wake(self) -> None:
        for request, reply in list(self.pollers):
            assert request.previous_lac is not None
            if self.lac(request.ledger_id) > request.previous_lac:
                self.pollers.remove((request, reply))
                reply(self.poll_reply(request))

    def poll_reply(self, request: wire.ReadEntry) -> wire.Reply:
        lac = self.lac(request.ledger_id)
        assert request.previous_lac is not None
        wanted = request.previous_lac + 1
        entry = self.entries.get(request.ledger_id, {}).get(wanted) if lac >= wanted else None
        entry_id = EntryId(wanted if entry is not None else -1)
        return wire.ReadReply(Status.OK, request.ledger_id, entry_id, entry, lac)

    def handle(self, request: wire.Request, reply: Callable[[wire.Reply], None]) -> None:
        match request:
            case wire.AddEntry():
                self.keys.setdefault(request.ledger_id, request.master_key)
                status = self.add_status(request.ledger_id, request.master_key, request.entry_id)
                if status is Status.OK or request.recovery:
                    self.store(request.ledger_id, request.entry_id, request.entry)
                    status = Status.OK
                reply(wire.AddReply(status, request.ledger_id, request.entry_id))
            case wire.ForceLedger():
                if not self.silent_on_force:
                    reply(wire.ForceReply(self.refuse_forces or Status.OK, request.ledger_id))
            case wire.ListEntries() if self.lists:
                held = sorted(self.entries.get(request.ledger_id, {}))
                body = encode_availability((entry, entry) for entry in held)
                reply(wire.ListReply(Status.OK, request.ledger_id, body))
            case wire.ReadEntry():
                self.read(request, reply)
            case wire.BatchRead():
                self.batch(request, reply)
            case wire.ReadLac():
                entries = self.entries.get(request.ledger_id, {})
                blob = self.explicit.get(request.ledger_id, (-1, None))[1]
                status = Status.OK if entries or blob else Status.NO_LEDGER
                reply(wire.LacReply(status, request.ledger_id, blob, entries[max(entries)] if entries else None))
            case wire.WriteLac():
                self.explicit[request.ledger_id] = (request.lac, request.body)
                reply(wire.WriteLacReply(Status.OK, request.ledger_id))
                self.wake()
            case _:
                reply(wire.failure(request, Status.BAD_REQUEST))

    def read(self, request: wire.ReadEntry, reply: Callable[[wire.Reply], None]) -> None:
        ledger_id, entry_id = request.ledger_id, request.entry_id
        if request.fence:
            key = request.master_key or b""
            if self.keys.setdefault(ledger_id, key) != key:
                return reply(wire.failure(request, Status.UNAUTHORIZED))
            self.fenced.add(ledger_id)
        if request.long_poll:
            if self.lac(ledger_id) > (request.previous_lac or 0) or self.refuse_reads or not self.polls_wait:
                return reply(self.poll_reply(request))
            self.pollers.append((request, reply))
            asyncio.get_running_loop().call_later((request.timeout_ms or 0) / 1000, self.expire, request, reply)
            return None
        entries = self.entries.get(ledger_id, {})
        wanted = max(entries, default=-1) if entry_id == -1 else entry_id
        if self.refuse_reads is not None:
            return reply(wire.failure(request, self.refuse_reads))
        if wanted not in entries:
            return reply(wire.failure(request, Status.NO_ENTRY if ledger_id in self.entries else Status.NO_LEDGER))
        return reply(wire.ReadReply(Status.OK, ledger_id, entry_id, entries[wanted]))

    def expire(self, request: wire.ReadEntry, reply: Callable[[wire.Reply], None]) -> None:
        if (request, reply) in self.pollers:
            self.pollers.remove((request, reply))
            reply(self.poll_reply(request))

    def batch(self, request: wire.BatchRead, reply: Callable[[wire.Reply], None]) -> None:
        if not self.batches or self.refuse_reads is not None:
            return reply(wire.failure(request, self.refuse_reads or Status.BAD_REQUEST))
        entries, body, entry_id = self.entries.get(request.ledger_id, {}), b"", int(request.first_entry)
        while entry_id in entries and (not request.count_max or entry_id < request.first_entry + request.count_max):
            if body and len(body) + 4 + len(entries[entry_id]) > request.size_max:
                break
            body += len(entries[entry_id]).to_bytes(4, "big") + entries[entry_id]
            entry_id += 1
        if not body:
            return reply(wire.failure(request, Status.NO_ENTRY))
        first = request.first_entry
        return reply(wire.BatchReply(Status.OK, request.ledger_id, first, request.request_id, body))


class ScriptedCluster:
    """A world with scripted bookies, one node each, and a client on the node ``client``."""

    def __init__(self, seed: int = 1, bookies: int = 3) -> None:
        self.world = World(seed)
        self.store = MemoryCluster()
        self.bookies = [ScriptedBookie(f"b{i + 1}") for i in range(bookies)]
        self.client = self.world.node("client")

    def __getitem__(self, name: str) -> ScriptedBookie:
        return next(bookie for bookie in self.bookies if bookie.id == name)

    async def metadata(self, seams: Seams) -> Metadata:
        return await Metadata.over(self.store.connect(), seams)

    async def begin(self) -> None:
        await init_cluster_in(self.store.connect(), self.client.seams)
        for bookie in self.bookies:
            await self.add(bookie)

    async def add(self, bookie: ScriptedBookie) -> None:
        if bookie not in self.bookies:
            self.bookies.append(bookie)
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def serve(seams: Seams) -> None:
            await seams.net.listen(Address(bookie.id, 3181), lambda: _Connection(bookie))
            metadata = await self.metadata(seams)
            store = metadata.store
            self.world.node(bookie.id).on_crash[:] = [lambda: self.store.expire(store)]  # type: ignore[arg-type]
            await metadata.bookies.register(bookie.id, ServiceInfo.bookie(Address(bookie.id, 3181)))
            if not started.done():
                started.set_result(None)
            await asyncio.get_running_loop().create_future()

        self.world.node(bookie.id).start(serve)
        await started

    @asynccontextmanager
    async def connect(self, config: ClientConfig = CONFIG) -> AsyncIterator[BookKeeper]:
        metadata = await self.metadata(self.client.seams)
        client = await BookKeeper.over(Opened(metadata), config=config, seams=self.client.seams)
        try:
            yield client
        finally:
            await client.close()

    def run(self, story: Callable[[ScriptedCluster], Coroutine[Any, Any, T]]) -> T:
        """Run ``story(self)`` as the client's node, until it is done."""

        async def main() -> T:
            await self.begin()
            return await self.client.run(story(self))

        with self.world:
            return self.world.run(main(), within_s=300)


class Opened:
    """A cluster that a client closes with itself."""

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata
        self.net = None

    async def close(self) -> None:
        await self.metadata.close()


def payload_of(entry: bytes, digest: str = "crc32c", password: bytes = b"") -> bytes:
    """What a scripted bookie stored, checked."""
    from bookkeeper.client.ledgers.ledger_creation import DIGESTS

    ledger_id, entry_id, _, _ = HEADER.unpack_from(entry)
    return DigestScheme(DIGESTS[digest], password).verify(entry, ledger_id, entry_id)


def connection_of(bookie: ScriptedBookie) -> FrameProtocol:
    """A server's side of one connection, for nets without a world."""
    return _Connection(bookie)


async def written(bk: BookKeeper, count: int = 50, size: int = 1, **shape: Any) -> LedgerId:
    """A closed ledger of ``count`` entries, on all their bookies."""
    handle: WriteHandle = await bk.create_ledger(**shape)
    async with handle as ledger:
        await ledger.append_many([b"%d" % i * size for i in range(count)])
    await asyncio.sleep(1)
    return ledger.id


async def settled() -> None:
    """What needs no time has happened: the net is in this process, and each of its steps is a turn of the loop."""
    for _ in range(100):
        await asyncio.sleep(0)
