from __future__ import annotations

from random import Random

import pytest

from bookkeeper.testing.cluster import SimCluster
from spark_wal.webhdfs.contents.blob_store import BlobInfo, BlobMissingError
from spark_wal.webhdfs.contents.ledger_blobs import ENTRY_SIZE, LedgerBlobs
from tests.spark_wal.webhdfs.contents.test_blob_store import read

RNG = Random(1)
DATA = bytes(range(256)) * 2500
"""Two whole entries and a part of one."""


def test_bytes_come_back_from_any_offset() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            blobs = LedgerBlobs(bk, "n", RNG)
            writer = await blobs.create(1)
            for at in range(0, len(DATA), 10_000):
                await writer.write(DATA[at : at + 10_000])
            await writer.finish()
            last = len(DATA) - 1
            for offset, length in ((0, len(DATA)), (5, 7), (ENTRY_SIZE - 1, 2), (last, 1), (ENTRY_SIZE, 0)):
                assert await read(blobs, writer.blob, offset, length) == DATA[offset : offset + length]

    SimCluster(seed=1).run(story)


@pytest.mark.rule("S9")
def test_s9_what_is_missing_or_short_is_an_error() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            blobs = LedgerBlobs(bk, "n", RNG)
            writer = await blobs.create(1)
            await writer.write(b"short")
            await writer.finish()
            for length in (6, ENTRY_SIZE + 1):
                with pytest.raises(BlobMissingError):
                    await read(blobs, writer.blob, 0, length)
            await blobs.delete(writer.blob)
            await blobs.delete(writer.blob)
            with pytest.raises(BlobMissingError):
                await read(blobs, writer.blob, 0, 5)

    SimCluster(seed=2).run(story)


def test_a_namespace_lists_its_own_blobs_and_nothing_else() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            mine, other = LedgerBlobs(bk, "mine", RNG), LedgerBlobs(bk, "other", RNG)
            async with await bk.create_ledger() as ledger:
                await ledger.append(b"a stranger's")
            first = await mine.create(7)
            await first.finish()
            await (await other.create(1)).finish()
            assert await mine.list() == [BlobInfo(first.blob, 7)]
            gone = await mine.create(8)
            await gone.write(bytes(ENTRY_SIZE * 3))
            await gone.abandon()
            assert await mine.list() == [BlobInfo(first.blob, 7)]

    SimCluster(seed=3).run(story)


@pytest.mark.rule("X18")
def test_every_blob_has_a_random_password_and_one_of_an_earlier_version_is_read_without() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            blobs = LedgerBlobs(bk, "n", RNG)
            made = [await blobs.create(1) for _ in range(2)]
            for writer in made:
                await writer.write(b"x")
                await writer.finish()
            passwords = {(await bk.metadata(int(writer.blob))).password for writer in made}
            assert len(passwords) == 2 and {len(password or b"") for password in passwords} == {32}
            async with await bk.create_ledger() as earlier:
                await earlier.append(b"before")
            assert await read(blobs, str(earlier.id), 0, 6) == b"before"

    SimCluster(seed=4).run(story)
