"""Captured exchanges of one Apache bookie, replayed against ours: the same request gets the same reply.

Where ours differs on purpose, the table below says how and why; everything else must be equal, byte for byte.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bookkeeper import wire
from bookkeeper.wire import Dialect
from tests.bookkeeper.bookie.house import House, run

VECTORS = Path(__file__).parents[2] / "vectors"

CLOSED = "closed"
SILENT = "silent"

OK_WITH_EXPLICIT_LAC = "an explicit LAC without an entry is an answer, not an I/O error: clients take either"
RECOVERY_ON_READ_ONLY = "a read-only bookie takes recovery adds, from its reserve (B10)"
NO_MINUS_ONE = "a batch from -1 makes no sense; Apache answers the last entry and then 0, 1, 2"
IDS_IN_BODY = "the ids of the message must be those of the entry"
KEY_SIZE = "a master key has 20 bytes: every client makes it by SHA-1, also of an empty password"
WHOLE_HEADER = "an entry is at least its 32-byte header"

DIFFERENT: dict[tuple[str, str], tuple[str, str]] = {
    ("wire_v2.json", "lac/read-only-explicit-no-entry"): ("OK", OK_WITH_EXPLICIT_LAC),
    ("wire_v2.json", "list/normal"): ("OK", "the captured connection had spoken v2 before"),
    ("wire_v2.json", "batch/last-entry-minus-one"): ("BAD_REQUEST", NO_MINUS_ONE),
    ("wire_v2.json", "readonly/recovery-add"): ("OK", RECOVERY_ON_READ_ONLY),
    ("wire_v2.json", "readonly/high-priority-add-not-available"): ("OK", RECOVERY_ON_READ_ONLY),
    ("wire_v2.json", "raw/add-short-entry-24-bytes"): ("BAD_REQUEST", WHOLE_HEADER),
    ("wire_v3.json", "lac/read-only-explicit-no-entry"): ("OK", OK_WITH_EXPLICIT_LAC),
    ("wire_v3.json", "db/read-lac-explicit-only"): ("OK", OK_WITH_EXPLICIT_LAC),
    ("wire_v3.json", "readonly/recovery-add"): ("OK", RECOVERY_ON_READ_ONLY),
    ("wire_v3.json", "readonly/high-priority-add-not-available"): ("OK", RECOVERY_ON_READ_ONLY),
    ("wire_v3.json", "raw/add-ids-differ-from-body"): ("BAD_REQUEST", IDS_IN_BODY),
    ("wire_v3.json", "raw/add-short-master-key"): ("UNAUTHORIZED", KEY_SIZE),
    ("wire_v3.json", "db/list"): ("OK", "Apache's DbLedgerStorage never answers it; each request gets a reply (B13)"),
}
"""(file, exchange) -> (the status ours answers, why). What is not here is equal."""


def exchanges(name: str, bookie: str) -> list[dict[str, Any]]:
    data = json.loads((VECTORS / name).read_text(encoding="utf-8"))
    return [item for item in data["exchanges"] if item["bookie"] == bookie]


async def replay(house: House, item: dict[str, Any]) -> tuple[list[str], list[str]]:
    """What the capture says was answered, and what ours answers: bodies in hex, or how it ended."""
    name = item["name"]
    house.bookie.read_only = name.startswith("readonly/") and name != "readonly/writable-again"
    peer = await house.raw()
    expected: list[str] = []
    now_ms = 0
    for frame in item["frames"]:
        if frame["dir"] == "request":
            if "event" in frame:
                break  # the client hung up
            if frame["t_ms"] > now_ms:
                await asyncio.sleep((frame["t_ms"] - now_ms) / 1000)
                now_ms = frame["t_ms"]
            peer.send(bytes.fromhex(frame["hex"]))
        elif "event" in frame:
            expected.append(SILENT if frame["event"].startswith("no answer") else CLOSED)
        else:
            expected.append(frame["hex"][8:])
    await asyncio.sleep(1 + max(frame["t_ms"] for frame in item["frames"]) / 1000)
    got = [body.hex() for body in peer.frames]
    if peer.closed:
        got.append(CLOSED)
    elif SILENT in expected:
        got.append(SILENT)
    peer.transport.abort()
    return expected, got


def comparable(answer: str) -> Any:
    """The answer without what is the machine's or the moment's: sizes of disks, times of updates."""
    if answer in (CLOSED, SILENT):
        return answer
    body = bytes.fromhex(answer)
    dialect = Dialect.V3 if body[0] == 0x0A else Dialect.V2
    header, reply = wire.decode_reply(body, dialect)
    match reply:
        case wire.InfoReply():
            masked: Any = (header, reply.status, reply.total is None, reply.free is None)
        case wire.ReadReply() if reply.lac_timestamp_ms is not None:
            masked = (header, replace(reply, lac_timestamp_ms=1))
        case _:
            return answer
    return str(masked)


@pytest.mark.rule("B13")
@pytest.mark.parametrize("bookie", ["default", "DbLedgerStorage"])
def test_every_captured_request_gets_the_captured_reply(bookie: str) -> None:
    """One bookie of ours lives through both files, as the captured one did."""

    async def main(house: House) -> None:
        both = {name: exchanges(name, bookie) for name in ("wire_v2.json", "wire_v3.json")}
        # Each file reads what the other has added at its beginning.
        for item in (item for items in both.values() for item in items):
            if item["name"].startswith(("add/normal", "db/add-")) and item["name"] != "db/add-fenced":
                await replay(house, item)
        for name, items in both.items():
            for item in items:
                expected, got = await replay(house, item)
                where = (name, item["name"])
                if where in DIFFERENT:
                    status, why = DIFFERENT[where]
                    body = bytes.fromhex(got[0])
                    _, reply = wire.decode_reply(body, Dialect.V3 if body[0] == 0x0A else Dialect.V2)
                    assert reply.status.name == status, (where, why)
                    assert sorted(map(comparable, expected)) != sorted(map(comparable, got)), f"{where} is equal now"
                else:
                    assert sorted(map(comparable, got)) == sorted(map(comparable, expected)), where

    run(main)


def test_the_table_of_differences_names_exchanges_that_exist() -> None:
    for name, exchange in DIFFERENT:
        data = json.loads((VECTORS / name).read_text(encoding="utf-8"))
        assert exchange in {item["name"] for item in data["exchanges"]}
