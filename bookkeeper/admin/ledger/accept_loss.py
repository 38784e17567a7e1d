"""``bk ledger recover --accept-loss``: says what has to be given up, asks, and closes the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bookkeeper.admin.shared.options import connected, finish, print_json
from bookkeeper.amounts import counted, size_in_words
from bookkeeper.ids import LedgerId
from bookkeeper.ledger import LedgerMetadata

if TYPE_CHECKING:
    from bookkeeper.replication.losses.accept_loss import LossPlan
    from bookkeeper.replication.losses.closing_loss import ClosingLoss

_SHOWN = 20
"""Ranges of entries that are shown at most."""


def recover_with_loss(metadata: str, ledger_id: int, yes: bool, as_json: bool) -> None:
    """Recover the ledger; where that is inconclusive, ask (unless ``yes``), and close it where it can be read.

    Raises: Abort: the answer was no. The ledger stays in recovery.
    """

    async def plan() -> LossPlan | LedgerMetadata:
        from bookkeeper.replication.losses.accept_loss import plan_loss

        async with connected(metadata) as bk:
            return await plan_loss(bk, LedgerId(ledger_id))

    found = finish(plan(), changes=True)
    if isinstance(found, LedgerMetadata):
        _print_report(ledger_id, found, None, as_json)
        return
    planned, given = found, found.given_up
    for line in lines(ledger_id, given):
        click.echo(line, err=True)
    if not yes:
        click.confirm("Give that up for ever, and close the ledger?", abort=True, err=True)

    async def accept() -> LedgerMetadata:
        from bookkeeper.replication.losses.accept_loss import accept_loss

        async with connected(metadata) as bk:
            return await accept_loss(bk, planned)

    _print_report(ledger_id, finish(accept(), changes=True), given, as_json)


def lines(ledger_id: int, given: ClosingLoss) -> list[str]:
    """What is given up, for people."""
    said = [f"ledger {ledger_id} cannot be recovered without a loss: {given.why}"]
    said += [f"  {bookie} does not answer: {reason}" for bookie, reason in sorted(given.silent.items())]
    if given.last_entry >= 0:
        said.append(f"it would be closed at entry {given.last_entry}, {size_in_words(given.length)}")
    else:
        said.append("nothing of it can be read: it would be closed empty")
    said.append("given up would be:")
    if given.entries:
        more = f" and {counted(len(given.entries) - _SHOWN, 'range')} more" if len(given.entries) > _SHOWN else ""
        size = f", {size_in_words(given.size)} in gaps" if given.size else ""
        said.append(f"  {counted(given.count, 'entry')}: {', '.join(given.spans(_SHOWN))}{more}{size}")
    after = f" after entry {given.last_entry}" if given.last_entry >= 0 else ""
    said.append(f"  whatever else was acknowledged{after}: nobody who answers knows of it")
    return said


def _print_report(ledger_id: int, closed: LedgerMetadata, given: ClosingLoss | None, as_json: bool) -> None:
    last = int(closed.last_entry)
    if as_json:
        document: dict[str, Any] = {"ledger": ledger_id, "last_entry": None if last < 0 else last, "given_up": None}
        if given is not None:
            document["given_up"] = {
                "entries": given.spans(),
                "entries_count": given.count,
                "bytes": given.size,
                "after": last,
                "silent": dict(given.silent),
                "why": given.why,
            }
        print_json(document)
        return
    click.echo(f"ledger {ledger_id} is closed; " + (f"its last entry is {last}" if last >= 0 else "it is empty"))
    if given is None:
        click.echo("nothing was given up")
    else:
        click.echo(f"what was given up is recorded in its metadata (`bk ledger show {ledger_id}`)")
