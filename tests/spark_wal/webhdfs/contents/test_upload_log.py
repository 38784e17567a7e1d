from __future__ import annotations

import logging
from pathlib import Path
from random import Random

import pytest

from bookkeeper.ids import Address
from bookkeeper.real import system_seams
from bookkeeper.real.disk import PosixDisk
from bookkeeper.testing import SimDisk
from spark_wal.webhdfs.contents.upload_log import CutUpload, UploadLog, cut
from spark_wal.webhdfs.service import ServingConfig, WebHdfsService
from tests.spark_wal.webhdfs.virtual import LoopClock, in_virtual_time
from tests.spark_wal.webhdfs.wire import connected


class Log:
    """A file and who writes it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self) -> UploadLog:
        return UploadLog(str(self.path), PosixDisk(), LoopClock())

    def cut(self) -> list[CutUpload]:
        return cut(self.path.read_bytes().splitlines(keepends=True))


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "uploads")


@in_virtual_time
async def in_order(log: Log) -> None:
    writer = log.open()
    assert log.cut() == []
    writer.on_request("CREATE", "/a")
    assert log.cut() == [CutUpload("CREATE", "/a", begun=False)]
    first = writer.begun("CREATE", "/a")
    second = writer.begun("APPEND", "/b")
    assert log.cut() == [CutUpload("CREATE", "/a", begun=True), CutUpload("APPEND", "/b", begun=True)]
    writer.answered(first, 201)
    assert log.cut() == [CutUpload("APPEND", "/b", begun=True)]
    writer.answered(second, 0)
    assert log.cut() == []
    writer.begun("CREATE", "/c")
    writer.close()
    log.open().close()
    assert log.cut() == [], "another gateway: what was open is over"


def test_what_is_open_is_told_step_by_step(log: Log) -> None:
    in_order(log)


@in_virtual_time
async def after_a_torn_line(log: Log) -> None:
    writer = log.open()
    writer.begun("CREATE", "/a")
    writer.begun("CREATE", "/b")
    writer.close()
    whole = log.path.read_bytes()
    log.path.write_bytes(whole[:-5])
    assert log.cut() == [CutUpload("CREATE", "/a", begun=True)]
    again = log.open()
    again.begun("CREATE", "/d")
    again.close()
    assert log.cut() == [CutUpload("CREATE", "/d", begun=True)]


def test_a_line_that_was_cut_short_spoils_no_other(log: Log) -> None:
    after_a_torn_line(log)


@in_virtual_time
async def test_what_cannot_be_written_is_said_once_and_fails_nobody(caplog: pytest.LogCaptureFixture) -> None:
    disk = SimDisk(Random(1))
    disk.make_directories("/d")
    log = UploadLog("/d/uploads", disk, LoopClock())
    disk.capacity = 0
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            log.answered(log.begun("CREATE", f"/{number}"), 201)
    assert len(caplog.records) == 1


async def test_uploads_are_noted_when_they_begin_and_when_their_answer_was_sent(tmp_path: Path) -> None:
    log = Log(tmp_path / "uploads")
    config = ServingConfig(
        uri=f"file://{tmp_path}/place",
        listen=Address("127.0.0.1", 0),
        advertise="gateway:1",
        upload_log=str(log.path),
    )
    step = "/webhdfs/v1/a%20b?op=CREATE"
    async with WebHdfsService(config, system_seams()) as service:
        async with connected(service.address) as wire:
            assert (await wire.request("PUT", step)).status == 307
            assert log.cut() == [CutUpload("CREATE", "/a b", begun=False)]
            wire.send_head("PUT", f"{step}&namenoderpcaddress=x", (), None, chunked=True)
            wire.send_chunk(b"data")
            await wire.drain()
            async with connected(service.address) as other:
                while not any(upload.begun for upload in log.cut()):
                    await other.request("GET", "/health")
                assert log.cut() == [CutUpload("CREATE", "/a b", begun=True)]
                wire.send_chunk(b"")
                assert (await wire.answer()).status == 201
                await other.request("GET", "/health")
                assert log.cut() == []
                assert (await other.request("PUT", f"{step}&namenoderpcaddress=x", body=b"")).status == 403
                assert (await other.request("GET", "/webhdfs/v1/a%20b?op=GETFILESTATUS")).status == 200
            wire.send_head("PUT", f"{step}&namenoderpcaddress=x", (), None, chunked=True)
            wire.send_chunk(b"data")
        async with connected(service.address) as wire:
            while log.path.read_bytes().count(b"begun") < 3 or log.cut():
                await wire.request("GET", "/health")
    lines = log.path.read_text().splitlines()
    assert [line.split('"')[3] for line in lines] == ["started", "asked", *["begun", "answered"] * 3]
    assert [line.partition('"status": ')[2] for line in lines if "answered" in line] == ["201}", "403}", "0}"]
