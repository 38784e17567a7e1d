"""The ledgers of a journal: how one is made and tagged, and how one that nothing refers to is deleted."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from bookkeeper.errors import BookKeeperError, NoSuchLedgerError, in_words
from journal_manager.edits import FencingToken, TxId

if TYPE_CHECKING:
    from bookkeeper import BookKeeper, WriteHandle

_log = logging.getLogger(__name__)

NewLedger = Callable[[dict[str, bytes]], Awaitable["WriteHandle"]]
"""Makes a ledger with this custom metadata, by the journal's options."""


def journal_tags(name: str) -> dict[str, bytes]:
    """The custom metadata that all ledgers of a journal have: they find a ledger that no node names."""
    return {"application": b"journal_manager", "journal": name.encode()}


def segment_tags(name: str, first: TxId, token: FencingToken) -> dict[str, bytes]:
    """The custom metadata of a segment's ledger."""
    return journal_tags(name) | {"first": b"%d" % first, "epoch": b"%d" % token.epoch}


def snapshot_tags(name: str, at: TxId, epoch: int | None) -> dict[str, bytes]:
    """The custom metadata of a snapshot's ledger. ``epoch`` is the owner's; None if a reader offers it."""
    return journal_tags(name) | {"snapshot": b"%d" % at} | ({} if epoch is None else {"epoch": b"%d" % epoch})


async def delete_quietly(client: BookKeeper, ledger: str) -> None:
    """Delete a ledger that nothing refers to. If that fails the ledger is an orphan, and a tool finds it by its tag."""
    try:
        await client.delete_ledger(int(ledger))
    except NoSuchLedgerError:
        pass
    except BookKeeperError as error:
        _log.warning(
            "ledger %s is not needed any more and could not be deleted; remove it with bk ledger delete: %s",
            ledger,
            in_words(error),
        )
