"""Spark itself goes on from a checkpoint that went back, or that was mended as ``fsck`` advises.

After each story the state has the counts and sums of an uninterrupted query over the same files. One session runs all.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spark_wal.checkpoint_copy.gateway_store import GatewayStore
from spark_wal.copy_command import checkpoint
from spark_wal.spark_access import GatewayAccess
from tests.spark_wal.processes import STATE, GatewayProcess, JobProcess, conf, until
from tests.spark_wal.rollback_job import KEYS

pytest.importorskip("pyspark")
pytest.importorskip("bookkeeper.launchers.java")

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(600)]

ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": f"{STATE}.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
STORES = {
    "hdfs": {
        "spark.sql.streaming.stateStore.providerClass": f"{STATE}.HDFSBackedStateStoreProvider",
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "1",
    },
    "rocksdb": {**ROCKSDB, "spark.sql.streaming.stateStore.checkpointFormatVersion": "1"},
    "rocksdb with ids": {**ROCKSDB, "spark.sql.streaming.stateStore.checkpointFormatVersion": "2"},
}
LINES = 10
YOUNG_S = 1_700_000_000


class Session:
    """A gateway and a Spark session beside it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.gateway = GatewayProcess(directory / "namespace")
        self.gateway.start()
        (directory / "told").mkdir()
        settings = {**conf(), "spark.sql.streaming.stateStore.minDeltasForSnapshot": "2"}
        settings["spark.sql.streaming.stateStore.maintenanceInterval"] = "200ms"
        fields = {"told": str(directory / "told"), "conf": settings}
        self.spark = JobProcess(Path(__file__).with_name("rollback_job.py"), fields, directory / "spark")
        self._runs = itertools.count()

    def run(self, query: Query, **job: Any) -> dict[str, Any]:
        number = next(self._runs)
        query.out = self.directory / "out" / str(number)
        told = {"location": query.location, "source": str(query.source), "out": str(query.out), "conf": query.conf}
        waiting = self.directory / "told" / f".{number}"
        waiting.write_text(json.dumps({**told, **job}))
        waiting.rename(self.directory / "told" / str(number))
        found: dict[str, Any] = self.spark.line()
        return found


class Query:
    """A query with files of its own."""

    def __init__(self, session: Session, name: str, store: str) -> None:
        self.session = session
        self.conf = STORES[store]
        self.location = session.gateway.location(name)
        self.source = session.directory / "sources" / name
        self.source.mkdir(parents=True)
        self.out = session.directory
        self.files = 0

    def add(self, count: int) -> None:
        """Add files, each a second younger: Spark reads them by age, and those of one millisecond in any order."""
        for number in range(self.files, self.files + count):
            lines = "\n".join(str(number * LINES + line) for line in range(LINES))
            (self.source / f".{number}").write_text(lines)
            os.utime(self.source / f".{number}", (YOUNG_S + number, YOUNG_S + number))
            (self.source / f".{number}").rename(self.source / f"{number:03}.txt")
        self.files += count

    def run(self, **job: Any) -> dict[str, Any]:
        return self.session.run(self, **job)

    def finish(self) -> int:
        """Run to the end. The last batch's number; its rows must be those of a query that was never interrupted."""
        result = self.run()
        assert "finished" in result, result
        values = range(self.files * LINES)
        wanted = [[k, len(v), sum(v)] for k in range(KEYS) if (v := [n for n in values if n % KEYS == k])]
        last = max(int(path.name) for path in self.out.iterdir())
        assert json.loads((self.out / str(last)).read_text()) == wanted
        return last

    def verb(self, verb: str, *arguments: str, status: int = 0) -> Any:
        result = CliRunner().invoke(checkpoint, [verb, self.location, *arguments, "--json"])
        assert result.exit_code == status, result.output
        return json.loads(result.output)

    def back(self, batch: int) -> Any:
        """Go back. It is refused as long as the session, whose query has ended, still takes snapshots of its state."""
        found: list[Any] = []

        def goes_back() -> bool:
            arguments = ["rollback", self.location, str(batch), "--yes", "--quiet-s", "2", "--json"]
            result = CliRunner().invoke(checkpoint, arguments)
            if result.exit_code == 0:
                found.append(json.loads(result.output))
            else:
                assert "stop the query" in result.output or "look again" in result.output, result.output
            return bool(found)

        until(goes_back)
        return found[0]

    def flip(self, path: str) -> None:
        store = GatewayStore(self.location, GatewayAccess())
        data = bytearray(b"".join(store.read(path)))
        data[len(data) // 2] ^= 0xFF
        store.write(path, lambda: [bytes(data)])
        store.close()

    def move_away(self, path: str) -> None:
        place = "/" + self.location.split("/", 3)[3]
        self.session.gateway.put(f"{place}/{path}", f"op=RENAME&destination=/damaged-{path.replace('/', '-')}")

    def newest(self, end: str) -> str:
        """The newest file of state with this end, in the first partition."""
        state = self.verb("show")["state"][0]["versions"]
        return str(max((each["version"], each["file"]) for each in state if each["file"].endswith(end))[1])


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    made = Session(tmp_path_factory.mktemp("rollback"))
    yield made
    made.spark.kill()
    made.gateway.kill()


@pytest.mark.parametrize("store", STORES)
def test_a_query_that_went_back_counts_each_row_once(session: Session, store: str) -> None:
    """The batch behind the rollback takes the files of several earlier ones, so that state that was left over would
    be wrong. The last run reads the state of the one before: that had it in memory, too, and Spark's manager keeps a
    file that is there already."""
    query = Query(session, f"back-{store.replace(' ', '-')}", store)
    query.add(6)
    assert query.finish() == 5
    assert query.verb("fsck")["can_go_back_to"] == [0, 1, 2, 3, 4, 5]
    assert query.back(2)["repeated"] == [3, 4, 5]
    assert query.verb("fsck")["next_batch"] == 3
    query.add(2)
    assert query.finish() >= 3
    query.add(1)
    assert query.finish() >= 4
    assert query.verb("fsck")["whole"]
    (row,) = [row for row in listed(session) if row["location"] == query.location]
    assert row["last_commit"] == query.verb("show")["next_batch"] - 1


def listed(session: Session) -> list[dict[str, Any]]:
    root = session.gateway.location("")
    result = CliRunner().invoke(checkpoint, ["list", root, "--json"])
    assert result.exit_code == 0, result.output
    rows: list[dict[str, Any]] = json.loads(result.output)
    return rows


@pytest.mark.parametrize("store", STORES)
def test_at_a_gateway_and_in_a_directory_a_query_has_the_same_batches(session: Session, store: str) -> None:
    name = store.replace(" ", "-")
    there, here = Query(session, f"there-{name}", store), Query(session, f"here-{name}", store)
    here.location = f"file://{session.directory}/here-{name}"
    for query in (there, here):
        query.add(3)
        assert query.finish() == 2
    found = there.verb("diff", here.location)
    assert found["same"] and found["compared"] == [0, 1, 2] and found["state_not_compared"] == []
    here.add(1)
    assert here.finish() == 3
    (only,) = there.verb("diff", here.location, status=1)["batches"]
    assert only["batch"] == 3 and "it is planned only in the second" in only["differences"]


@pytest.mark.parametrize("store", ["hdfs", "rocksdb with ids"])
def test_offsets_one_ahead_of_commits_are_whole_and_the_query_starts_after_a_rollback(
    session: Session, store: str
) -> None:
    query = Query(session, f"ahead-{store.replace(' ', '-')}", store)
    query.add(4)
    assert "as it was told" in query.run(fail_at=3)["failed"]
    found = query.verb("fsck")
    assert found["whole"] and found["can_start"]
    assert (found["next_batch"], found["is_planned"]) == (3, True)
    done = query.back(2)
    assert done["repeated"] == [] and "offsets/3" in done["removed"]
    assert query.finish() == 3
    query.add(1)
    assert "as it was told" in query.run(fail_at=4)["failed"]
    assert query.finish() == 4, "and without a rollback, too"


def test_a_damaged_snapshot_that_is_moved_away_leaves_the_query_whole(session: Session) -> None:
    query = Query(session, "snapshot", "hdfs")
    query.add(6)
    assert query.run(pause_s=0.5)["finished"] == 5
    query.flip(query.newest(".snapshot"))
    (finding,) = query.verb("fsck", status=1)["findings"]
    assert finding["file"] == query.newest(".snapshot") and "is rebuilt from" in finding["advice"]
    query.move_away(finding["file"])
    assert query.verb("fsck")["can_start"]
    query.add(1)
    assert query.finish() == 6


@pytest.mark.parametrize(("store", "end"), [("hdfs", ".delta"), ("rocksdb", ".changelog")])
def test_a_damaged_step_ends_the_query_and_after_the_rollback_that_is_advised_it_is_whole(
    session: Session, store: str, end: str
) -> None:
    query = Query(session, f"step-{store}", store)
    query.add(5)
    assert query.run()["finished"] == 4
    damaged = query.newest(end)
    query.flip(damaged)
    for whole in (f for p in query.verb("show")["state"] for f in p["versions"] if f["version"] == 5):
        if whole["file"].endswith((".snapshot", ".zip")):
            query.move_away(whole["file"])  # with it Spark would need no step
    found = query.verb("fsck", status=1)
    assert not found["can_start"]
    assert any(f["file"] == damaged and "go back to batch 3" in f["advice"] for f in found["findings"])
    query.add(1)
    assert "failed" in query.run()
    query.back(found["can_go_back_to"][-1])
    assert query.finish() >= 4
