"""Real clients of WebHDFS against the gateway: fsspec, pandas through it, HdfsCLI."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import spark_wal
from spark_wal.service import CheckpointService

fsspec = pytest.importorskip("fsspec")
hdfs = pytest.importorskip("hdfs")


@pytest.fixture
def wal() -> Iterator[CheckpointService]:
    with spark_wal.checkpoint_service(f"mem:{uuid4()}", listen="127.0.0.1:0") as service:
        yield service


@pytest.fixture
def files(wal: CheckpointService) -> Any:
    host, port = wal.address.split(":")
    return fsspec.filesystem("webhdfs", host=host, port=int(port), user="alice", skip_instance_cache=True)


@pytest.fixture
def client(wal: CheckpointService) -> Iterator[Any]:
    client = hdfs.InsecureClient(wal.url, user="alice")
    yield client
    client._session.close()


def test_fsspec_writes_reads_and_lists(files: Any) -> None:
    files.makedirs("/data/a", exist_ok=True)
    files.pipe("/data/a/small", b"hello")
    files.pipe("/data/a/large", bytes(range(256)) * 4000)
    assert files.cat("/data/a/small") == b"hello"
    assert files.cat_file("/data/a/large", start=256 * 3999) == bytes(range(256))
    assert sorted(files.ls("/data/a", detail=False)) == ["/data/a/large", "/data/a/small"]
    assert files.find("/data") == ["/data/a/large", "/data/a/small"]
    assert files.info("/data/a/small")["length"] == 5
    assert files.du("/data") == 5 + 256 * 4000
    assert files.ukey("/data/a/small")["algorithm"].startswith("MD5-of-0MD5")
    assert files.content_summary("/data")["fileCount"] == 2
    assert files.home_directory() == "/user/alice"


def test_fsspec_writes_in_blocks_moves_copies_and_removes(files: Any, tmp_path: Path) -> None:
    with files.open("/log", "wb", block_size=5 * 2**20) as out:
        for _ in range(3):
            out.write(bytes(3 * 2**20))
    assert files.size("/log") == 9 * 2**20
    files.mv("/log", "/log2")
    files.cp_file("/log2", "/log3")
    assert files.exists("/log3")
    assert not files.exists("/log")
    files.chmod("/log3", "600")
    files.chown("/log3", owner="bob")
    files.set_replication("/log3", 2)
    files.get("/log3", str(tmp_path / "local"))
    assert (tmp_path / "local").stat().st_size == 9 * 2**20
    files.rm("/log3")
    assert files.glob("/log*") == ["/log2"]
    with pytest.raises(FileNotFoundError):
        files.info("/log3")


def test_pandas_reads_and_writes_through_it(wal: CheckpointService) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": range(1000)})
    frame.to_parquet(f"webhdfs://{wal.address}/frame.parquet")
    assert pandas.read_parquet(f"webhdfs://{wal.address}/frame.parquet").equals(frame)


def test_pyarrow_reads_a_dataset_through_fsspec(files: Any) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset")
    fs = pytest.importorskip("pyarrow.fs")
    arrow = fs.PyFileSystem(fs.FSSpecHandler(files))
    table = pyarrow.table({"x": list(range(100))})
    dataset.write_dataset(table, "/set", format="parquet", filesystem=arrow)
    assert dataset.dataset("/set", filesystem=arrow).to_table().equals(table)


def test_hdfscli_writes_reads_and_looks(client: Any) -> None:
    client.write("/h/a", data=b"one\n")
    client.write("/h/a", data=b"two\n", append=True)
    client.write("/h/b", data=iter([b"x" * 100_000, b"y" * 100_000]), overwrite=True)
    with client.read("/h/a") as reader:
        assert reader.read() == b"one\ntwo\n"
    with client.read("/h/b", offset=99_999, length=2) as reader:
        assert reader.read() == b"xy"
    assert client.list("/h") == ["a", "b"]
    assert client.status("/h/b")["length"] == 200_000
    assert client.status("/none", strict=False) is None
    assert client.content("/h")["fileCount"] == 2
    assert client.checksum("/h/a")["length"] == 28
    with pytest.raises(hdfs.HdfsError, match="already exists"):
        client.write("/h/a", data=b"again")
    with pytest.raises(hdfs.HdfsError, match="not exist"):
        client.list("/none")


def test_hdfscli_changes(client: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "f").write_bytes(b"f" * 1000)
    client.upload("/up", str(tmp_path / "in"))
    client.rename("/up", "/moved")
    client.set_permission("/moved/f", "600")
    client.set_owner("/moved/f", owner="bob", group="staff")
    client.set_times("/moved/f", modification_time=1_700_000_000_000)
    client.set_replication("/moved/f", 3)
    status = client.status("/moved/f")
    assert (status["permission"], status["owner"], status["group"]) == ("600", "bob", "staff")
    assert (status["modificationTime"], status["replication"]) == (1_700_000_000_000, 3)
    client.download("/moved", str(tmp_path / "out"))
    assert (tmp_path / "out" / "f").read_bytes() == b"f" * 1000
    assert [path for path, _, _ in client.walk("/moved")] == ["/moved"]
    assert client.makedirs("/moved/sub") is None
    assert not client.delete("/none")
    assert client.delete("/moved", recursive=True)
    assert client.list("/") == []


def test_hdfscli_streams(client: Any) -> None:
    with client.write("/s", encoding="utf-8") as writer:
        for number in range(1000):
            writer.write(f"{number}\n")
    with client.read("/s", encoding="utf-8", delimiter="\n") as lines:
        assert len([line for line in lines if line]) == 1000
    with client.read("/s") as reader:
        assert io.BytesIO(reader.read()).readline() == b"0\n"
