"""A query from stream to stream goes on when its cluster's metadata were away for a while."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bookkeeper.launchers.zookeeper import ZooKeeperServer
from segments import StoredRecord, sync
from tests.integration.processes import bookies
from tests.spark_wal.processes import ROOT, JobProcess, until

pytest.importorskip("pyspark")
pytest.importorskip("bookkeeper.launchers.java")

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.zookeeper, pytest.mark.timeout(400)]

RECORDS, ROWS = 24, 4
LARGE = 80_000
"""Bytes of a record: a task's rows do not fit into its message, so that it makes a ledger."""

Outage = Callable[[], Callable[[], object]]
"""Takes the metadata away; what it returns brings them back."""


@pytest.fixture(params=["ZooKeeper stands still", "SQLite is locked"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Outage]]:
    """A cluster's address, and what takes its metadata away."""
    with ExitStack() as stack:
        if request.param == "SQLite is locked":
            yield stack.enter_context(bookies(tmp_path)).uri, lambda: _locked(tmp_path / "metadata.db")
            return
        server = stack.enter_context(ZooKeeperServer(tmp_path / "zk"))
        uri = stack.enter_context(bookies(tmp_path, metadata=server.uri)).uri

        yield uri, lambda: _stopped(server)


def _stopped(server: ZooKeeperServer) -> Callable[[], object]:
    server.pause()
    return server.resume


def _locked(path: Path) -> Callable[[], object]:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    return other.close


def test_metadata_are_away_under_a_query_and_every_row_is_there_once(
    cluster: tuple[str, Outage], tmp_path: Path
) -> None:
    uri, outage = cluster
    with sync.connect(uri) as namespace, namespace.create("in").writer() as writer:
        for number in range(RECORDS):
            writer.append((b"%d" % number).ljust(LARGE))
    checkpoint = tmp_path / "checkpoint"
    fields = {"metadata": uri, "source": "in", "sink": "out", "checkpoint": str(checkpoint), "rows": ROWS}
    job = JobProcess(Path(__file__).with_name("copy_job.py"), fields, tmp_path / "job", extra={"PYTHONPATH": str(ROOT)})
    try:
        until(lambda: (checkpoint / "commits" / "1").exists())
        back = outage()
        log = tmp_path / "job.log"
        until(lambda: "asked again in" in log.read_text() or "waits:" in log.read_text())
        back()
        assert job.result() == {"batches": RECORDS // ROWS}
    finally:
        job.kill()
    with sync.connect(uri) as namespace, namespace.open("out").read() as reader:
        numbers = [int(each.value) for each in reader if isinstance(each, StoredRecord)]
    assert sorted(numbers) == list(range(RECORDS))
