from __future__ import annotations

import json

import pytest

from bookkeeper.audit.audit_event import NAME_MAX, TEXT_MAX, AuditAction, event_line, left_out_line, peer_of
from tests.bookkeeper.audit.events import event

WHEN_MS = 1_700_000_000_123


@pytest.mark.rule("X16")
def test_a_line_says_when_who_from_where_what_on_what_and_whether_it_was_allowed() -> None:
    line = event_line(
        event(
            "etl",
            AuditAction.DELETE,
            claimed=True,
            through="gateway1",
            address="10.0.0.1:5000",
            on="ledger 7",
            allowed=False,
            reason="no right to delete",
            request_id="r-1",
        ),
        WHEN_MS,
    )
    assert json.loads(line) == {
        "when_ms": WHEN_MS,
        "when": "2023-11-14T22:13:20.123Z",
        "what": "delete",
        "who": "etl",
        "claimed": True,
        "through": "gateway1",
        "address": "10.0.0.1:5000",
        "on": "ledger 7",
        "allowed": False,
        "reason": "no right to delete",
        "request_id": "r-1",
    }
    assert json.loads(left_out_line("fence", "name etl", 3, "why", WHEN_MS)) == {
        "when_ms": WHEN_MS,
        "when": "2023-11-14T22:13:20.123Z",
        "what": "left-out",
        "of": "fence",
        "peer": "name etl",
        "count": 3,
        "reason": "why",
    }


@pytest.mark.rule("X16", "X38")
def test_names_from_outside_are_one_line_of_ascii_and_cut() -> None:
    nasty = 'a\nb\r\x00"}\x1b[31m\u2028\ud800' + "x" * 100_000
    line = event_line(event(nasty, through=nasty, address=nasty, on=nasty, reason=nasty, request_id=nasty), WHEN_MS)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert all(32 <= byte < 127 for byte in line[:-1])
    assert len(line) < 6 * (4 * NAME_MAX + 2 * TEXT_MAX) + 1000
    read = json.loads(line)
    assert read["who"].startswith(nasty[:20]) and read["who"].endswith("more characters)")


@pytest.mark.rule("X16")
def test_a_proven_name_counts_and_otherwise_the_address_or_its_network() -> None:
    assert peer_of(event("etl", address="10.0.0.1:1")) == peer_of(event("etl", address="10.0.0.2:2"))
    assert peer_of(event("etl", claimed=True, address="10.0.0.1:1")) == peer_of(event("", address="10.0.0.1:2"))
    assert peer_of(event("", address="[2001:db8::1]:1")) == peer_of(event("", address="2001:db8::2"))
    assert peer_of(event("", address="[2001:db8::1]:1")) != peer_of(event("", address="[2001:db8:1::1]:1"))
    assert peer_of(event("", address="10.0.0.1")) == "address 10.0.0.1"
    assert peer_of(event("", address="")) == "address "
    assert peer_of(event("10.0.0.1", address="x")) != peer_of(event("", address="10.0.0.1"))  # a name like an address
    assert peer_of(event("", address="a:b")) == "address a:b"
