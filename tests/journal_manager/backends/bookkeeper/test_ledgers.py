"""The tags of a journal's ledgers, and how one is deleted that nothing refers to."""

from __future__ import annotations

import logging

import pytest

from journal_manager import FencingToken
from journal_manager.backends.bookkeeper.ledgers import delete_quietly, segment_tags, snapshot_tags
from tests.journal_manager.backends.bookkeeper.fake import Cluster, unavailable


def test_the_tags_name_the_journal_and_what_the_ledger_is_for() -> None:
    assert segment_tags("a/b", 7, FencingToken(3, "me")) == {
        "application": b"journal_manager",
        "journal": b"a/b",
        "first": b"7",
        "epoch": b"3",
    }
    offered = {"application": b"journal_manager", "journal": b"a/b", "snapshot": b"7"}
    assert snapshot_tags("a/b", 7, None) == offered
    assert snapshot_tags("a/b", 7, 3) == offered | {"epoch": b"3"}


async def test_a_ledger_that_cannot_be_deleted_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    client = cluster.client()
    await delete_quietly(client, "5")  # type: ignore[arg-type]
    assert not caplog.records
    ledger = cluster.new(b"", {})
    cluster.fail_at = ("delete_ledger", unavailable())
    with caplog.at_level(logging.WARNING):
        await delete_quietly(client, str(ledger.id))  # type: ignore[arg-type]
    assert f"ledger {ledger.id}" in caplog.text
