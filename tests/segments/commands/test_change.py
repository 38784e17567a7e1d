"""``bk stream``'s verbs that change a stream: each says what it did, asks before it destroys, and has a dry run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.segments.commands.helpers import Streams


def test_create_and_configure(tmp_path: Path) -> None:
    """SEG-114 settings are changed by name; what cannot be is refused, and nothing changes."""
    streams = Streams(tmp_path)
    streams.create("eu/orders", "retention.max_age_s=60", "compression=lz4")
    settings = streams.json("show", "eu/orders")["settings"]
    assert settings["compression"] == "lz4" and settings["retention"]["max_age_s"] == 60
    assert "there is a stream named eu/orders already" in streams.run("create", "eu/orders", status=1)
    streams.run("create", "eu/orders", "--exist-ok")
    assert streams.run("configure", "eu/orders", "--set", "retention.max_age_s=none") == (
        "changed in eu/orders: retention.max_age_s\n"
    )
    assert streams.json("show", "eu/orders")["settings"]["retention"]["max_age_s"] is None
    for wrong in ("compression=brotli", "roll.max_ages=3", "ensemble=0"):
        assert "Error: " in streams.run("configure", "eu/orders", "--set", wrong, status=1)
        assert "Error: " in streams.run("create", "other", "--set", wrong, status=1)
    refused = streams.run("create", "other", "--set", "unknown=1", status=1)
    assert refused.startswith("Error: there is no setting unknown; known are ack_quorum, compression, ")
    assert "is not NAME=VALUE" in streams.run("configure", "eu/orders", "--set", "compression", status=2)
    assert "which settings?" in streams.run("configure", "eu/orders", status=2)


@pytest.mark.parametrize("name", ["a b", "", "a//b", ".hidden", "a/../b", "x" * 600])
def test_names_that_cannot_be(tmp_path: Path, name: str) -> None:
    """SEG-25 a name that cannot be is refused in one line."""
    output = Streams(tmp_path).run("create", name, status=1)
    assert output.startswith("Error: ") and len(output.splitlines()) == 1


def test_rename(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.filled(segments=1)
    assert streams.run("rename", "orders", "sales") == "orders has the name sales now\n"
    assert "there is no stream" in streams.run("rename", "orders", "again", status=1)
    assert streams.json("show", "sales")["records"] == 3


def test_delete_asks_and_has_a_dry_run(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.filled(segments=2)
    assert streams.run("delete", "orders", "--dry-run").startswith("would be deleted: orders with 2 segments and ")
    assert "Continue?" in streams.run("delete", "orders", data="n\n", status=1)
    streams.run("hold", "add", "orders", "audit")
    assert "release it first" in streams.run("delete", "orders", "--yes", status=1)
    assert streams.json("list")[0]["stream"] == "orders"
    assert "deleted: orders" in streams.run("delete", "orders", "--yes", "--force")
    assert streams.run("list") == "there are no streams\n"
    assert "there is no stream" in streams.run("delete", "orders", "--yes", status=1)


def test_truncate(tmp_path: Path) -> None:
    """SEG-111 truncation from the command line: dry run, question, holds, places that are not there."""
    streams = Streams(tmp_path)
    streams.filled()
    assert streams.run("truncate", "orders", "--before", "2:0:1", "--dry-run", status=0).startswith(
        "orders would begin at 2:0:1 instead of 1:0:0\n1 segment can be removed\n"
    )
    assert "Continue?" in streams.run("truncate", "orders", "--before", "2:0:1", data="n\n", status=1)
    assert streams.json("show", "orders")["start"] == "earliest"
    streams.run("hold", "add", "orders", "audit", "--from", "1:0:1")
    assert "hold audit covers" in streams.run("truncate", "orders", "--before", "2:0:1", "--yes", status=1)
    limited = streams.json("truncate", "orders", "--before", "2:0:1", "--yes", "--up-to-holds")
    assert (limited["start"], limited["held_by"]) == ("1:0:1", "audit")
    streams.run("hold", "release", "orders", "audit")
    done = streams.json("truncate", "orders", "--before", "2:0:1", "--yes")
    assert done["start"] == "2:0:1" and len(done["deleted_ledgers"]) == 1
    assert "begins at 2:0:1 already" in streams.run("truncate", "orders", "--before", "earliest")
    assert "is no position in stream orders" in streams.run(
        "truncate", "orders", "--before", "9:0:0", "--yes", status=1
    )
    assert "names no position in a stream: give" in streams.run("truncate", "orders", "--before", "soon", status=2)
    beyond = streams.run("truncate", "orders", "--before", "seq:99999", "--yes", status=1)
    assert "has no record number 99999 yet: the next one will be number 9" in beyond
    assert streams.run("read", "orders", "--count", "1"), "what was not meant hides nothing"


def test_truncate_can_leave_the_ledgers_to_purge(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.filled()
    output = streams.run("truncate", "orders", "--before", "3:0:0", "--yes", "--keep-ledgers")
    assert output == "orders begins at 3:0:0 instead of 1:0:0\n2 segments can be removed\n"
    assert "would be removed: segment 1" in streams.run("purge", "orders", "--dry-run")
    assert streams.run("purge", "orders").count("removed: segment") == 2
    assert streams.run("purge", "orders") == "nothing to remove\n"
    assert streams.json("purge", "orders")["deleted_ledgers"] == []


def test_purge_follows_the_policy(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.filled(settings=("retention.max_records=3",))
    assert "3 records are newer, and the limit is 3" in streams.run("purge", "orders", "--dry-run")
    assert len(streams.json("purge", "orders")["deleted_ledgers"]) == 2
    assert [segment["segment"] for segment in streams.json("show", "orders")["segments"]] == [3]


def test_roll_and_seal_ask_before_they_take_over(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.filled(segments=1)
    for verb in ("roll", "seal"):
        assert "is fenced" in streams.run(verb, "orders", data="n\n", status=1)
    assert streams.run("roll", "orders", "--yes") == "segment 1 is completed, with 3 records\n"
    assert streams.run("seal", "orders", "--yes").startswith("orders is sealed; its last record is at 1:")
    assert streams.json("seal", "orders", "--yes")["last"].startswith("1:")
    assert "sealed" in streams.run("append", "orders", data="x\n", status=1)
    streams.create("empty")
    assert streams.run("roll", "empty", "--yes") == "empty has no records\n"
    assert streams.run("seal", "empty", "--yes") == "empty is sealed; it is empty\n"
