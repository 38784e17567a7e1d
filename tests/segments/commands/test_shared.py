"""What the commands share: settings, places, errors in a line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Never

import click
import pytest
from click.testing import CliRunner

from segments.commands import stream
from segments.commands.shared import PositionType, in_a_line, position_text
from segments.errors import StreamNotReadyError, StreamSealedError, StreamUnavailableError
from segments.gateway.guard.call_guard import Behaviour, CallGuard
from segments.position import EARLIEST, LATEST, Position
from segments.seek import AtSeqNo
from tests.segments.commands.both_ways import both_ways
from tests.segments.commands.gateways import behind_a_gateway
from tests.segments.commands.helpers import ONE_BOOKIE


def test_places() -> None:
    assert PositionType().convert("seq:7", None, None) == AtSeqNo(7)
    assert PositionType().convert(AtSeqNo(7), None, None) == AtSeqNo(7)
    with pytest.raises(click.BadParameter, match="names no position in a stream"):
        PositionType().convert("here", None, None)
    assert [position_text(position) for position in (EARLIEST, LATEST, Position(2, 3, 4), None)] == [
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
    assert in_a_line(StreamUnavailableError("no answer"), changes=False) == "no answer (trying again may help)"


@pytest.mark.parametrize(
    ("words", "doubtful"),
    [
        (["list"], False),
        (["show", "orders"], False),
        (["check"], False),
        (["purge", "orders", "--dry-run"], False),
        (["purge", "orders"], True),
        (["check", "orders", "--repair", "--yes"], True),
        (["roll", "orders", "--yes"], True),
        (["hold", "release", "orders", "audit"], True),
    ],
)
def test_only_of_a_change_it_is_said_that_it_may_have_been_done(
    words: list[str], doubtful: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(metadata: str, **_: object) -> Never:
        raise StreamUnavailableError("no answer")

    for module in ("inspection", "check", "change", "shared"):
        monkeypatch.setattr(sys.modules[f"segments.commands.{module}"], "streams_at", silent)
    said = CliRunner().invoke(stream, [*words, "-m", "memory:x"])
    assert said.exit_code == 1
    assert ("it may have been done" in said.output) is doubtful


def test_verbs_through_a_gateway(tmp_path: Path) -> None:
    """What a gateway has calls for works with its address."""
    with behind_a_gateway(tmp_path) as streams:
        settings = [word for each in ONE_BOOKIE for word in ("--set", each)]
        assert "made stream orders, with id" in streams.run("create", "orders", *settings)
        lines = "".join(f"line {n}\n" for n in range(2_500))
        assert streams.run("append", "orders", data=lines).startswith("2500 records from")
        words = ("append", "--producer", "loader", "--seq", "0", "orders")
        assert streams.run(*words, data="one\ntwo\n").startswith("2 records from")
        assert "2 of them appended before" in streams.run(*words, data="one\ntwo\n")
        assert "is completed, with 2502 records" in streams.run("roll", "orders")
        assert "from 1:" in streams.run("hold", "add", "--from", "seq:7", "--to", "seq:9", "orders", "range")
        streams.run("hold", "release", "orders", "range")
        assert "audit" in streams.run("hold", "add", "orders", "audit")
        assert "hold audit covers" in streams.run("truncate", "--yes", "--before", "seq:5", "orders", status=1)
        assert "at 1:" in streams.run("cursor", "set", "--to", "seq:20", "orders", "billing")
        assert streams.run("read", "orders", "--from", "cursor:billing", "--count", "1") == "line 20\n"
        assert streams.json("explain", "orders")["segments"][0]["segment"] == 1
        streams.run("rename", "orders", "sales")
        assert streams.run("count", "sales") == "2502\n"
        assert "is sealed" in streams.run("seal", "--yes", "sales")
        assert "sales" in streams.run("list") and "orders" not in streams.run("list")


@pytest.mark.parametrize(
    ("call", "verb"),
    [
        ("Streams.Show", "show orders"),
        ("Streams.Check", "check orders"),
        ("Streams.Export", "export orders file"),
        ("Streams.Import", "import /dev/null"),
        ("Segments.ApplyRetention", "purge orders"),
        ("Segments.ApplyRetention", "explain orders"),
        ("Segments.ListHolds", "hold list orders"),
        ("Cursors.GetBacklog", "cursor show orders billing"),
        ("Cursors.Restore", "cursor restore orders billing 1"),
    ],
)
async def test_an_older_gateway_is_told_by_its_address_and_the_call_that_it_does_not_know(
    call: str, verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers = CallGuard.handlers

    def older(guard: CallGuard, behaviours: dict[str, Behaviour]) -> list[object]:
        return handlers(guard, {key: each for key, each in behaviours.items() if key != call})

    monkeypatch.setattr(CallGuard, "handlers", older)
    async with both_ways(tmp_path, monkeypatch) as ways:
        await ways.run("gateway", "create", "orders")
        monkeypatch.chdir(tmp_path)
        assert (await ways.run("gateway", "cursor", "set", "orders", "billing", "--to", "earliest"))[0] == 0
        name = " ".join(word for word in verb.split() if word not in ("orders", "billing", "1", "file", "/dev/null"))
        assert await ways.run("gateway", *verb.split()) == (
            1,
            f"Error: stream {name} does not work: the gateway at {ways.gateway.address} is of an older version, which "
            f"does not know the call {call}\n",
        )
