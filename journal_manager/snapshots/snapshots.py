"""Snapshots: the state at a transaction id, so that a replay need not begin at the first edit.

snapshot(N), then edits N+1..M, is the state after M.

    JournalWriter.save_snapshot(at, chunks)     the owner keeps one, at a durable id; a fenced writer is refused
    SnapshotStore.offer(at, chunks)             who only reads (a standby) hands one in; nobody sees it yet
    JournalWriter.adopt_snapshots()             the owner keeps what was handed in
    SnapshotStore.list, read, load              anybody reads
    restore_newest(store, restore)              the newest that is intact, in chunks

Content goes in and out in chunks and is never whole in memory, except in ``load``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Protocol, Self

from journal_manager.edits.discarded_edits import UNKNOWN_EPOCH, DiscardedEdits
from journal_manager.errors import (
    JournalCorruptionError,
    JournalError,
    JournalUnavailableError,
    SnapshotAheadError,
    SnapshotNotFoundError,
)
from journal_manager.txid import NOTHING, TxId, is_txid

PIECE_BYTES: Final = 1 << 20
"""The size in which stores write and read content."""

Chunks = Iterable[bytes] | AsyncIterable[bytes]
"""The content of a snapshot, in parts of any size."""


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """A complete snapshot."""

    at: TxId
    size: int
    location: str
    epoch: int = UNKNOWN_EPOCH
    """An epoch in which the state was right; unknown as long as no edit of the journal was ever discarded."""


class SnapshotStore(Protocol):
    """Reads snapshots, and takes those of a standby. A snapshot exists whole, or not at all. It is an async context
    manager. The methods may overlap."""

    async def list(self) -> tuple[SnapshotInfo, ...]:
        """List all snapshots, oldest first."""

    def read(self, at: TxId) -> AsyncGenerator[bytes, None]:
        """The content of the snapshot at ``at``, in parts of about a mebibyte.

        The checksum covers the whole content, so what was read is verified when the last part was followed by the end.
        ``restore_newest`` takes care of this.

        Raises (while iterating):
            SnapshotNotFoundError: there is none at ``at``. JournalCorruptionError: it is damaged.
        """

    async def load(self, at: TxId | None = None) -> tuple[SnapshotInfo, bytes] | None:
        """Load the snapshot at ``at``, or the newest that is intact, as a whole; None if there is none.

        Raises:
            SnapshotNotFoundError: there is none at ``at``. JournalCorruptionError: it is damaged, or all are.
        """
        found: list[bytes] = []

        async def collect(info: SnapshotInfo, chunks: AsyncGenerator[bytes, None]) -> None:
            found.clear()
            async for chunk in chunks:
                found.append(chunk)

        if at is None:
            newest = await restore_newest(self, collect)
            return None if newest is None else (newest, b"".join(found))
        for info in await self.list():
            if info.at == at:
                async with aclosing(self.read(at)) as chunks:
                    await collect(info, chunks)
                return info, b"".join(found)
        raise no_snapshot(at)

    async def offer(self, at: TxId, chunks: Chunks, *, epoch: int = UNKNOWN_EPOCH) -> SnapshotInfo:
        """Hand the state after edit ``at`` to the journal's owner. The state must come from durable edits only, as
        readers get them. ``epoch`` is that of edit ``at`` (``EditRun.epoch``), or of the snapshot that the state is;
        without it nothing is adopted at an id that was ever discarded.

        The content is durable when this returns, and it becomes a snapshot when the owner adopts it. Cancelling
        leaves nothing that anybody would read.
        """

    async def close(self) -> None:
        """Release everything. Idempotent."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()


Restore = Callable[[SnapshotInfo, AsyncGenerator[bytes, None]], Awaitable[None]]


async def restore_newest(store: SnapshotStore, restore: Restore) -> SnapshotInfo | None:
    """Give the newest snapshot that is intact to ``restore``, in chunks. Returns it; None if there is none.

    If a snapshot is damaged or cannot be read now (a disk that rots may give errors and no content), the one before it
    is given next, so ``restore`` may be called several times; each time it begins with an empty state. A failure of
    ``restore`` itself is raised only if the snapshot is intact: damaged content may well be what made it fail.

    Raises:
        JournalCorruptionError: all snapshots are damaged. JournalUnavailableError: none can be read now, though not all
        are damaged; or they cannot be listed. And what ``restore`` raises.
    """
    tried: set[SnapshotInfo] = set()
    damage: JournalError | None = None
    while rest := [info for info in await store.list() if info not in tried]:
        info, reading = rest[-1], list[JournalError]()
        tried.add(info)
        try:
            async with aclosing(_noting(store.read(info.at), reading)) as chunks:
                try:
                    await restore(info, chunks)
                except Exception:
                    await _drain(chunks)
                    raise
                await _drain(chunks)
        except SnapshotNotFoundError:
            continue  # the owner has removed it meanwhile
        except JournalCorruptionError as error:
            damage = damage or error
        except JournalUnavailableError as error:
            if error not in reading:
                raise  # the program cannot reach something
            damage = error if damage is None or isinstance(damage, JournalCorruptionError) else damage
        else:
            return info
    if damage is not None:
        raise damage
    return None


async def _noting(chunks: AsyncGenerator[bytes, None], failures: list[JournalError]) -> AsyncGenerator[bytes, None]:
    """The same chunks; what they fail with is noted."""
    async with aclosing(chunks):
        try:
            async for chunk in chunks:
                yield chunk
        except JournalError as error:
            failures.append(error)
            raise


async def _drain(chunks: AsyncGenerator[bytes, None]) -> None:
    """Read to the end, where the checksum is compared."""
    async for _ in chunks:
        pass


async def pieces(chunks: Chunks, size: int = PIECE_BYTES) -> AsyncGenerator[bytes, None]:
    """The same content in pieces of exactly ``size`` bytes; only the last one may be shorter."""
    waiting = bytearray()
    async for chunk in _each(chunks):
        rest = memoryview(chunk)
        while len(waiting) + len(rest) >= size:
            taken = size - len(waiting)
            yield bytes(waiting) + bytes(rest[:taken])
            waiting.clear()
            rest = rest[taken:]
        waiting += rest
    if waiting:
        yield bytes(waiting)


async def _each(chunks: Chunks) -> AsyncGenerator[bytes, None]:
    if isinstance(chunks, AsyncIterable):
        async for chunk in chunks:
            yield chunk
    else:
        for chunk in chunks:
            yield chunk


def ensure_durable(at: TxId, durable: TxId) -> None:
    """A snapshot may be kept at ``at`` if the journal is durable up to ``durable``.

    Raises:
        SnapshotAheadError: the edits after ``durable`` may be lost, and other edits may get their ids.
        ValueError: no edit has the id ``at``.
    """
    if not is_txid(at):
        raise ValueError(f"{at} is no transaction id: ids begin at 1")
    if at > durable:
        raise SnapshotAheadError(
            f"a snapshot at edit {at} cannot be kept: "
            + (f"the journal is durable up to edit {durable}" if durable != NOTHING else "the journal has no edits")
        )


def adoptable(
    offered: Iterable[SnapshotInfo],
    kept: Iterable[SnapshotInfo],
    durable: TxId,
    discarded: DiscardedEdits,
    stays: Callable[[TxId], bool],
) -> tuple[tuple[SnapshotInfo, ...], tuple[SnapshotInfo, ...]]:
    """Which of the snapshots that were handed in the owner keeps, and which it removes; the others wait.

    The newest durable one is kept if it is newer than all that are kept already. Older ones are of no use, and neither
    are those with edits that were discarded, whatever their ids are. Where ``stays`` says that an upgrade may be
    rolled back to what is kept at an id, nothing is put in its place.
    """
    newest = max((info.at for info in kept), default=NOTHING)
    offered = tuple(offered)
    stale = tuple(info for info in offered if discarded.covers(info.at, info.epoch) or stays(info.at))
    ready = sorted((info for info in offered if info.at <= durable and info not in stale), key=lambda info: info.at)
    good = tuple(info for info in ready[-1:] if info.at > newest)
    return good, (*(info for info in ready if info not in good), *stale)


def no_snapshot(at: TxId) -> SnapshotNotFoundError:
    """Make the error of a snapshot that is not there."""
    return SnapshotNotFoundError(f"there is no snapshot at edit {at}")
