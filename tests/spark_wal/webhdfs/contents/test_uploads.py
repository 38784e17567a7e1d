from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from bookkeeper.errors import AddTimeoutError, ConfigError
from spark_wal.webhdfs.config import UploadLimits
from spark_wal.webhdfs.contents import blob_store
from spark_wal.webhdfs.contents import uploads as uploads_module
from spark_wal.webhdfs.contents.blob_store import BlobWriter, MemoryBlobs
from spark_wal.webhdfs.contents.uploads import Uploads
from spark_wal.webhdfs.errors import PlainIOError
from spark_wal.webhdfs.files.inodes import BlobRef
from tests.spark_wal.webhdfs.virtual import in_virtual_time, turns

LIMITS = UploadLimits(inline_size=10, spill_size=100, budget=300)


def uploads_on(blobs: MemoryBlobs) -> Uploads:
    return Uploads(blobs, 1, LIMITS)


@in_virtual_time
async def test_a_small_upload_goes_into_the_record() -> None:
    uploads = uploads_on(MemoryBlobs())
    upload = uploads.begin()
    await upload.write(b"0123")
    await upload.write(b"4567")
    await upload.finish()
    assert upload.pieces() == (b"01234567",)
    assert uploads.in_memory == 8
    upload.take()
    assert uploads.in_memory == 0


@in_virtual_time
async def test_an_empty_upload_has_no_pieces() -> None:
    upload = uploads_on(MemoryBlobs()).begin()
    await upload.finish()
    assert upload.pieces() == ()


@pytest.mark.parametrize("size", [11, 100, 101, 1000])
def test_a_large_upload_becomes_a_blob(size: int) -> None:
    @in_virtual_time
    async def story() -> None:
        blobs = MemoryBlobs()
        uploads = uploads_on(blobs)
        upload = uploads.begin()
        for number in range(size):
            await upload.write(bytes([number % 256]))
            assert uploads.in_memory <= LIMITS.spill_size
        await upload.finish()
        (piece,) = upload.pieces()
        assert isinstance(piece, BlobRef)
        assert piece.length == size
        assert bytes(blobs.blobs[piece.blob]) == bytes(n % 256 for n in range(size))
        assert uploads.in_memory == 0

    story()


@in_virtual_time
async def test_a_small_upload_for_which_the_tree_has_no_room_becomes_a_blob() -> None:
    blobs = MemoryBlobs()
    uploads = Uploads(blobs, 1, LIMITS, lambda size: size < 5)
    for data, kind in ((b"1234", bytes), (b"12345", BlobRef)):
        upload = uploads.begin()
        await upload.write(data)
        await upload.finish()
        assert [type(piece) for piece in upload.pieces()] == [kind]
        upload.take()
    assert uploads.in_memory == 0
    assert [bytes(each) for each in blobs.blobs.values()] == [b"12345"]
    assert uploads.goes_into_the_tree(0)


@in_virtual_time
async def test_over_the_budget_the_largest_is_streamed_out_and_goes_on() -> None:
    blobs = MemoryBlobs()
    uploads = uploads_on(blobs)
    running = [uploads.begin() for _ in range(8)]
    for number, upload in enumerate(running):
        await upload.write(bytes(40 + number))  # the last ones go over the budget
        assert uploads.in_memory <= LIMITS.budget
    assert len(blobs.blobs) >= 1
    for upload in running:
        await upload.write(b"end")
        await upload.finish()
        assert sum(len(p) if isinstance(p, bytes) else p.length for p in upload.pieces()) == upload.size


class StuckWriter:
    """A blob store that takes no bytes."""

    blob = "stuck"

    async def write(self, data: bytes) -> None:
        await asyncio.Event().wait()

    async def finish(self) -> None: ...

    async def abandon(self) -> None: ...


class FirstStuck(MemoryBlobs):
    def __init__(self) -> None:
        super().__init__()
        self.created = 0

    async def create(self, epoch: int) -> BlobWriter:
        self.created += 1
        return StuckWriter() if self.created == 1 else await super().create(epoch)


@in_virtual_time
async def test_no_upload_waits_for_another_to_end() -> None:
    uploads = uploads_on(FirstStuck())
    stuck = uploads.begin()
    writing = asyncio.ensure_future(stuck.write(bytes(LIMITS.spill_size + 1)))
    await turns()
    assert not writing.done()
    other = uploads.begin()
    await other.write(bytes(50))
    await other.finish()
    assert other.size == 50
    writing.cancel()


@pytest.mark.rule("S2")
@in_virtual_time
async def test_s2_an_abandoned_upload_leaves_nothing() -> None:
    blobs = MemoryBlobs()
    uploads = uploads_on(blobs)
    for size, finished in ((5, False), (200, False), (200, True)):
        upload = uploads.begin()
        await upload.write(bytes(size))
        if finished:
            await upload.finish()
        await upload.abandon()
        await turns()
        assert uploads.in_memory == 0
        assert not blobs.blobs


@pytest.mark.rule("S2")
@in_virtual_time
async def test_s2_what_a_record_has_taken_is_not_abandoned() -> None:
    blobs = MemoryBlobs()
    uploads = uploads_on(blobs)
    upload = uploads.begin()
    await upload.write(bytes(200))
    await upload.finish()
    upload.take()
    await upload.abandon()
    await turns()
    assert len(blobs.blobs) == 1
    assert uploads.in_memory == 0


class Refusing:
    """A blob that takes no bytes for good."""

    blob = "refusing"

    async def write(self, data: bytes) -> None:
        raise AddTimeoutError("no ack quorum")

    async def finish(self) -> None: ...

    async def abandon(self) -> None: ...


class RefusingBlobs(MemoryBlobs):
    async def create(self, epoch: int) -> BlobWriter:
        return Refusing()


@pytest.mark.rule("S2", "S9")
@in_virtual_time
async def test_s2_bytes_that_could_not_be_streamed_out_stay_in_memory_and_go_into_the_record() -> None:
    uploads = uploads_on(RefusingBlobs())
    upload = uploads.begin()
    await upload.write(b"01234")
    await upload.finish()
    with pytest.raises(AddTimeoutError):
        await upload.spill()
    assert upload.pieces() == (b"01234",), "never a blob that was not finished"
    assert uploads.in_memory == 5


@pytest.mark.rule("S2", "S9")
@in_virtual_time
async def test_s2_while_bytes_are_being_streamed_out_the_record_has_them_and_no_blob_stays() -> None:
    blobs = MemoryBlobs()
    uploads = uploads_on(blobs)
    upload = uploads.begin()
    await upload.write(b"01234")
    await upload.finish()
    gate = asyncio.Event()
    create = blobs.create

    class Slow:
        def __init__(self, writer: BlobWriter) -> None:
            self._writer = writer
            self.blob = writer.blob

        async def write(self, data: bytes) -> None:
            await gate.wait()
            await self._writer.write(data)

        async def finish(self) -> None:
            await self._writer.finish()

        async def abandon(self) -> None:
            await self._writer.abandon()

    async def slowly(epoch: int) -> BlobWriter:
        return Slow(await create(epoch))

    blobs.create = slowly  # type: ignore[method-assign]
    spilling = asyncio.ensure_future(upload.spill())
    await turns()
    assert upload.pieces() == (b"01234",), "the blob is not durable yet"
    upload.take()  # the record has them
    gate.set()
    await spilling
    await turns()
    assert uploads.in_memory == 0 and not blobs.blobs


@pytest.mark.rule("X30")
async def test_a_file_has_at_most_so_many_bytes() -> None:
    uploads = Uploads(MemoryBlobs(), 1, UploadLimits(file_bytes_max=10))
    upload = uploads.begin()
    await upload.write(b"0123456789")
    with pytest.raises(PlainIOError, match="at most 10 bytes"):
        await upload.write(b"x")
    assert upload.size == 10
    with pytest.raises(ConfigError):
        UploadLimits(file_bytes_max=0)


KEPT_HERE = [tracemalloc.Filter(True, file) for file in (uploads_module.__file__, __file__)]
"""What the uploads keep, and the pieces that this module makes."""


@in_virtual_time
async def test_bytes_that_come_two_at_a_time_take_no_more_memory_than_is_counted() -> None:
    """Each piece was kept as an object of its own, some fifty bytes: uploads within the budget held 28 times as much,
    and some hundred connections could fill the gateway's machine."""
    uploads = Uploads(MemoryBlobs(), 1, UploadLimits())
    upload = uploads.begin()
    tracemalloc.start()
    try:
        for number in range(20_000):
            await upload.write(number.to_bytes(2, "big"))
        traces = tracemalloc.take_snapshot().filter_traces(KEPT_HERE)  # other threads of this process take some, too
        taken = sum(trace.size for trace in traces.traces)
    finally:
        tracemalloc.stop()
    assert upload.held == 40_000
    assert taken < 2 * upload.held
    await upload.finish()
    assert upload.pieces() == (b"".join(number.to_bytes(2, "big") for number in range(20_000)),)


@pytest.mark.rule("S4")
@pytest.mark.parametrize("size", [11, 101])
def test_a_record_names_a_blob_only_when_all_of_it_is_durable(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that was kept in memory to its end, and is too large for a record."""
    finished: list[str] = []

    async def noted(writer: BlobWriter) -> None:
        finished.append(writer.blob)

    monkeypatch.setattr(blob_store._MemoryWriter, "finish", noted)

    @in_virtual_time
    async def story() -> None:
        upload = uploads_on(MemoryBlobs()).begin()
        await upload.write(bytes(size))
        await upload.finish()
        (piece,) = upload.pieces()
        assert isinstance(piece, BlobRef) and finished == [piece.blob]

    story()
