from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bookkeeper.real import system_seams
from spark_wal.webhdfs.contents.blob_store import (
    READ_SIZE,
    BlobInfo,
    BlobMissingError,
    BlobStore,
    FileBlobs,
    MemoryBlobs,
)

DATA = bytes(range(256)) * 3000


class BlobStoreContract:
    """What every blob store promises."""

    async def test_bytes_come_back_from_any_offset(self, store: BlobStore) -> None:
        writer = await store.create(1)
        await writer.write(DATA[:10])
        await writer.write(DATA[10:])
        await writer.finish()
        for offset, length in ((0, len(DATA)), (5, 7), (READ_SIZE - 1, 2), (len(DATA) - 1, 1), (9, 0)):
            assert await read(store, writer.blob, offset, length) == DATA[offset : offset + length]

    @pytest.mark.rule("S9")
    async def test_s9_what_is_missing_or_short_is_an_error(self, store: BlobStore) -> None:
        writer = await store.create(1)
        await writer.write(b"short")
        await writer.finish()
        with pytest.raises(BlobMissingError):
            await read(store, writer.blob, 0, 6)
        await store.delete(writer.blob)
        with pytest.raises(BlobMissingError):
            await read(store, writer.blob, 0, 5)

    async def test_a_blob_says_which_owner_began_it(self, store: BlobStore) -> None:
        first, second = await store.create(1), await store.create(2)
        await first.finish()
        assert sorted(await store.list(), key=lambda i: i.epoch) == [
            BlobInfo(first.blob, 1),
            BlobInfo(second.blob, 2),
        ]
        await second.abandon()
        assert await store.list() == [BlobInfo(first.blob, 1)]
        await store.delete(first.blob)
        await store.delete(first.blob)
        assert await store.list() == []


async def read(store: BlobStore, blob: str, offset: int, length: int) -> bytes:
    return b"".join([data async for data in store.read(blob, offset, length)])


class TestMemoryBlobs(BlobStoreContract):
    @pytest.fixture
    def store(self) -> BlobStore:
        return MemoryBlobs()


class TestFileBlobs(BlobStoreContract):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[BlobStore]:
        seams = system_seams()
        worker = seams.workers.worker("blobs")
        blobs = FileBlobs(str(tmp_path / "blobs"), seams.disk, worker, seams.rng)
        await blobs.open()
        yield blobs
        await blobs.close()
        worker.close()
