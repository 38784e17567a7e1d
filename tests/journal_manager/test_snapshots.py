"""What a snapshot store is; the stores themselves are tested with their backends."""

from __future__ import annotations

from journal_manager import SnapshotInfo, TxId
from journal_manager.backends.memory import MemoryBackend, MemoryHub
from journal_manager.registry import parse_uri
from journal_manager.snapshots import SnapshotStore


async def test_a_store_is_closed_by_its_context() -> None:
    closed: list[bool] = []

    class Closing(SnapshotStore):
        async def close(self) -> None:
            closed.append(True)

    async with Closing():  # type: ignore[abstract]
        assert not closed
    assert closed == [True]


async def test_snapshots_are_listed_oldest_first() -> None:
    backend, uri, options = MemoryBackend(), parse_uri("mem:x"), {"hub": MemoryHub()}
    await backend.open_writer(uri, None, options, owner="")
    store = await backend.open_snapshots(uri, options)
    for at in (10, 9, 100):
        await store.save(TxId(at), [b"x"] * at)
    assert await store.list() == tuple(SnapshotInfo(TxId(at), at, f"snapshot {at}") for at in (9, 10, 100))
