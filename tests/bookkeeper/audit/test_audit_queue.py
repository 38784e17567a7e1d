from __future__ import annotations

import json
from typing import Any

import pytest

from bookkeeper.audit import AuditAction, AuditConfig
from bookkeeper.audit.audit_queue import BATCH_BYTES, KINDS_MAX, PEER_SHARE, AuditQueue
from tests.bookkeeper.audit.events import event, stranger


def queue(**config: Any) -> AuditQueue:
    return AuditQueue(AuditConfig(to="/audit", **config))


def drained(lines: AuditQueue) -> list[dict[str, Any]]:
    out = []
    while not lines.is_empty:
        out += [json.loads(line) for line in lines.batch().splitlines()]
        lines.written()
    return out


@pytest.mark.rule("X16")
def test_one_peer_has_a_rate_and_what_is_left_out_is_told_in_a_line() -> None:
    lines = queue(peer_lines_at_once=3, peer_lines_per_s=2)
    assert [lines.offer(stranger(), 10.0, 0) for _ in range(8)] == [True] * 3 + [False] * 5
    assert lines.offer(stranger("10.0.0.67:1"), 10.0, 0), "another one is not concerned"
    assert lines.offer(event("etl"), 10.0, 0)
    assert (lines.left_out, lines.noted) == (5, 5)
    to_tell = lines.has_counts
    assert to_tell
    lines.report_left_out(5)
    told = drained(lines)
    assert [line["what"] for line in told] == ["authenticate"] * 4 + ["fence", "left-out"]
    assert (told[-1]["count"], told[-1]["of"], told[-1]["peer"]) == (5, "authenticate", "address 10.0.0.66")
    assert [lines.offer(stranger(), 11.0, 0) for _ in range(3)] == [True, True, False], "two a second"
    assert [lines.offer(stranger(), 10.5, 0)] == [False], "a clock that goes back gives nothing"


@pytest.mark.rule("X16")
def test_refusals_of_a_peer_do_not_hide_what_it_was_allowed() -> None:
    lines = queue(peer_lines_at_once=2)
    while lines.offer(event("etl", AuditAction.DELETE, allowed=False), 0.0, 0):
        pass
    while lines.offer(event("etl", AuditAction.FENCE), 0.0, 0):
        pass
    assert lines.offer(event("etl", AuditAction.DELETE, on="ledger 9"), 0.0, 0)
    assert drained(lines)[-1]["on"] == "ledger 9"


@pytest.mark.rule("X16", "P12")
def test_the_queue_has_a_limit_of_bytes_and_no_peer_fills_it() -> None:
    most = 64 * 1024
    lines = queue(queue_bytes=most, peer_lines_at_once=1_000_000)
    while lines.offer(event("greedy"), 0.0, 0):
        pass
    assert most // PEER_SHARE - 1000 < lines._bytes <= most // PEER_SHARE
    assert lines.offer(event("modest"), 0.0, 0)
    for number in range(1000):
        lines.offer(stranger(f"10.1.{number // 250}.{number % 250}:1"), 0.0, 0)
    assert lines._bytes <= most // PEER_SHARE + most // 2 + 1000, "strangers have one half"
    assert lines.offer(event("third"), 0.0, 0)
    for number in range(100):
        while lines.offer(event(f"name {number}"), 0.0, 0):
            pass
    assert most - 1000 < lines._bytes <= most
    lines.report_left_out(0)
    no_room = lines.has_counts
    assert no_room, "nor for the counts: they are told later"
    assert lines._bytes <= most
    drained(lines)
    told = 0
    while lines.has_counts:
        lines.report_left_out(0)
        told += sum(line["count"] for line in drained(lines))
    assert told == lines.left_out
    assert lines.offer(event("greedy"), 0.0, 0)


@pytest.mark.rule("X16", "P12")
def test_peers_without_end_are_counted_together() -> None:
    lines = queue(peer_lines_at_once=1, queue_bytes=64 * 1024)
    for number in range(KINDS_MAX + 500):
        address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        lines.offer(stranger(address), 0.0, 0)
        lines.offer(stranger(address), 0.0, 0)
    assert len(lines._rates) <= KINDS_MAX and len(lines._left_out) <= KINDS_MAX
    told = 0
    while lines.has_counts:
        told += sum(line.get("count", 0) for line in drained(lines))
        lines.report_left_out(0)
    told += sum(line.get("count", 0) for line in drained(lines))
    assert told == lines.left_out > KINDS_MAX


def test_a_batch_that_was_not_written_comes_again_with_what_followed() -> None:
    lines = queue(peer_lines_at_once=100_000)
    lines.offer(event(on="1"), 0.0, 0)
    first = lines.batch()
    lines.offer(event(on="2"), 0.0, 0)
    assert lines.after_batch().count(b"\n") == 1
    lines.not_written()
    assert lines.after_batch() == lines.batch() and lines.batch().startswith(first)
    lines.written()
    assert lines.is_empty and lines.batch() == b""
    for number in range(3 * BATCH_BYTES // 300):
        lines.offer(event(f"name {number % 50}"), 0.0, 0)
    assert BATCH_BYTES <= len(lines.batch()) < BATCH_BYTES + 1000


@pytest.mark.rule("X16")
def test_lines_that_tell_of_strangers_lines_keep_nobody_out_who_is_known() -> None:
    lines = queue(queue_bytes=64 * 1024)
    for number in range(3000):
        lines.offer(stranger(f"10.0.{number // 250}.{number % 250}:1"), 0.0, 0)
    lines.report_left_out(0)
    assert lines._bytes <= 32 * 1024
    assert lines.offer(event("etl", AuditAction.DELETE), 0.0, 0)
    assert lines.has_counts, "what was not told yet is told later"
    left_out = lines.left_out
    told = 0
    while not lines.is_empty:
        told += sum(line.get("count", 0) for line in drained(lines))
        lines.report_left_out(0)
    assert told == left_out
