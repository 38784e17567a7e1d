"""Java's bookies skip the field that says that a ledger is closed: no connection is lost over it, and no add."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bookkeeper import BookKeeper
from bookkeeper.client.config import ClientConfig
from bookkeeper.real import run
from bookkeeper.wire import GetBookieInfo, InfoReply, Status
from examples.apache_servers import whats_missing
from tests.interop.clusters import site

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]

if (_missing := whats_missing()) is not None:
    pytest.skip(f"Apache's programs are not run: {_missing}", allow_module_level=True)

WRITERS, ENTRIES = 6, 300
PATIENT = ClientConfig(bookie_stall_ms=50_000, add_timeout_ms=60_000, request_timeout_ms=60_000)
"""A client that gives no connection up because a bookie is slow."""


def test_advice_between_adds_in_flight_takes_nothing_from_a_java_bookie(tmp_path: Path) -> None:
    with site(tmp_path, ("java",)) as running:
        run(write(running.clusters["java"].uri))


async def write(uri: str) -> None:
    """Writers share connections; one after the other closes its ledger while the others have adds in flight."""
    async with BookKeeper.connect(uri, config=PATIENT) as bk:
        writers = [await bk.create_ledger(ensemble=3, write_quorum=3, ack_quorum=3) for _ in range(WRITERS)]
        first = writers[0].metadata.last_fragment.ensemble[0]
        connection = await bk.services.pool.get(first)

        async def one(number: int) -> None:
            writer = writers[number]
            adds = [writer.append_nowait(b"%d/%d" % (number, at)) for at in range(ENTRIES)]
            advice = connection.request(GetBookieInfo(0, closed_ledger=writer.id), 30)
            more = [writer.append_nowait(b"%d/%d" % (number, at)) for at in range(ENTRIES, 2 * ENTRIES)]
            assert await asyncio.gather(*adds, *more) == list(range(2 * ENTRIES))
            reply = await advice
            assert isinstance(reply, InfoReply) and (reply.status, reply.total, reply.free) == (Status.OK, None, None)
            await writer.close()

        await asyncio.gather(*map(one, range(WRITERS)))
        assert not connection.closed and bk.services.pool.ready(first) is connection, "one connection, all the time"
        for number, writer in enumerate(writers):
            async with await bk.open_ledger(writer.id) as reader:
                entries = [entry.payload async for entry in reader.read(0, reader.last_add_confirmed)]
            assert entries == [b"%d/%d" % (number, at) for at in range(2 * ENTRIES)]
