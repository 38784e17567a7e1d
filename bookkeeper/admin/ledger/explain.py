"""``bk ledger explain``: what is where, and what further failures would lose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bookkeeper.admin.shared.answers import VerbAnswer, verb_on_cluster
from bookkeeper.admin.shared.options import ledger_argument, print_table
from bookkeeper.amounts import counted, state_in_words

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from bookkeeper.replication.inspection.explain import ExplainedCopy, ExplainedRange, Loss
    from bookkeeper.replication.inspection.explain_ledger import ExplainedLedger


@click.command()
@verb_on_cluster()
@ledger_argument
async def explain(bk: BookKeeper, ledger_id: int) -> VerbAnswer:
    """Show where every range of a ledger's entries is, and what one or two more failures, or the loss of a rack, would
    lose.

    \b
    A copy is
      seen      its bookie says that it holds all of it
      lacking   its bookie says that it lacks some entries
      believed  its bookie is registered, but did not say what it holds
      gone      its bookie is not registered

    Of an open ledger the entries up to the last one confirmed are shown. Exit status 1: a copy is not seen.
    """

    from bookkeeper.ids import LedgerId
    from bookkeeper.replication.inspection.explain_ledger import explain_ledger

    found = await explain_ledger(bk, LedgerId(ledger_id))
    return VerbAnswer(_document(found), lambda: _print_report(found), is_good=found.is_whole)


def _document(found: ExplainedLedger) -> dict[str, Any]:
    return {
        "ledger": found.ledger_id,
        "state": found.metadata.state.name,
        "whole": found.is_whole,
        "unseen": found.unseen,
        "lost": found.lost,
        "one_more": _loss(found.after(1)),
        "two_more": _loss(found.after(2)),
        "racks": {rack: _loss(loss) for rack, loss in found.after_losing_each_place().items()},
        "ranges": [
            {
                "first_entry": each.first_entry,
                "last_entry": each.end,
                "open": not each.is_decided,
                "unseen": each.unseen,
                "lost": each.lost,
                "one_more": _loss(each.one_more),
                "two_more": _loss(each.two_more),
                "copies": [
                    {
                        "bookie": copy.bookie,
                        "location": found.places[copy.bookie],
                        "state": copy.state.value,
                        "missing": copy.missing,
                        "reason": copy.reason or None,
                    }
                    for copy in each.copies
                ],
            }
            for each in found.ranges
        ],
    }


def _loss(loss: Loss) -> dict[str, Any]:
    return {"entries": loss.entries, "bookies": list(loss.bookies)}


def _print_report(found: ExplainedLedger) -> None:
    click.echo(f"ledger {found.ledger_id}: {state_in_words(found.metadata.state.name)}, {found.metadata.spec}")
    rows = [
        {
            "entries": each.span.removeprefix("entries ") + ("" if each.is_decided else " (open)"),
            "copies": tuple(map(_copy, each.copies)),
            "one_more_failure_loses": _in_words(each, each.one_more),
            "two_more_lose": _in_words(each, each.two_more),
        }
        for each in found.ranges
    ]
    columns = ["entries", "copies", "one_more_failure_loses", "two_more_lose"]
    print_table(counted(len(rows), "range"), columns, rows)
    racks = found.after_losing_each_place()
    for rack, loss in racks.items():
        if loss.entries and len(racks) > 1:
            click.echo(f"the loss of {rack} ({', '.join(loss.bookies)}) would lose {counted(loss.entries, 'entry')}")
    if len(racks) > 1 and not any(loss.entries for loss in racks.values()):
        click.echo(f"the loss of any one rack ({', '.join(racks)}) would lose nothing")
    for each in found.ranges:
        for copy in each.copies:
            if copy.reason:
                click.echo(f"{copy.bookie}, {each.span}: {copy.reason}")
    if found.lost:
        gone = sorted({copy.bookie for each in found.ranges for copy in each.copies if copy.state == "gone"})
        click.echo(f"LOST for now: of {counted(found.lost, 'entry')} no bookie that is up has a copy")
        if gone:
            click.echo(f"start the bookies that are gone: {', '.join(gone)}")
    elif found.unseen:
        click.echo(f"{counted(found.unseen, 'entry')} of which no copy was seen: bookies that are up did not answer")
    if not found.is_whole and found.metadata.is_closed and not found.lost:
        click.echo(f"`bk ledger repair {found.ledger_id}` makes the missing copies again")


def _copy(copy: ExplainedCopy) -> str:
    return f"{copy.bookie} {copy.state}" + (f" {copy.missing}" if copy.missing else "")


def _in_words(each: ExplainedRange, loss: Loss) -> str:
    if each.end is None:
        return "not known"
    if not loss.entries:
        return "nothing"
    every = each.end - each.first_entry + 1
    how_many = "everything" if loss.entries == every else counted(loss.entries, "entry")
    if loss.bookies:
        return f"{how_many} ({', '.join(loss.bookies)})"
    return f"no more than now: {how_many}"
