from __future__ import annotations

import asyncio
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import spark_wal
from segments import BatchKey, connect
from spark_wal.copy_command import checkpoint
from tests.segments.commands.helpers import Streams
from tests.spark_wal.checkpoints.samples import ROOT


def run(*arguments: str) -> Result:
    return CliRunner().invoke(checkpoint, list(arguments))


def told(*arguments: str, status: int = 0) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == status, result.output
    return json.loads(result.output)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Two checkpoints in one directory."""
    for name in ("hdfs", "rocksdb-changelog-ids"):
        with zipfile.ZipFile(ROOT / f"{name}.zip") as archive:
            archive.extractall(tmp_path / "etl" / name)
    return tmp_path / "etl"


def test_list_names_each_query_and_its_last_batch(made: Path) -> None:
    rows = told("list", str(made))
    assert isinstance(rows, list)
    assert [row["location"].rpartition("/")[2] for row in rows] == ["hdfs", "rocksdb-changelog-ids"]
    assert rows[0]["query"] == "5297b900-ebbf-4bde-bcb6-f68442b18f52"
    assert (rows[0]["last_offsets"], rows[0]["last_commit"], rows[0]["operators"]) == (8, 8, ["stateStoreSave"])
    assert rows[0]["state_bytes"] > 2000 and rows[0]["written_by"]
    assert "5297b900" in run("list", str(made)).output
    assert "no checkpoints" in run("list", str(made / "hdfs" / "state")).output


def test_show_tells_offsets_operators_and_versions(made: Path) -> None:
    shown = told("show", str(made / "rocksdb-changelog-ids"))
    assert isinstance(shown, dict)
    assert shown["state_format"] == 2 and shown["next_batch"] == 9
    assert shown["batches"][8]["sources"] == {"0": '{"logOffset":8}'} and shown["batches"][8]["committed"]
    assert shown["operators"] == [
        {"operator": 0, "name": "stateStoreSave", "stores": [{"name": "default", "partitions": 2}]}
    ]
    assert shown["state"][0]["versions"][-1]["unique_id"] == "281957e6-69b8-4254-af39-7d5e71acd87d"
    assert shown["schemas"] == ["state/0/0/_metadata/schema"]
    words = run("show", str(made / "hdfs")).output
    for word in ("next: 9", '{"logOffset":8}', "stateStoreSave", "1 to 9"):
        assert word in words


def test_fsck_ends_with_1_if_something_is_damaged(made: Path) -> None:
    place = made / "hdfs"
    assert told("fsck", str(place))["whole"] is True
    snapshot = place / "state/0/0/8.snapshot"
    snapshot.write_bytes(snapshot.read_bytes()[:-1])
    found = told("fsck", str(place), status=1)
    assert isinstance(found, dict)
    assert found["findings"][0]["file"] == "state/0/0/8.snapshot" and not found["can_start"]
    words = run("fsck", str(place)).output
    assert "damaged: state/0/0/8.snapshot" in words and "batches 0 to 6" in words


def test_diff_names_the_batches_that_differ_and_ends_with_1(made: Path) -> None:
    with zipfile.ZipFile(ROOT / "rocksdb-changelog.zip") as archive:
        archive.extractall(made / "other")
    same = told("diff", str(made / "rocksdb-changelog-ids"), str(made / "other"))
    assert same["same"] and same["compared"] == list(range(9)) and same["state_not_compared"] == []
    assert "batches 0 to 8: the same" in run("diff", str(made / "hdfs"), str(made / "hdfs")).output
    offsets = made / "other" / "offsets" / "8"
    offsets.write_text(offsets.read_text().replace('{"logOffset":8}', '{"logOffset":7}'))
    found = told("diff", str(made / "rocksdb-changelog-ids"), str(made / "other"), status=1)
    assert found["batches"] == [
        {"batch": 8, "differences": ['source 0 ends at {"logOffset":8} and at {"logOffset":7}']}
    ]
    words = run("diff", str(made / "rocksdb-changelog-ids"), str(made / "other")).output
    assert "of 9 batches 1 differs" in words


def test_what_is_at_a_gateway_is_shown_like_what_is_in_a_directory(made: Path, tmp_path: Path) -> None:
    with spark_wal.checkpoint_service(f"file://{tmp_path}/place", listen="127.0.0.1:0") as wal:
        assert run("copy", str(made / "hdfs"), wal.location("etl/hdfs")).exit_code == 0
        here, there = told("show", str(made / "hdfs")), told("show", wal.location("etl/hdfs"))
        assert isinstance(here, dict) and isinstance(there, dict)
        assert {**there, "location": ""} == {**here, "location": ""}
        root = wal.location("etl").rpartition("/")[0]
        (row,) = told("list", f"{root}/")
        assert row["location"] == wal.location("etl/hdfs") and row["written_by"]
        assert told("fsck", wal.location("etl/hdfs"))["can_go_back_to"] == list(range(9))


def test_the_page_s_commands_run_as_they_are_printed(made: Path, tmp_path: Path) -> None:
    page = (ROOT.parents[2] / "docs" / "spark.md").read_text()
    blocks = re.findall(r"^```\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    found = [block for block in blocks if "bk checkpoint fsck" in block or "bk checkpoint rollback" in block]
    block = "".join(found).replace("--yes", "--yes --quiet-s 0")
    assert len(found) == 2
    with spark_wal.checkpoint_service(f"file://{tmp_path}/place", listen="127.0.0.1:0") as wal:
        at = wal.location("etl").removesuffix("/etl")
        for name in ("flights", "flights-copy"):
            assert run("copy", str(made / "hdfs"), f"{at}/etl/{name}").exit_code == 0
        for line in block.replace("webhdfs://gw.example.org:9870", at).splitlines():
            result = run(*line.removeprefix("bk checkpoint ").split())
            assert result.exit_code == 0 and ("etl/flights" in result.output or "the same" in result.output), line


def test_rollback_says_what_it_will_do_asks_and_goes_back_at_once(made: Path, tmp_path: Path) -> None:
    with spark_wal.checkpoint_service(f"file://{tmp_path}/place", listen="127.0.0.1:0") as wal:
        there = wal.location("etl/hdfs")
        assert run("copy", str(made / "hdfs"), there).exit_code == 0
        sink = tmp_path / "out" / "_spark_metadata"
        sink.mkdir(parents=True)
        (sink / "7").write_text("v1")
        before = told("show", there)
        options = ("rollback", there, "4", "--sink", str(tmp_path / "out"), "--quiet-s", "0")
        planned = told(*options, "--dry-run")
        assert planned["repeated"] == [5, 6, 7, 8] and not planned["done"]
        assert planned["sinks_with_later_batches"] == [{"sink": f"file://{tmp_path}/out", "last": 7}]
        words = run(*options, "--dry-run").output
        assert "batches 5 to 8 will be computed again" in words and "has batch 7 of this query" in words
        assert run(*options).exit_code == 1, "nobody said yes"
        assert "stop the query" in run("rollback", there, "4", "--yes").output
        assert told("show", there) == before
        done = run(*options, "--yes")
        assert done.exit_code == 0 and "the query goes on with batch 5" in done.output
        assert told("fsck", there)["next_batch"] == 5
        assert "nothing is behind it" in run(*options, "--yes").output


def test_rollback_lists_streams_that_have_later_batches(made: Path, tmp_path: Path) -> None:
    streams = Streams(tmp_path / "streams")
    streams.create()
    query = told("show", str(made / "hdfs"))["query"]

    async def publish() -> None:
        async with connect(streams.uri) as namespace:
            stream = await namespace.open("orders")
            publisher = await stream.publisher()
            await publisher.publish(BatchKey("nightly", query, 6), [await stream.stage("s").finish()])

    asyncio.run(publish())
    with spark_wal.checkpoint_service(f"file://{tmp_path}/place", listen="127.0.0.1:0") as wal:
        there = wal.location("etl/hdfs")
        assert run("copy", str(made / "hdfs"), there).exit_code == 0
        planned = told("rollback", there, "4", "--metadata", streams.uri, "--dry-run")
        assert planned["sinks_with_later_batches"] == [{"sink": "stream orders (application nightly)", "last": 6}]
        assert told("rollback", there, "6", "--metadata", streams.uri, "--dry-run")["sinks_with_later_batches"] == []


def test_rollback_is_for_gateways_and_a_sink_must_be_one(made: Path, tmp_path: Path) -> None:
    here = run("rollback", str(made / "hdfs"), "4", "--yes")
    assert here.exit_code == 1 and "only there all files go in one step" in here.output
    with spark_wal.checkpoint_service(f"file://{tmp_path}/place", listen="127.0.0.1:0") as wal:
        assert run("copy", str(made / "hdfs"), wal.location("a")).exit_code == 0
        result = run("rollback", wal.location("a"), "4", "--sink", str(made / "hdfs"), "--yes")
        assert "no output of a file sink" in result.output
        assert "cannot go back to batch 9" in run("rollback", wal.location("a"), "9", "--yes").output


def test_what_is_no_checkpoint_is_said(tmp_path: Path) -> None:
    for verb in ("show", "fsck"):
        result = run(verb, str(tmp_path))
        assert result.exit_code == 1 and "holds no checkpoint" in result.output
