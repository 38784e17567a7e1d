"""``bk stream cursor``."""

from __future__ import annotations

from pathlib import Path

from tests.segments.commands.helpers import Streams


def test_the_life_of_a_cursor(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.filled()
    assert streams.run("cursor", "list", "orders") == "orders has no cursors\n"
    assert streams.run("cursor", "set", "orders", "billing", "--to", "seq:4") == (
        "cursor billing of orders is new and at 2:0:1\n"
    )
    assert streams.run("cursor", "set", "orders", "billing", "--to", "seq:7", "--dry-run") == (
        "cursor billing of orders would be at 3:0:1\n"
    )
    assert streams.json("cursor", "list", "orders") == [
        {"cursor": "billing", "needs": "2:0:1", "owner": None, "records_left": 5}
    ]
    assert (
        streams.run("cursor", "set", "orders", "billing", "--to", "2:0:0") == "cursor billing of orders is at 2:0:0\n"
    )
    assert streams.run("read", "orders", "--from", "cursor:billing", "--count", "1") == "record 3\n"
    found = streams.json("cursor", "show", "orders", "billing")
    assert (found["seq_no"], found["records_left"], found["version"]) == (3, 6, 2)
    assert "6 records left" in streams.run("cursor", "show", "orders", "billing")
    versions = [(row["version"], row["needs"]) for row in streams.json("cursor", "history", "orders", "billing")]
    assert versions == [(2, "2:0:0"), (1, "2:0:1")]
    assert streams.run("cursor", "restore", "orders", "billing", "1") == "cursor billing of orders is at 2:0:1\n"
    told = streams.run("cursor", "restore", "orders", "billing", "9", status=1)
    assert "version 9 of the cursor is not in its history; there are: 1, 2, 3" in told
    assert "billing" in streams.run("show", "orders") and "billing" in streams.run("cursor", "list", "orders")


def test_a_cursor_keeps_segments_until_it_is_deleted(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.filled(settings=("retention.max_records=1",))
    streams.run("cursor", "set", "orders", "billing", "--to", "seq:4")
    assert [each["goes"] for each in streams.json("explain", "orders")["segments"]] == [True, False, False]
    assert "would be deleted" in streams.run("cursor", "delete", "orders", "billing", "--dry-run")
    assert "Continue?" in streams.run("cursor", "delete", "orders", "billing", data="n\n", status=1)
    assert "deleted: cursor billing" in streams.run("cursor", "delete", "orders", "billing", "--yes")
    assert "has no cursor named billing" in streams.run("cursor", "delete", "orders", "billing", "--yes", status=1)
    assert [each["goes"] for each in streams.json("explain", "orders")["segments"]] == [True, True, False]
