"""``bk stream list``, ``show``, ``explain``."""

from __future__ import annotations

from pathlib import Path

from tests.segments.commands.helpers import Streams


def test_list_by_prefix(tmp_path: Path) -> None:
    """SEG-111 streams are listed by prefix."""
    streams = Streams(tmp_path)
    streams.create("eu/orders")
    assert streams.run("list", "us/") == "there is no stream whose name begins with 'us/'\n"
    streams.filled("us/orders", segments=1)
    assert [row["stream"] for row in streams.json("list")] == ["eu/orders", "us/orders"]
    assert streams.json("list", "us")[0]["records"] == 3
    assert "us/orders" in streams.run("list") and "eu" not in streams.run("list", "us")


def test_show(tmp_path: Path) -> None:
    """SEG-111 a stream is shown with its settings, segments and holds."""
    streams = Streams(tmp_path)
    streams.filled(segments=2)
    streams.run("hold", "add", "orders", "audit", "--from", "2:0:0", "--note", "case 7")
    found = streams.json("show", "orders")
    assert [row["records"] for row in found["segments"]] == [3, 3] and found["last"] == "2:0:2"
    assert found["holds"][0]["note"] == "case 7" and found["writer"] is None and not found["sealed"]
    text = streams.run("show", "orders")
    assert text.startswith("orders: nobody writes; it begins at earliest; id ")
    for word in ("roll.max_bytes", "audit"):
        assert word in text
    assert "there is no stream named others" in streams.run("show", "others", status=1)


def test_records_are_those_that_readers_see_and_others_are_named(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.filled(segments=3)
    assert "truncated" not in streams.run("list") + streams.run("show", "orders")
    streams.run("truncate", "orders", "--before", "2:0:1", "--yes", "--keep-ledgers")
    assert streams.run("count", "orders") == "5\n"
    (row,) = streams.json("list")
    found = streams.json("show", "orders")
    assert (row["records"], row["truncated"]) == (found["records"], found["truncated"]) == (5, 4)
    assert [(each["records"], each["truncated"]) for each in found["segments"]] == [(3, 3), (3, 1), (3, 0)]
    assert "truncated" in streams.run("list") and "truncated" in streams.run("show", "orders")
    streams.run("purge", "orders")
    (row,) = streams.json("list")
    assert (row["records"], row["truncated"]) == (5, 1)


def test_explain(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.filled(settings=("retention.max_records=4",))
    streams.run("hold", "add", "orders", "audit")
    found = streams.json("explain", "orders")
    assert [segment["goes"] for segment in found["segments"]] == [False, False, False]
    assert [reason["why"] for reason in found["segments"][0]["reasons"]] == ["hold"]
    assert [reason["why"] for reason in found["segments"][2]["reasons"]] == ["newest", "hold", "records"]
    assert "hold audit covers it" in " ".join(streams.run("explain", "orders").split())
    streams.run("hold", "release", "orders", "audit")
    assert [segment["goes"] for segment in streams.json("explain", "orders")["segments"]] == [True, False, False]


def test_where_no_cluster_is(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    assert "Error: " in streams.run("list", status=1)
    assert not (tmp_path / "bk").exists()
