"""``bk stream append``, ``read``, ``tail``, ``count``."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from tests.segments.commands.helpers import Streams


def test_append_lines(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.create()
    assert streams.run("append", "orders", data="one\ntwo\nthree") == "3 records from 1:0:0 to 1:1:0, all durable\n"
    assert streams.run("append", "orders", data="") == "no records\n"
    file = tmp_path / "lines"
    file.write_bytes(b"four\n")
    assert streams.json("append", "orders", str(file))["records"] == 1
    assert "there is no stream" in streams.run("append", "others", data="x\n", status=1)


def test_append_as_a_producer_can_be_repeated(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.create()
    words = ("append", "--producer", "loader", "--seq", "0", "orders")
    first = streams.run(*words, data="one\ntwo\n")
    again = streams.run(*words, data="one\ntwo\n")
    assert again == first.replace(", all", ", 2 of them appended before, all")
    assert streams.json("show", "orders")["records"] == 2
    assert "--seq needs --producer" in streams.run("append", "--seq", "0", "orders", data="x\n", status=2)


def test_a_producer_sends_a_file_again_that_has_grown_or_is_long(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.create("orders", "producers.positions_each=2")
    words = ("append", "--producer", "loader", "--seq", "0", "orders")
    streams.run(*words, data="one\ntwo\n")
    assert "3 records from 1:" in streams.run(*words, data="one\ntwo\nthree\n")
    for number in range(4):
        streams.run("append", "--producer", "loader", "orders", data=f"more {number}\n")
    began = streams.run(*words, data="one\ntwo\nthree\nmore 0\nmore 1\nmore 2\nmore 3\n" + "x" * 600_000 + "\n")
    assert began.startswith("8 records up to "), began
    found = streams.run(*words, data="one\ntwo\n")  # long ago: nobody remembers where
    assert found == "2 records, all of them appended before, so long ago that the stream does not remember where\n"
    assert streams.json("show", "orders")["records"] == 8


def test_a_producers_batches_fit_into_a_small_limit(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.create("orders", "limits.record_bytes=1000")
    words = ("append", "--producer", "loader", "--seq", "0", "orders")
    assert streams.run(*words, data="x" * 400 + "\n" + ("y" * 99 + "\n") * 50).startswith("51 records")
    said = streams.run(*words[:3], *words[5:], data="one\ntwo\n" + "x" * 1200 + "\nfour\n", status=1)
    assert "line 3 of the input has more than 1000 bytes" in said and "2 records before it are durable" in said
    assert streams.run("count", "orders") == "53\n"
    assert streams.run("append", "orders", data="x" * 1000 + "\n").startswith("1 record from")


def test_an_empty_separator_is_refused(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.create()
    said = streams.run("append", "--key-separator", "", "orders", data="x\n", status=2)
    assert "--key-separator is empty" in said


def test_a_stream_with_too_few_bookies_is_one_sentence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    streams = Streams(tmp_path)
    streams.create("orders", "ensemble=3")
    assert "needs 3 bookies, but 1 can be used" in streams.run("append", "orders", data="x\n", status=1)
    assert "Traceback" not in caplog.text and not [each for each in caplog.records if each.exc_info]


def test_read_from_any_place(tmp_path: Path) -> None:
    """SEG-111 records are read from a place, up to a place, as text and as JSON, and counted."""
    streams = Streams(tmp_path)
    streams.filled()
    assert streams.run("read", "orders").split("\n")[:2] == ["record 0", "record 1"]
    assert streams.run("read", "orders", "--from", "seq:7") == "record 7\nrecord 8\n"
    assert streams.run("read", "orders", "--from", "2:0:1", "--to", "seq:6") == "record 4\nrecord 5\n"
    lines = streams.run("read", "orders", "--from", "-1h", "--count", "1", "--json").splitlines()
    (found,) = map(json.loads, lines)
    assert (found["at"], found["seq_no"], base64.b64decode(found["value"])) == ("1:0:0", 0, b"record 0")
    assert streams.run("read", "orders", "--from", found["position"], "--count", "1") == "record 0\n"
    assert streams.run("count", "orders") == "9\n"
    assert streams.json("count", "orders", "--from", "seq:2", "--to", "seq:6") == {"stream": "orders", "records": 4}
    assert "has no cursor" in streams.run("read", "orders", "--from", "cursor:nobody", status=1)


def test_what_is_truncated_is_told_or_skipped(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.filled()
    streams.run("truncate", "orders", "--before", "seq:4", "--yes")
    assert "Error: " in streams.run("read", "orders", "--from", "1:0:1", status=1)
    assert streams.run("read", "orders", "--from", "1:0:1", "--count", "1", "--on-gap", "skip") == "record 4\n"
    first = streams.run("read", "orders", "--from", "1:0:1", "--count", "1", "--on-gap", "yield", "--json")
    assert [json.loads(line).get("gap") for line in first.splitlines()] == ["truncated", None]
    assert streams.run("read", "orders", "--count", "1") == "record 4\n"


def test_tail_of_a_sealed_stream_ends(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.filled(segments=2)
    assert streams.run("tail", "orders", "--from", "seq:3", "--count", "2") == "record 3\nrecord 4\n"
    streams.run("seal", "orders", "--yes")
    assert streams.run("tail", "orders", "--from", "seq:4") == "record 4\nrecord 5\n"


def test_keys_and_transaction_ids(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.create()
    streams.run("append", "orders", "--key-separator", "=", "--txid", "7", data="anna=1\nplain\n")
    found = [json.loads(line) for line in streams.run("read", "orders", "--from", "txid:7", "--json").splitlines()]
    assert [(row["key"], row["txid"]) for row in found] == [(base64.b64encode(b"anna").decode(), 7), (None, 7)]
    assert "lower" in streams.run("append", "orders", "--txid", "6", data="late\n", status=1)
