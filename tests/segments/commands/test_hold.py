"""``bk stream hold``."""

from __future__ import annotations

from pathlib import Path

from tests.segments.commands.helpers import Streams


def test_add_list_release(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.filled(segments=2)
    assert streams.run("hold", "list", "orders") == "orders has no holds\n"
    added = streams.run("hold", "add", "orders", "audit", "--from", "1:0:1", "--to", "2:0:0", "--note", "case 7")
    assert added == "hold audit (case 7) covers orders from 1:0:1 up to 2:0:0\n"
    assert "until" in streams.run("hold", "add", "orders", "query", "--for", "2")
    found = {row["hold"]: row for row in streams.json("hold", "list", "orders")}
    assert found["audit"]["from"] == "1:0:1" and found["query"]["active"] and found["query"]["to"] == "latest"
    assert "case 7" in streams.run("hold", "list", "orders")
    assert streams.run("hold", "release", "orders", "audit") == "hold audit of orders is released\n"
    assert "the stream has no hold named audit" in streams.run("hold", "release", "orders", "audit", status=1)


def test_what_cannot_be_held(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.filled(segments=2)
    streams.run("truncate", "orders", "--before", "2:0:0", "--yes")
    assert "the stream at 2:0:0" in streams.run("hold", "add", "orders", "late", "--from", "1:0:1", status=1)
    assert "covers nothing" in streams.run("hold", "add", "orders", "x", "--from", "2:0:1", "--to", "2:0:1", status=1)
    assert "cannot be named" in streams.run("hold", "add", "orders", "a b", status=1)


def test_a_hold_that_would_end_behind_all_dates_is_refused(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.create()
    for hours in ("1e300", "inf", "nan"):
        streams.run("hold", "add", "--for", hours, "orders", "audit", status=2)
