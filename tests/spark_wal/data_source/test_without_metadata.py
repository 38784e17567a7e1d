"""Tasks read what was planned while the metadata store is away; what it alone can tell waits until it is back."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as t

from bookkeeper.launchers.zookeeper import ZooKeeperServer
from spark_wal.data_source import connections
from spark_wal.data_source.options import ReadSettings
from spark_wal.data_source.tables import LedgerRows, StreamsRows
from tests.integration.processes import Bookies, bookies, free_port
from tests.spark_wal.data_source.clusters import NUMBERS, read_all, written

pytestmark = [pytest.mark.integration, pytest.mark.zookeeper]

ENTRIES = t.StructType([t.StructField("entry_id", t.LongType()), t.StructField("payload", t.BinaryType())])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path / "zookeeper") as server:
        yield server


@pytest.fixture
def cluster(tmp_path: Path, server: ZooKeeperServer) -> Iterator[Bookies]:
    with bookies(tmp_path, metadata=server.uri) as cluster:
        yield cluster


def planned(source: Any) -> tuple[Any, list[Any]]:
    """The source and its partitions, as tasks get them."""
    return pickle.loads(pickle.dumps((source, list(source.partitions()))))  # type: ignore[no-any-return]


def test_tasks_read_without_the_store_and_survive_a_bookie_that_moved_once_it_is_back(
    server: ZooKeeperServer, cluster: Bookies, tmp_path: Path
) -> None:
    namespace = connections.namespace(cluster.uri)
    written(namespace, "orders", [3, 4], [5], [6], rest=[2, 2])
    (tmp_path / "password").write_bytes(b"secret words")
    ledgers = connections.client(cluster.uri)
    with ledgers.create_ledger(password=b"secret words", custom_metadata={"note": b"of its maker"}) as ledger:
        for number in range(7):
            ledger.append(b"%d" % number)
    stream = planned(StreamsRows(ReadSettings(metadata=cluster.uri, stream="orders", retry_s=0.0), NUMBERS))
    file = str(tmp_path / "password")
    options = ReadSettings(metadata=cluster.uri, ledger=ledger.id, password_file=file, retry_s=0.0)
    entries = planned(LedgerRows(options, ENTRIES))
    for secret in (b"secret words", b"of its maker"):
        assert secret not in pickle.dumps(entries), "it travels"

    server.stop()
    assert read_all(*stream) == list(range(22))
    source, parts = entries
    assert [row for part in parts for batch in source.read(part) for row in batch["payload"].to_pylist()] == [
        b"%d" % number for number in range(7)
    ]

    server.start()
    for name, bookie in list(cluster.each.items()):
        bookie.kill()
        cluster.add(name, "--listen", f"127.0.0.1:{free_port()}")
    cluster.await_serving()
    patient = StreamsRows(ReadSettings(metadata=cluster.uri, stream="orders", retry_s=120.0), NUMBERS)
    assert read_all(patient, stream[1]) == list(range(22))
