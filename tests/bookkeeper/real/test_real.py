"""The bindings, against the real system."""

from __future__ import annotations

import asyncio
import mmap
import threading
from pathlib import Path

import pytest

from bookkeeper import real
from bookkeeper.ids import Address
from bookkeeper.real.disk import PosixDisk
from bookkeeper.real.workers import ThreadWorker


def test_files_are_read_and_written_at_offsets(tmp_path: Path) -> None:
    disk = PosixDisk()
    path = str(tmp_path / "file")
    file = disk.open(path, create=True)
    file.pwrite(b"hello", 3)
    file.sync()
    assert (file.size(), file.pread(100, 0), file.pread(2, 4)) == (8, b"\0\0\0hello", b"el")
    into = bytearray(4)
    assert file.pread_into(into, 5) == 3
    assert bytes(into) == b"llo\0"
    assert file.pread_cached(5, 3) in (b"hello", None)
    file.truncate(4)
    file.close()
    file.close()
    assert disk.read_file(path) == b"\0\0\0h"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        disk.open(path, create=True)
    with pytest.raises(FileNotFoundError, match="nothing"):
        disk.open(str(tmp_path / "nothing"))


def test_errors_name_the_path(tmp_path: Path) -> None:
    disk = PosixDisk()
    path = str(tmp_path / "file")
    disk.open(path, create=True).close()
    file = disk.open(path, write=False)
    with pytest.raises(OSError, match="file"):
        file.pwrite(b"x", 0)


def test_direct_files_take_aligned_blocks_and_read_anything(tmp_path: Path) -> None:
    file = PosixDisk().open(str(tmp_path / "file"), create=True, direct=True)
    block = mmap.mmap(-1, 8192)
    block[:] = bytes(range(256)) * 32
    file.pwrite(memoryview(block), 0)
    if file.direct:
        with pytest.raises(OSError, match="Invalid"):
            file.pwrite(b"x" * 100, 0)
    assert file.pread(10, 4090) == (bytes(range(256)) * 32)[4090:4100]
    assert file.pread(10000, 4090) == (bytes(range(256)) * 32)[4090:]
    assert file.pread(10, 9000) == b""
    file.close()


def test_directories_names_and_space(tmp_path: Path) -> None:
    disk = PosixDisk()
    path = str(tmp_path / "a" / "b")
    disk.make_directories(path)
    disk.make_directories(path)
    disk.open(path + "/x", create=True).close()
    disk.rename(path + "/x", path + "/y")
    disk.sync_directory(path)
    assert disk.list(path) == ["y"]
    disk.unlink(path + "/y")
    assert not disk.exists(path + "/y")
    assert disk.space(path).total > disk.space(path).free > 0


@pytest.mark.rule("B11")
def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    disk = PosixDisk()
    lock = disk.lock(str(tmp_path / "lock"))
    with pytest.raises(BlockingIOError):
        disk.lock(str(tmp_path / "lock"))
    lock.release()
    lock.release()
    disk.lock(str(tmp_path / "lock")).release()


@pytest.mark.rule("P2")
async def test_jobs_run_in_order_elsewhere_and_report_on_the_loop() -> None:
    worker = ThreadWorker("w")
    reports: list[tuple[object, object]] = []
    loop_thread = threading.get_ident()
    for i in range(100):
        worker.submit(
            lambda i=i: (i, threading.get_ident()),  # type: ignore[misc]
            lambda result, error: reports.append((result, threading.get_ident())),
        )
    assert not reports, "a result came inside submit"
    assert await worker.call(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await worker.call(lambda: 1 // 0)
    assert [result[0] for result, _ in reports] == list(range(100))  # type: ignore[index]
    assert {thread for _, thread in reports} == {loop_thread}
    assert loop_thread not in {result[1] for result, _ in reports}  # type: ignore[index]
    worker.close()
    worker.close()
    with pytest.raises(RuntimeError):
        worker.submit(lambda: 1, lambda result, error: None)


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.got = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        if not self.got.done():
            self.got.set_result(data)
        if data == b"ping":
            self.transport.write(b"pong")  # type: ignore[attr-defined]


def test_tcp_on_the_loop_of_run() -> None:
    async def main() -> None:
        net = real.system_seams().net
        listener = await net.listen(Address("127.0.0.1", 0), Echo)
        assert listener.address.port > 0
        caller = await net.connect(listener.address, Echo, timeout_s=5)
        caller.transport.write(b"ping")  # type: ignore[attr-defined]
        assert await caller.got == b"pong"
        caller.transport.close()
        listener.close()
        with pytest.raises(OSError):
            await net.connect(listener.address, Echo, timeout_s=5)

    real.run(main())


def test_clock_and_chance() -> None:
    clock = real.SystemClock()
    assert clock.monotonic() <= clock.monotonic()
    assert clock.wall_ms() > 1_700_000_000_000
    assert 0 <= real.SystemRng().random() < 1
