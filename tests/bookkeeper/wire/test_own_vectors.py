"""docs/wire-vectors.json is what our codecs make, and docs/wire-protocol.md shows parts of it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from bookkeeper import wire
from bookkeeper.wire import Dialect
from tests.bookkeeper.wire.own_vectors import FILE, PAGE, made, replies, requests, text

DOCUMENT: dict[str, Any] = json.loads(FILE.read_text())


def test_the_file_is_what_our_codecs_make() -> None:
    assert FILE.read_text() == text(), "run: python -m tests.bookkeeper.wire.own_vectors"
    assert FILE.stat().st_size < 32 * 1024


def test_its_requests_are_read_back() -> None:
    for name, _, request, _ in requests():
        body = bytes.fromhex(DOCUMENT["frames"][name])[4:]
        decoded = wire.DialectDetector().decode(body)
        assert isinstance(decoded, tuple) and decoded[1] == request, name


def test_its_replies_are_read_back() -> None:
    for name, header, reply in replies():
        body = bytes.fromhex(DOCUMENT["frames"][name])[4:]
        dialect = Dialect.V3 if body[0] == 0x0A else Dialect.V2
        _, decoded = wire.decode_reply(body, dialect)
        assert dialect is header.dialect
        assert decoded.status is reply.status and type(decoded) is type(reply), name


SHOWN = re.findall(r"^\| `?([^|`]+?)`? \| `([0-9a-f ]+)` \|$", PAGE.read_text(), re.MULTILINE)


@pytest.mark.parametrize(("name", "shown"), SHOWN, ids=[name for name, _ in SHOWN])
def test_what_the_page_shows_is_in_the_file(name: str, shown: str) -> None:
    known = DOCUMENT["frames"] | {
        "master key": DOCUMENT["keys"][1]["master_key"],
        "master key of the empty password": DOCUMENT["keys"][0]["master_key"],
        "MAC key": DOCUMENT["keys"][1]["mac_key"],
        "explicit LAC 2": DOCUMENT["explicit_lac_2"],
        "metadata": DOCUMENT["metadata"],
        **{f"entry {number}": entry for number, entry in enumerate(DOCUMENT["entries"])},
        **{f"entry 0, {kind}": entry for kind, entry in DOCUMENT["entry_0_by_digest"].items()},
    }
    assert shown.replace(" ", "") == known[name]


def test_the_page_shows_enough_to_begin_with() -> None:
    assert len(SHOWN) >= 12
    numbers = {
        *re.findall(r"^\| (\d+) \| `[A-Z_]+` \| \d+ \|", PAGE.read_text(), re.MULTILINE),
    }
    assert numbers == {str(int(status)) for status in wire.Status}, "the table of statuses"
    assert made()["frames"].keys() == DOCUMENT["frames"].keys()
