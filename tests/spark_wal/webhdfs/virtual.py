"""Virtual time, and a journal whose durability is in the hands of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from functools import wraps
from typing import Any

from bookkeeper.leases.lease import Lease, LeaseEntry
from bookkeeper.testing import SimLoop
from journal_manager import (
    Chunks,
    FencingToken,
    JournalError,
    Op,
    RecoveryReport,
    SegmentInfo,
    SnapshotInfo,
    SnapshotStore,
    TxId,
)
from journal_manager.snapshots.snapshots import pieces
from spark_wal.webhdfs.config import OwnerConfig
from spark_wal.webhdfs.contents.blob_store import MemoryBlobs
from spark_wal.webhdfs.ownership.events import TreeEventFeed
from spark_wal.webhdfs.ownership.namespace_owner import NamespaceOwner


def in_virtual_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test on a loop whose clock jumps to the next thing due."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        with asyncio.Runner(loop_factory=SimLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run


class LoopClock:
    """The running loop's time, for one who may be paused: ``offset`` is how far its own clock is ahead, ``wall_offset``
    how far the one on the wall was set ahead."""

    def __init__(self) -> None:
        self.offset = 0.0
        self.wall_offset = 0.0

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time() + self.offset

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + round((self.monotonic() + self.wall_offset) * 1000)


class HeldLog:
    """An edit log that makes nothing durable until it is told to."""

    def __init__(self, epoch: int = 1, ops: tuple[Op, ...] = ()) -> None:
        self.token = FencingToken(epoch, "test")
        self.ops = list(ops)
        self.recovery = RecoveryReport(self.token, (), (), TxId(len(ops)))
        self.durable_txid = TxId(len(ops))
        self.failure: BaseException | None = None
        self.held = True
        self.purged = TxId(0)
        self.snapshots = Snapshots()
        self._waiting: list[tuple[TxId, asyncio.Future[TxId]]] = []

    @property
    def next_txid(self) -> TxId:
        return TxId(len(self.ops) + 1)

    def log(self, body: bytes, opcode: int = 0) -> asyncio.Future[TxId]:
        if self.failure is not None:
            raise JournalError("failed before")
        txid = self.next_txid
        self.ops.append(Op(opcode, txid, body))
        return self._wait(txid)

    def _wait(self, txid: TxId) -> asyncio.Future[TxId]:
        future: asyncio.Future[TxId] = asyncio.get_running_loop().create_future()
        self._waiting.append((txid, future))
        if not self.held:
            self.release()
        return future

    async def sync(self, upto: TxId | None = None) -> TxId:
        txid = self.next_txid - 1 if upto is None else upto
        if txid > self.durable_txid:
            await self._wait(TxId(txid))
        return self.durable_txid

    def release(self, upto: int | None = None) -> None:
        """Everything logged so far (or up to a txid) is durable."""
        self.durable_txid = TxId(len(self.ops) if upto is None else upto)
        for entry in list(self._waiting):
            if entry[0] <= self.durable_txid:
                self._waiting.remove(entry)
                entry[1].set_result(entry[0])

    def fail(self, error: JournalError) -> None:
        self.failure = error
        for _, future in self._waiting:
            future.set_exception(error)
        self._waiting.clear()

    async def read(self, start: TxId, end: TxId | None = None) -> AsyncIterator[Op]:
        for op in self.ops[start - 1 :]:
            yield op

    async def roll(self) -> SegmentInfo | None:
        return None

    async def purge(self, below: TxId) -> tuple[SegmentInfo, ...]:
        self.purged = below
        return ()

    async def save_snapshot(self, at: TxId, chunks: Chunks) -> SnapshotInfo:
        assert at <= self.durable_txid
        self.snapshots.kept[at] = b"".join([piece async for piece in pieces(chunks)])
        return self.snapshots.info(at)

    async def delete_snapshot(self, at: TxId) -> None:
        self.snapshots.kept.pop(at, None)

    async def close(self) -> None: ...

    async def abort(self) -> None: ...


class Snapshots(SnapshotStore):
    """A snapshot store in a dict, which the log fills."""

    def __init__(self) -> None:
        self.kept: dict[TxId, bytes] = {}

    def info(self, at: TxId) -> SnapshotInfo:
        return SnapshotInfo(at, len(self.kept[at]), "here")

    async def list(self) -> tuple[SnapshotInfo, ...]:
        return tuple(self.info(at) for at in sorted(self.kept))

    async def read(self, at: TxId) -> AsyncGenerator[bytes, None]:
        yield self.kept[at]

    async def offer(self, at: TxId, chunks: Chunks, *, epoch: int = 0) -> SnapshotInfo:
        raise AssertionError("a gateway offers no snapshots")

    async def close(self) -> None: ...


class Switch:
    """A lease that the test gives and takes."""

    def __init__(self) -> None:
        self.is_held = True
        self.others_seen = 0
        self.other: str | None = None

    def seen_with(self, other: str) -> None:
        """Another gateway has it, and renews it at this moment."""
        self.is_held, self.other = False, other
        self.others_seen += 1

    async def acquire(self, entry: LeaseEntry) -> None: ...

    async def wait_until_held(self) -> None: ...

    async def lost(self) -> None:
        await asyncio.Event().wait()

    async def release(self) -> None: ...


def owner_on(
    log: HeldLog,
    *,
    lease: Lease | None = None,
    blobs: MemoryBlobs | None = None,
    snapshots: Snapshots | None = None,
    config: OwnerConfig | None = None,
    clock: LoopClock | None = None,
) -> NamespaceOwner:
    """A session, not replayed yet."""
    blobs, clock = blobs or MemoryBlobs(), clock or LoopClock()
    log.snapshots = snapshots or log.snapshots
    return NamespaceOwner(log, log.snapshots, blobs, lease or Switch(), clock, TreeEventFeed(), config)


async def turns(count: int = 20) -> None:
    """Let everything that can run, run."""
    for _ in range(count):
        await asyncio.sleep(0)
