"""``bk bookies decommission``: drains bookies, waits until their ledgers are whole, and forgets them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from bookkeeper.admin.bookies.operations import drain_config, drain_options, give_up_option, print_moved, print_stuck
from bookkeeper.admin.shared.answers import VerbAnswer, on_cluster
from bookkeeper.admin.shared.options import json_option, metadata_option
from bookkeeper.admin.shared.progress import progress_bar
from bookkeeper.amounts import counted, size_in_words
from bookkeeper.ids import some_of
from bookkeeper.option_types import Number
from bookkeeper.replication.config import DecommissionConfig
from bookkeeper.settings import default_of

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from bookkeeper.replication.decommissioning import DecommissionProgress, DecommissionReport

_SHOWN: Final = 20
"""Ledgers that a table for people names at most."""


@click.command()
@metadata_option
@json_option
@click.argument("names", nargs=-1, required=True, metavar="ID...")
@drain_options
@click.option(
    "--wait",
    type=Number(0),
    metavar="SECONDS",
    default=default_of(DecommissionConfig, "wait_s"),
    show_default=True,
    help="How long to wait while nothing changes: a ledger is stuck, or a bookie still runs.",
)
@give_up_option
def decommission(
    metadata: str, as_json: bool, names: tuple[str, ...], wait: float, give_up_deleted: bool, **drained: Any
) -> None:
    """Take bookies, alive or dead, out of the cluster for good.

    It moves every ledger off them, waits until all copies of these ledgers were seen, and forgets the bookies. A living
    bookie must be read-only first (`bk bookies read-only ID`); stop it when the command tells you to. After an
    interruption start the command again. Exit status 1: something holds it up, and the output says what.

    \b
    Example, a bookie that runs:
      bk bookies read-only b3
      bk bookies decommission b3     (stop b3 when it says so)
    """
    settings = drain_config("bk bookies decommission", **drained)
    config = DecommissionConfig(drain=settings, wait_s=wait, give_up_deleted=give_up_deleted)

    @on_cluster(changes=True)
    async def work(bk: BookKeeper) -> VerbAnswer:
        from bookkeeper.replication.decommissioning import decommission as take_out

        named = ", ".join(names)
        with progress_bar(named, "looking for ledgers") as (update, say):
            report = await take_out(bk, names, config, partial(show_progress, update, named), say)
        return VerbAnswer(_document(report), lambda: _print_report(report), is_good=report.is_complete)

    work(metadata=metadata, as_json=as_json)


def _document(report: DecommissionReport) -> dict[str, Any]:
    return {
        "bookies": list(report.bookies),
        "complete": report.is_complete,
        "ledgers": report.held,
        "moved_copies": len(report.moved),
        "moved_entries": sum(moved.entries for moved in report.moved),
        "moved_bytes": sum(moved.size for moved in report.moved),
        "recovered": report.recovered,
        "stuck": [{"ledger": stuck.ledger_id, "reason": str(stuck)} for stuck in report.stuck],
        "running": report.running,
        "forgotten": report.forgotten,
        "given_up": report.given_up,
    }


def _print_report(report: DecommissionReport) -> None:
    names = ", ".join(report.bookies)
    print_moved(names, report.moved)
    if report.recovered:
        click.echo(f"recovered and closed: {', '.join(map(str, report.recovered))}")
    if report.is_complete:
        click.echo(f"{counted(report.held, 'ledger')} found whole; forgotten: {', '.join(report.forgotten)}")
        if report.given_up:
            click.echo(f"copies of deleted ledgers that were given up: {some_of(report.given_up, _SHOWN)}")
        return
    if report.stuck:
        print_stuck(report.stuck, most=_SHOWN)
        click.echo(f"{names} not forgotten; when the reasons are gone, start this command again")
    elif report.running:
        running = ", ".join(report.running)
        click.echo(f"{running} holds nothing any more, and still runs: stop it, and start this command again")


def show_progress(update: Callable[..., Any], names: str, progress: DecommissionProgress) -> None:
    """Let a bar show how far the bookies are out."""
    drained = progress.drain
    entries = drained.entries + drained.ledgers
    done = min(drained.entries_done + drained.ledgers_done, entries)
    update(
        total=entries + progress.ledgers,
        completed=done + progress.whole,
        step=f"{names}: {progress.step}",
        said=f"{progress.whole}/{counted(progress.ledgers, 'ledger')} whole, {size_in_words(drained.bytes_sent)}",
    )
