"""``bk bookies info``, ``drain`` and ``forget``: managing bookies that come and go."""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from bookkeeper.admin.shared.amounts import byte_count
from bookkeeper.admin.shared.answers import VerbAnswer, on_cluster, verb_on_cluster
from bookkeeper.admin.shared.options import F, connected, finish, json_option, metadata_option, print_json, print_table
from bookkeeper.admin.shared.progress import progress_bar, status_line
from bookkeeper.amounts import counted, size_in_words
from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import some_of
from bookkeeper.option_types import Number, WholeNumber
from bookkeeper.replication.config import DrainConfig
from bookkeeper.settings import default_of

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from bookkeeper.client.operators import Operator
    from bookkeeper.replication import (
        DrainConfig,
        DrainProgress,
        DrainReport,
        ForgottenBookies,
        LedgerShare,
        MovedCopy,
        StuckLedger,
    )

_SHOWN: Final = 20
"""Ledgers that a list for people has at most."""


@click.command()
@verb_on_cluster()
@click.argument("names", nargs=-1, metavar="[ID]...")
async def info(bk: BookKeeper, names: tuple[str, ...]) -> VerbAnswer:
    """Ask bookies how full they are, and show it (default: all bookies that are registered)."""
    from bookkeeper.client.operators import Operator

    operator = Operator(bk)
    up = [*await operator.writable_bookies(), *await operator.read_only_bookies()]
    rows = [await _info(operator, name) for name in names or sorted(up)]
    shown = [{**row, **{key: size_in_words(row[key]) for key in ("total", "free")}} for row in rows]
    columns = ["bookie", "total", "free", "problem"]
    return VerbAnswer(
        rows,
        lambda: print_table(counted(len(rows), "bookie"), columns, shown),
        is_good=not any(row["problem"] for row in rows),
    )


async def _info(operator: Operator, name: str) -> dict[str, Any]:
    try:
        found = await operator.bookie_info(name)
    except BookKeeperError as error:
        return {"bookie": name, "total": None, "free": None, "problem": str(error)}
    return {"bookie": name, "total": found.total, "free": found.free, "problem": None}


def drain_options(function: F) -> F:
    """How ledgers are moved off bookies: the options of every verb that does it, for :func:`drain_config`."""
    for option in (
        click.option(
            "--while-writable",
            is_flag=True,
            help="Drain also a bookie that still takes new entries; drain it again later.",
        ),
        click.option(
            "--grace",
            type=Number(0),
            metavar="SECONDS",
            default=default_of(DrainConfig, "grace_ms") / 1000,
            show_default=True,
            help="How long --recover-open waits for a writer.",
        ),
        click.option(
            "--recover-open",
            is_flag=True,
            help="Recover ledgers whose writers do not move on; this ends the writers.",
        ),
        click.option(
            "--parallel",
            type=WholeNumber(1),
            metavar="N",
            default=default_of(DrainConfig, "parallel"),
            show_default=True,
            help="Ledgers that are moved at a time.",
        ),
        click.option(
            "--throttle",
            callback=byte_count,
            metavar="BYTES/S",
            help="The most bytes a second in all, for example 20M.  [default: no limit]",
        ),
        click.option(
            "--to",
            "targets",
            multiple=True,
            metavar="ID",
            help="A bookie to which the ledgers move. May be repeated.  [default: any writable one]",
        ),
    ):
        function = option(function)
    return function


def drain_config(
    verb: str,
    *,
    targets: tuple[str, ...],
    throttle: int | None,
    parallel: int,
    recover_open: bool,
    grace: float,
    while_writable: bool,
) -> DrainConfig:
    """What :func:`drain_options` were given. ``verb`` holds the locks, for people who look at them."""
    return DrainConfig(
        targets=targets,
        parallel=parallel,
        bytes_per_s=throttle or 0,
        recover_open=recover_open,
        grace_ms=int(grace * 1000),
        while_writable=while_writable,
        owner=f"{verb} on {platform.node()}",
    )


@click.command()
@metadata_option
@json_option
@click.argument("names", nargs=-1, required=True, metavar="ID...")
@drain_options
@click.option("--dry-run", is_flag=True, help="Only show what would be moved, and what cannot be moved.")
def drain(metadata: str, as_json: bool, names: tuple[str, ...], dry_run: bool, **given: Any) -> None:
    """Move every ledger off bookies, alive or dead, to other bookies.

    A living bookie must be read-only first: order it with `bk bookies read-only ID`. Its writers then continue on other
    bookies by themselves. Name all bookies to drain in one call, so that no
    ledger moves from one of them to another. After an interruption start the drain again. Exit status 1 means that
    something is stuck.
    """
    config = drain_config("bk drain", **given)
    if dry_run:
        _dry_run(metadata, names, config, as_json)
    else:
        _drain(metadata=metadata, as_json=as_json, names=names, config=config)


def _dry_run(metadata: str, names: tuple[str, ...], config: DrainConfig, as_json: bool) -> None:
    """Show what a drain would do now, what it would refuse, and what would be stuck."""

    async def work() -> tuple[list[LedgerShare], list[StuckLedger], list[StuckLedger], list[str]]:
        from bookkeeper.replication import cannot_move, shares_of

        async with connected(metadata) as bk:
            shares, unreadable = await shares_of(bk, names)
            stuck = await cannot_move(bk, names, shares, config)
            writable = set() if config.while_writable else set(await bk.metadata_store.bookies.writable())
            return shares, unreadable, stuck, [name for name in names if name in writable]

    shares, unreadable, stuck, writable = finish(work())
    copies = sum(copy.is_decided for share in shares for copy in share.copies)
    entries, size = sum(share.entries for share in shares), sum(share.size_guess for share in shares)
    not_closed = [share.ledger_id for share in shares if not all(copy.is_decided for copy in share.copies)]
    if as_json:
        print_json(
            {
                "bookies": list(names),
                "ledgers": len(shares),
                "copies": copies,
                "entries": entries,
                "bytes_about": size,
                "not_closed": not_closed,
                "unreadable": [str(each) for each in unreadable],
                "stuck": [{"ledger": each.ledger_id, "reason": str(each)} for each in stuck],
                "writable": writable,
            }
        )
        _refuse_stuck(stuck, unreadable)
        return
    click.echo(
        f"{', '.join(names)}: {counted(len(shares), 'ledger')} to move, {counted(entries, 'entry')} "
        "in finished fragments, "
        f"about {size_in_words(size)} of closed ledgers"
    )
    if not_closed:
        click.echo(
            f"writers must move the last fragments of ledgers that are not closed: {some_of(not_closed, _SHOWN)}"
        )
    for line in unreadable:
        click.echo(str(line))
    if writable:
        click.echo(
            "still writable, so the drain refuses them until they are read-only (or with --while-writable): "
            f"{', '.join(writable)}"
        )
    if stuck:
        click.echo(f"{counted(len(stuck), 'copy')} cannot move now; add a bookie")
        for each in stuck[:_SHOWN]:
            click.echo(f"  {each}")
        if len(stuck) > _SHOWN:
            click.echo(f"  and {len(stuck) - _SHOWN} more")
    _refuse_stuck(stuck, unreadable)


def _refuse_stuck(stuck: Sequence[StuckLedger], unreadable: Sequence[StuckLedger]) -> None:
    """End with the status that the drain would have."""
    if stuck or unreadable:
        sys.exit(1)


@on_cluster(changes=True)
async def _drain(bk: BookKeeper, names: tuple[str, ...], config: DrainConfig) -> VerbAnswer:
    from bookkeeper.replication import drain as drain_them

    with progress_bar(f"draining {', '.join(names)}", "looking for ledgers") as (update, _):
        report = await drain_them(bk, names, config, partial(_show, update))
    return VerbAnswer(_document(report), lambda: _print_report(report), is_good=report.is_complete)


def _document(report: DrainReport) -> dict[str, Any]:
    return {
        "bookies": list(report.bookies),
        "complete": report.is_complete,
        "passes": report.passes,
        "moved": [
            {
                "ledger": moved.ledger_id,
                "first_entry": moved.first_entry,
                "from": moved.old,
                "to": moved.new,
                "entries": moved.entries,
                "bytes": moved.size,
            }
            for moved in report.moved
        ],
        "recovered": report.recovered,
        "stuck": [{"ledger": stuck.ledger_id, "reason": str(stuck)} for stuck in report.stuck],
        "deleted": [{"ledger": each.ledger_id, "until_ms": each.until_ms} for each in report.deleted],
        "marks": [{"ledger": mark.ledger_id, "removed": mark.removed, "reason": mark.reason} for mark in report.marks],
    }


def _print_report(report: DrainReport) -> None:
    print_moved(", ".join(report.bookies), report.moved)
    for target, count in sorted(Counter(each.new for each in report.moved).items()):
        click.echo(f"  {count} to {target}")
    if report.recovered:
        click.echo(f"recovered and closed: {some_of(report.recovered, _SHOWN)}")
    for mark in report.marks:
        click.echo(f"mark of ledger {mark.ledger_id} {'removed' if mark.removed else 'kept'}: {mark.reason}")
    if report.deleted:
        from bookkeeper.replication.decommissioning import in_words

        click.echo(f"not moved: {in_words(report.deleted)}")
    if report.stuck:
        print_stuck(report.stuck)
    else:
        click.echo("no ledger names " + ("it" if len(report.bookies) == 1 else "them") + " any more")


def print_moved(names: str, moved: Sequence[MovedCopy]) -> None:
    """Print what was moved off bookies."""
    entries, size = sum(each.entries for each in moved), size_in_words(sum(each.size for each in moved))
    click.echo(
        f"{names}: moved {counted(entries, 'entry')} of {counted(len({e.ledger_id for e in moved}), 'ledger')}, {size}"
    )


def print_stuck(stuck: Sequence[StuckLedger], *, most: int | None = None) -> None:
    """Print a table of what cannot be moved, and why."""
    rows = [{"ledger": each.ledger_id, "what": str(each.copy or ""), "why": each.reason} for each in stuck]
    print_table(f"stuck: {len(rows)}", ["ledger", "what", "why"], rows, most=most)


give_up_option: Final = click.option(
    "--give-up-deleted",
    is_flag=True,
    help="Continue even if they have copies of deleted ledgers that `bk ledger undelete` could still restore.",
)


@click.command()
@metadata_option
@json_option
@click.argument("names", nargs=-1, required=True, metavar="ID...")
@give_up_option
@click.option("--dry-run", is_flag=True, help="Only check whether they may be forgotten.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget(
    metadata: str, as_json: bool, names: tuple[str, ...], give_up_deleted: bool, dry_run: bool, yes: bool
) -> None:
    """Forget bookies that were drained and stopped, so that the cluster no longer lists them.

    The command removes their cookies. It refuses all of them if one is registered, if a ledger's metadata name one
    (also those of a deleted ledger that can still be brought back), or if a ledger's metadata cannot be read. Files on
    their disks stay, but a bookie on these files refuses to start.

    \b
    Example, two bookies taken out of service:
      bk bookies drain b1 b2
      (stop both)
      bk bookies forget b1 b2
    """

    async def work(*, dry_run: bool) -> ForgottenBookies:
        from bookkeeper.replication import forget as forget_them

        async with connected(metadata) as bk:
            with counting(", ".join(names)) as show:
                return await forget_them(bk, names, show, give_up_deleted=give_up_deleted, dry_run=dry_run)

    asks = not (dry_run or yes)
    if asks or dry_run:  # what cannot be done is refused before the question
        done = finish(work(dry_run=True))
    if asks:
        listed = ", ".join(done.bookies)
        click.confirm(f"Forget {listed}? A bookie on their files will refuse to start.", abort=True, err=True)
    if not dry_run:
        done = finish(work(dry_run=False), changes=True)
    if as_json:
        print_json({"forgotten": done.removed, "ledgers": done.ledgers, "given_up": done.given_up, "dry_run": dry_run})
    elif dry_run:
        click.echo(f"may be forgotten: {', '.join(done.bookies)}; checked {counted(done.ledgers, 'ledger')}")
    else:
        click.echo(
            f"forgotten: {', '.join(done.removed)}; checked {counted(done.ledgers, 'ledger')}, and none of "
            "them names these bookies"
        )
        if done.given_up:
            click.echo(f"copies of deleted ledgers that were given up: {some_of(done.given_up, _SHOWN)}")


@contextmanager
def counting(names: str) -> Iterator[Callable[[int], None]]:
    """Show on a terminal how many ledgers were checked; otherwise nothing."""
    with status_line("looking for ledgers") as show:
        yield lambda ledgers: show(f"looking for {names} in {counted(ledgers, 'ledger')}")


def _show(update: Callable[..., Any], progress: DrainProgress) -> None:
    said = f"{progress.ledgers_done}/{counted(progress.ledgers, 'ledger')}, {size_in_words(progress.bytes_sent)}"
    if progress.stuck:
        said += f", {progress.stuck} stuck"
    done = min(progress.entries_done + progress.ledgers_done, progress.entries + progress.ledgers)
    update(total=progress.entries + progress.ledgers, completed=done, said=said)
