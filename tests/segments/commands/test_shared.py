"""What the commands share: settings, places, errors in a line."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from segments.commands.shared import Place, in_a_line, told
from segments.errors import StreamNotReadyError, StreamSealedError, StreamUnavailableError
from segments.position import EARLIEST, LATEST, Position
from segments.seek import AtSeqNo
from tests.segments.commands.gateways import behind_a_gateway
from tests.segments.commands.helpers import ONE_BOOKIE


def test_places() -> None:
    assert Place().convert("seq:7", None, None) == AtSeqNo(7)
    assert Place().convert(AtSeqNo(7), None, None) == AtSeqNo(7)
    with pytest.raises(click.BadParameter, match="is no place in a stream"):
        Place().convert("here", None, None)
    assert [told(position) for position in (EARLIEST, LATEST, Position(2, 3, 4), None)] == [
        "earliest",
        "latest",
        "2:3:4",
        None,
    ]


def test_errors_say_whether_to_try_again_and_whether_it_was_done() -> None:
    assert in_a_line(StreamSealedError("it is sealed")) == "it is sealed"
    assert in_a_line(StreamNotReadyError("not yet")) == "not yet (trying again may help)"
    error = StreamUnavailableError("no answer")
    error.add_note("3 records before it are durable")
    assert in_a_line(error) == (
        "no answer (3 records before it are durable; it may have been done; trying again may help)"
    )


def test_verbs_through_a_gateway(tmp_path: Path) -> None:
    """What a gateway has calls for works with its address; the rest says in a line why it does not."""
    with behind_a_gateway(tmp_path) as streams:
        settings = [word for each in ONE_BOOKIE for word in ("--set", each)]
        assert "is there, with id" in streams.run("create", "orders", *settings)
        assert "orders" in streams.run("list")
        lines = "".join(f"line {n}\n" for n in range(2_500))
        appended = streams.run("append", "orders", data=lines)
        assert appended.startswith("2500 records from")
        words = ("append", "--producer", "loader", "--seq", "0", "orders")
        streams.run(*words, data="one\ntwo\n")
        assert "2 of them appended before" in streams.run(*words, data="one\ntwo\n")
        assert streams.run("read", "orders", "--from", "seq:2500") == "one\ntwo\n"
        assert streams.run("tail", "orders", "--from", "seq:2501", "--count", "1") == "two\n"
        assert streams.run("count", "orders") == "2502\n"
        assert "changed in orders" in streams.run("configure", "orders", "--set", "retention.max_records=10")
        assert "is completed, with 2502 records" in streams.run("roll", "orders")
        assert "covers orders" in streams.run("hold", "add", "orders", "audit", "--for", "1")
        assert "hold audit until" in streams.run("truncate", "--yes", "--before", "seq:5", "orders", status=1)
        assert "is released" in streams.run("hold", "release", "orders", "audit")
        assert "begins at" in streams.run("truncate", "--yes", "--before", "seq:5", "orders")
        assert streams.run("count", "orders") == "2497\n"
        assert streams.json("explain", "orders")["segments"][0]["segment"] == 1
        assert "stays" in streams.run("explain", "orders")
        assert "at 1:" in streams.run("cursor", "set", "--to", "seq:10", "orders", "billing")
        assert streams.json("cursor", "list", "orders")[0]["cursor"] == "billing"
        assert "at 1:" in streams.run("cursor", "set", "--to", "seq:20", "orders", "billing")
        assert [row["version"] for row in streams.json("cursor", "history", "orders", "billing")] != []
        assert streams.run("read", "orders", "--from", "cursor:billing", "--count", "1") == "line 20\n"
        assert "deleted: cursor billing" in streams.run("cursor", "delete", "--yes", "orders", "billing")
        assert "orders is named sold now" in streams.run("rename", "orders", "sold")
        for refused in (
            ("show", "sold"), ("purge", "sold"), ("hold", "list", "sold"), ("check",), ("cursor", "show", "sold", "a"),
            ("cursor", "restore", "sold", "a", "1"), ("export", "sold", str(tmp_path / "file")),
        ):  # fmt: skip
            said = streams.run(*refused, status=1)
            assert "does not work through a gateway" in said and len(said.splitlines()) == 1
        assert "is sealed" in streams.run("seal", "--yes", "sold")
        assert "deleted: sold" in streams.run("delete", "--yes", "sold")
        assert streams.run("list", "so") == "there is no stream whose name begins with 'so'\n"
