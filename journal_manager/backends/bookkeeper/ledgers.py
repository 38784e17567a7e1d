"""The ledgers of a journal: how one is made and tagged, and how one that nothing refers to is deleted."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from bookkeeper.errors import BookKeeperError, NoSuchLedgerError, in_words
from journal_manager.fencing_token import FencingToken
from journal_manager.txid import TxId

if TYPE_CHECKING:
    from bookkeeper import BookKeeper, WriteHandle

_log = logging.getLogger(__name__)

NewLedger = Callable[[dict[str, bytes]], Awaitable["WriteHandle"]]
"""Makes a ledger with this custom metadata, by the journal's options."""


def segment_tags(name: str, first: TxId, token: FencingToken) -> dict[str, bytes]:
    """The custom metadata of a segment's ledger: it finds a ledger that no journal names."""
    return {
        "application": b"journal_manager",
        "journal": name.encode(),
        "first": b"%d" % first,
        "epoch": b"%d" % token.epoch,
    }


def snapshot_tags(name: str, at: TxId) -> dict[str, bytes]:
    """The custom metadata of a snapshot's ledger."""
    return {"application": b"journal_manager", "journal": name.encode(), "snapshot": b"%d" % at}


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
