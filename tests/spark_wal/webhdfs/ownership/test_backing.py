from __future__ import annotations

from pathlib import Path

import pytest

from journal_manager import JournalNotFormattedError
from spark_wal.webhdfs.contents.blob_store import MemoryBlobs
from spark_wal.webhdfs.ownership import backing


async def test_a_journal_is_claimed_with_its_snapshots_and_blobs(tmp_path: Path) -> None:
    blobs = MemoryBlobs()
    claimed = await backing.open_journal(f"file://{tmp_path}/journal", blobs, "us")
    assert (claimed.log.token.epoch, claimed.blobs) == (1, blobs)
    assert await claimed.snapshots.list() == ()
    await claimed.log.close()
    await claimed.snapshots.close()


async def test_a_journal_without_its_snapshots_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(uri: str) -> None:
        raise JournalNotFormattedError(uri)

    monkeypatch.setattr(backing, "open_snapshots", fails)
    with pytest.raises(JournalNotFormattedError):
        await backing.open_journal(f"file://{tmp_path}/journal", MemoryBlobs(), "us")
    monkeypatch.undo()
    claimed = await backing.open_journal(f"file://{tmp_path}/journal", MemoryBlobs(), "us")
    assert claimed.log.token.epoch == 2
    await claimed.log.close()
    await claimed.snapshots.close()
