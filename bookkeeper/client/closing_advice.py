"""Tells bookies that a ledger is closed, so that they can let go of what they keep for its next add.

It is advice: nobody waits for it, it is sent over connections that stand already, and nothing depends on it. It is a
field of a request that bookies of other programs answer without looking at the field.
"""

from __future__ import annotations

from collections.abc import Iterable

from bookkeeper.client.bookies.bookie_pool import ConnectionPurpose
from bookkeeper.client.services import ClientServices
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.wire import GetBookieInfo, encode_notice


def advise_closed(services: ClientServices, ledger_id: LedgerId, bookies: Iterable[BookieId]) -> None:
    """Send it to those of these bookies to which there is a connection."""
    if not services.config.close_advice:
        return
    advice = encode_notice(GetBookieInfo(requested=0, closed_ledger=ledger_id))
    for bookie in bookies:
        connection = services.pool.ready(
            bookie, ConnectionPurpose.LAC
        )  # the advice is of protocol v3, as explicit LACs are
        if connection is not None:
            connection.write(advice)
