"""``bk bookies decommission``: drains bookies, waits until their ledgers are whole, and forgets them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from bookkeeper.admin.bookies.operations import drain_config, drain_options, give_up_option
from bookkeeper.admin.shared import (
    VerbAnswer,
    counted,
    json_option,
    metadata_option,
    on_cluster,
    print_table,
    size_in_words,
)
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
    help="How long it goes on while nothing changes: a ledger is stuck, a bookie still runs.",
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

        with decommission_bar(", ".join(names)) as (show, say):
            report = await take_out(bk, names, config, show, say)
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
    names, moved = ", ".join(report.bookies), report.moved
    click.echo(
        f"{names}: moved {sum(each.entries for each in moved)} entries of "
        f"{counted(len({each.ledger_id for each in moved}), 'ledger')}, {size_in_words(sum(e.size for e in moved))}"
    )
    if report.recovered:
        click.echo(f"recovered and closed: {', '.join(map(str, report.recovered))}")
    if report.is_complete:
        click.echo(f"{counted(report.held, 'ledger')} found whole; forgotten: {', '.join(report.forgotten)}")
        if report.given_up:
            given_up = ", ".join(map(str, report.given_up[:_SHOWN]))
            more = f" and {len(report.given_up) - _SHOWN} more" if len(report.given_up) > _SHOWN else ""
            click.echo(f"copies of deleted ledgers that were given up: {given_up}{more}")
        return
    if report.stuck:
        rows = [
            {"ledger": each.ledger_id, "what": str(each.copy or ""), "why": each.reason}
            for each in report.stuck[:_SHOWN]
        ]
        print_table(f"stuck: {len(report.stuck)}", ["ledger", "what", "why"], rows)
        if len(report.stuck) > _SHOWN:
            click.echo(f"and {len(report.stuck) - _SHOWN} more (--json lists all)")
        click.echo(f"{names} not forgotten; when the reasons are gone, start this command again")
    elif report.running:
        running = ", ".join(report.running)
        click.echo(f"{running} holds nothing any more, and still runs: stop it, and start this command again")


@contextmanager
def decommission_bar(names: str) -> Iterator[tuple[Callable[[DecommissionProgress], None], Callable[[str], None]]]:
    """A progress bar on a terminal, with reasons above it; otherwise reasons alone."""
    if not sys.stderr.isatty():
        yield (lambda progress: None), (lambda reason: click.echo(reason, err=True))
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = [
        TextColumn("{task.fields[step]}"),
        BarColumn(),
        TextColumn("{task.fields[said]}"),
        TimeRemainingColumn(),
    ]
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("decommission", total=None, step=names, said="looking for ledgers")

        def show(progress: DecommissionProgress) -> None:
            drained = progress.drain
            entries = drained.entries + drained.ledgers
            done = min(drained.entries_done + drained.ledgers_done, entries)
            said = f"{progress.whole}/{progress.ledgers} ledgers whole, {size_in_words(drained.bytes_sent)}"
            bar.update(
                task,
                total=entries + progress.ledgers,
                completed=done + progress.whole,
                step=f"{names}: {progress.step}",
                said=said,
            )

        yield show, lambda reason: bar.console.print(reason, markup=False, highlight=False)
