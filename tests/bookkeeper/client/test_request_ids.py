"""What a client's log calls an operation is what the bookies' logs call its requests."""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import replace

import pytest

from bookkeeper.bookie.connections import request_log, server_connection
from bookkeeper.client.ledgers import ledger_recovery
from bookkeeper.errors import LedgerFencedError, RecoveryInconclusiveError
from bookkeeper.testing.cluster import CLIENT, SimCluster

NAMED = re.compile(r"\[requests? ([^\]]+)\]")


def ids(caplog: pytest.LogCaptureFixture, part: str) -> list[str]:
    """The ids in the lines that have this text."""
    return [
        found for record in caplog.records if part in (line := record.getMessage()) for found in NAMED.findall(line)
    ]


@pytest.fixture(autouse=True)
def _every_request_is_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_connection, "SLOW_S", 0.0)
    monkeypatch.setattr(request_log, "SLOW_S", 0.0)
    caplog.set_level(logging.INFO, logger="bookkeeper")
    caplog.set_level(
        logging.INFO, logger=ledger_recovery.__name__
    )  # a verb that was run in this process makes it quiet


def test_a_recovery_has_one_id_in_the_log_of_its_client_and_of_every_bookie(caplog: pytest.LogCaptureFixture) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as writer, cluster.connect() as reader:
            ledger = await writer.create_ledger()
            await ledger.append(b"x")
            await asyncio.sleep(2)  # of each kind a bookie logs one line a second
            await reader.open_ledger(ledger.id)
            with pytest.raises(LedgerFencedError):
                await ledger.append(b"y")

    SimCluster(seed=1).run(story)
    (of_client,) = ids(caplog, "is fenced and recovered")
    fences = ids(caplog, "READ of entry -1 of ledger")
    assert fences == [of_client] * 3
    assert re.fullmatch(r"[0-9a-f]+-1", of_client)
    (refused, *_) = ids(caplog, "fenced: ADD of entries 1 to 1")
    assert re.fullmatch(r"client:\d+/\d+:1", refused), "the writer's address, its stream and the entry"


def test_an_ensemble_change_says_what_the_failed_bookies_log_calls_the_adds(caplog: pytest.LogCaptureFixture) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as client:
            ledger = await client.create_ledger()
            await ledger.append(b"x")
            failed = ledger.metadata.last_fragment.ensemble[0]
            node = next(cluster.node(name) for name in cluster.names if failed.startswith(f"{name}:") or failed == name)
            node.crash()
            await ledger.append(b"y")
            await ledger.close()

    SimCluster(seed=1, bookies=4).run(story)
    (of_client,) = ids(caplog, "the ensemble was changed")
    adds = ids(caplog, "ADD of entries 0 to 0 of ledger")
    assert f"{of_client}:0" in adds


def test_a_recovery_that_fails_says_its_id(caplog: pytest.LogCaptureFixture) -> None:
    config = replace(CLIENT, recovery_attempts=2)

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as writer, cluster.connect(config) as reader:
            ledger = await writer.create_ledger()
            await ledger.append(b"x")
            for name in cluster.names[:2]:
                cluster.node(name).crash()
            with pytest.raises(RecoveryInconclusiveError) as caught:
                await reader.open_ledger(ledger.id)
            (of_client,) = ids(caplog, "is fenced and recovered")
            assert str(caught.value).endswith(f"[request {of_client}]")
            assert ids(caplog, "attempt 1 of 2") == [of_client]
            await ledger.abandon()

    SimCluster(seed=1).run(story)
