from __future__ import annotations

import asyncio
import errno
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bookkeeper.audit import NO_AUDIT, AuditConfig, AuditLog, open_audit_log
from bookkeeper.audit.audit_log import AGAIN_S, TELL_S
from bookkeeper.metrics import Metrics
from bookkeeper.seams import Seams
from bookkeeper.testing import Fault, SimDisk, World
from tests.bookkeeper.audit.events import event, stranger

PATH = "/log/audit"


def in_world(program: Callable[[Seams, SimDisk], Awaitable[None]]) -> list[dict[str, Any]]:
    """Run a program on a node, and return the lines of its audit log that a power cut leaves."""
    with World(1) as world:
        node = world.node("n")

        async def main(seams: Seams) -> None:
            seams.disk.make_directories("/log")
            await program(seams, node.disk)

        async def whole() -> None:
            await node.start(main)

        world.run(whole())
        node.disk.crash(keep=0.0)
        text = node.disk.read_file(PATH) if node.disk.exists(PATH) else b""
        return [json.loads(line) for line in text.splitlines()]


def opened(seams: Seams, metrics: Metrics | None = None, **config: Any) -> AuditLog:
    return open_audit_log(AuditConfig(to=PATH, **config), seams.clock, seams.disk, seams.workers, metrics)


@pytest.mark.rule("X16")
def test_lines_are_durable_soon_in_the_order_of_the_events_and_all_at_the_close() -> None:
    async def program(seams: Seams, disk: SimDisk) -> None:
        audit = opened(seams)
        for number in range(100):
            audit.note(event(on=f"{number}"))
        assert disk.read_file(PATH) == b"", "nothing is written where it is noted"
        await asyncio.sleep(1)
        assert disk.read_file(PATH).count(b"\n") == 100
        for number in range(100, 200):
            audit.note(event(on=f"{number}"))
        audit.close()
        audit.close()
        audit.note(event(on="after the close"))

    lines = in_world(program)
    assert [line["on"] for line in lines] == [f"{number}" for number in range(200)]
    assert all(line["when"].endswith("Z") for line in lines)


@pytest.mark.rule("X16")
def test_a_full_disk_stops_nothing_is_told_once_and_loses_no_line_that_has_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = Metrics()
    failing = metrics.gauge("audit_failing", "")

    async def program(seams: Seams, disk: SimDisk) -> None:
        audit = opened(seams, metrics)
        disk.faults.append(Fault(operation="pwrite", code=errno.ENOSPC, path="audit", partial=True))
        for number in range(20):
            audit.note(event(on=f"{number}"))
            await asyncio.sleep(1)
        assert failing.value == 1
        disk.faults.clear()
        await asyncio.sleep(AGAIN_S + 1)
        assert failing.value == 0
        audit.note(event(on="20"))
        audit.close()

    lines = in_world(program)
    assert [line["on"] for line in lines] == [f"{number}" for number in range(21)]
    texts = [record.getMessage() for record in caplog.records if record.name == "bookkeeper.audit.audit_log"]
    assert len(texts) == 2
    assert "cannot be written" in texts[0] and "Make room" in texts[0] and texts[1].endswith("can be written again")


@pytest.mark.rule("X16")
def test_a_close_writes_what_the_disk_refused_before(caplog: pytest.LogCaptureFixture) -> None:
    async def program(seams: Seams, disk: SimDisk) -> None:
        audit = opened(seams)
        disk.faults.append(Fault(operation="sync", code=errno.EIO, path="audit", times=1))
        audit.note(event(on="0"))
        audit.note(event(on="1"))
        audit.close()  # the batch with the first one fails in the worker, and is written again

    assert [line["on"] for line in in_world(program)] == ["0", "1"]

    async def broken(seams: Seams, disk: SimDisk) -> None:
        audit = opened(seams)
        disk.faults.append(Fault(operation="pwrite", code=errno.EIO, path="audit"))
        audit.note(event())
        audit.close()

    assert in_world(broken) == []
    assert "the audit log has lost its end, 1 line:" in caplog.text


@pytest.mark.rule("X16")
def test_what_was_left_out_is_told_soon_and_at_the_close() -> None:
    metrics = Metrics()

    async def program(seams: Seams, disk: SimDisk) -> None:
        audit = opened(seams, metrics, peer_lines_at_once=5)
        for _ in range(50):
            audit.note(stranger())
        audit.note(event())
        await asyncio.sleep(TELL_S + 1)
        assert b"left-out" in disk.read_file(PATH)
        for _ in range(150):
            audit.note(stranger())
        audit.close()

    lines = in_world(program)
    told = [line["count"] for line in lines if line["what"] == "left-out"]
    assert told == [45, 145]
    assert [line.get("who") for line in lines].count("etl") == 1
    assert metrics.counter("audit_left_out_total", "").value == 190
    assert metrics.counter("audit_lines_total", "").value == 11


@pytest.mark.rule("X16")
def test_an_event_that_cannot_be_noted_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async def program(seams: Seams, disk: SimDisk) -> None:
        audit = opened(seams)
        audit.note(None)  # type: ignore[arg-type]
        audit.note(event())
        audit.close()

    assert len(in_world(program)) == 1
    assert "was not noted" in caplog.text


@pytest.mark.rule("X16")
def test_the_lines_may_go_to_the_log_whatever_its_level(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger().setLevel(logging.WARNING)

    async def program(seams: Seams, disk: SimDisk) -> None:
        audit = open_audit_log(AuditConfig(to="log"), seams.clock, seams.disk, seams.workers)
        audit.note(event(on="ledger 5"))
        audit.close()

    assert in_world(program) == []
    (record,) = [record for record in caplog.records if record.name == "bookkeeper.audit.lines"]
    assert json.loads(record.getMessage())["on"] == "ledger 5"


def test_it_is_off_unless_somebody_says_where() -> None:
    async def program(seams: Seams, disk: SimDisk) -> None:
        audit = open_audit_log(AuditConfig(), seams.clock, seams.disk, seams.workers)
        assert audit is NO_AUDIT
        audit.note(event())
        audit.close()
        assert disk.list("/log") == []

    assert in_world(program) == []
