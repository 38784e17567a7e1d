"""The owner of a journal's node: its errors are those of journals."""

from __future__ import annotations

from typing import Any, cast

import pytest

from bookkeeper.errors import LedgerClosedError, LedgerFencedError, MetadataUnavailableError
from journal_manager import (
    JournalFencedError,
    JournalNotFormattedError,
    JournalUnavailableError,
    NamespaceInfo,
    NamespaceMismatchError,
)
from journal_manager.backends.bookkeeper.journal_node import JournalNode
from journal_manager.backends.bookkeeper.journal_owner import JournalOwner, claim_nonce
from journal_manager.journals.chain import Chain
from tests.journal_manager.backends.bookkeeper.fake import Cluster


async def owner_on(cluster: Cluster, name: str = "me", namespace: NamespaceInfo | None = None) -> JournalOwner:
    client = cluster.client()
    record = JournalNode(cast(Any, client.metadata_store), "edits")
    await record.create_if_absent(Chain(NamespaceInfo(7)))
    return await JournalOwner.claim(record, name, claim_nonce(cast(Any, client)), namespace)


@pytest.mark.rule("C5")
async def test_who_was_overtaken_is_told_by_whom() -> None:
    cluster = Cluster()
    old, new = await owner_on(cluster, "old"), await owner_on(cluster, "new")
    for attempt in (old.ensure_current(), old.condition(), old.step(lambda chain: chain)):
        with pytest.raises(JournalFencedError) as caught:
            await attempt
        assert (caught.value.epoch, caught.value.by) == (old.token.epoch, new.token)
    await new.ensure_current()
    assert isinstance(await old.why_refused(LedgerClosedError("x")), JournalFencedError)


async def test_another_namespace_is_refused_before_it_is_claimed() -> None:
    cluster = Cluster()
    with pytest.raises(NamespaceMismatchError):
        await owner_on(cluster, namespace=NamespaceInfo(8))
    assert (await owner_on(cluster, namespace=NamespaceInfo(7))).token.epoch == 1


async def test_a_journal_that_is_not_there_cannot_be_claimed() -> None:
    record = JournalNode(cast(Any, Cluster().client().metadata_store), "edits")
    with pytest.raises(JournalNotFormattedError):
        await JournalOwner.claim(record, "me", "n", None)


async def test_why_a_ledger_takes_no_more_when_the_store_is_away() -> None:
    cluster = Cluster()
    owner = await owner_on(cluster)
    assert isinstance(await owner.why_refused(LedgerFencedError("x")), JournalUnavailableError), "it owns it still"
    for error, kind in (
        (LedgerFencedError("x"), JournalFencedError),
        (LedgerClosedError("x"), JournalUnavailableError),
    ):
        cluster.fail_at = ("sync", MetadataUnavailableError("away"))
        assert isinstance(await owner.why_refused(error), kind)


async def test_nonces_differ() -> None:
    client = cast(Any, Cluster().client())
    assert claim_nonce(client) != claim_nonce(client)
