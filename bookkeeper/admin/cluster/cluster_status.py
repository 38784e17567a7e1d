"""``bk cluster status``: one screen about a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from bookkeeper.access import Mode
from bookkeeper.admin.command_group import CommandGroup
from bookkeeper.admin.shared.answers import VerbAnswer, on_cluster
from bookkeeper.admin.shared.options import json_option, metadata_option, print_json, screen_console, table_of
from bookkeeper.amounts import counted, size_in_words, state_in_words
from bookkeeper.errors import MetadataError, in_words
from bookkeeper.ids import some_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bookkeeper import BookKeeper
    from bookkeeper.autorecovery.cluster_status import BookieStatus, ClusterObserver, ClusterStatus

EVERY_S: Final = 2.0
"""Seconds between two looks of --watch."""

_SHOWN: Final = 10
"""Ledgers that the screen names at most."""


@click.group(cls=CommandGroup)
def cluster() -> None:
    """Show a whole cluster."""


@cluster.command()
@metadata_option
@json_option
@click.option("--watch", is_flag=True, help="Look again every 2 seconds, until Ctrl-C.")
def status(metadata: str, as_json: bool, watch: bool) -> None:
    """Show the bookies, the ledgers, what is lost, short or stuck, and what autorecovery does.

    \b
    lost   entries that no registered bookie has, or metadata that cannot be read
    short  a ledger that lacks copies: it is marked, or names an absent bookie
    stuck  a ledger whose repair does not succeed, with the reason

    Exit status 0: nothing is lost, short or stuck, and every registered bookie answers.
    With --json --watch each look is one line.
    """

    @on_cluster()
    async def work(bk: BookKeeper) -> VerbAnswer:
        from bookkeeper.autorecovery.cluster_status import ClusterObserver

        observer = ClusterObserver(bk)
        if watch:
            await _watch(observer, as_json)
        found = await observer.observe()
        console = screen_console(markup=False, emoji=False)
        return VerbAnswer(document(found), lambda: console.print(screen(found, console.width)), is_good=found.is_well)

    work(metadata=metadata, as_json=as_json)


async def _watch(observer: ClusterObserver, as_json: bool) -> None:
    """Show one look after the other until it is interrupted: on a terminal in place, elsewhere one below the other. A
    store that does not answer is shown, and asked again."""
    if as_json:
        await _repeat(observer, lambda found: print_json(found if isinstance(found, dict) else document(found)))
    from rich.live import Live

    def shown(found: ClusterStatus | dict[str, Any]) -> RenderableType:
        return f"{found['problem']}; it is tried again" if isinstance(found, dict) else screen(found, console.width)

    console = screen_console(markup=False, emoji=False)
    if not console.is_terminal:
        await _repeat(observer, lambda found: console.print(shown(found)))
    with Live(console=console, auto_refresh=False, screen=True) as live:
        await _repeat(observer, lambda found: live.update(shown(found), refresh=True))


async def _repeat(observer: ClusterObserver, show: Callable[[ClusterStatus | dict[str, Any]], None]) -> NoReturn:
    while True:
        try:
            show(await observer.observe())
        except MetadataError as error:
            show({"well": False, "problem": f"the metadata cannot be read: {in_words(error)}"})
        await asyncio.sleep(EVERY_S)


def document(found: ClusterStatus) -> dict[str, Any]:
    """A look as plain data."""
    autorecovery = found.autorecovery
    return {
        "well": found.is_well,
        "bookies": [
            {
                "bookie": each.bookie,
                "state": each.state,
                "total": each.total,
                "free": each.free,
                "problem": each.problem or None,
            }
            for each in found.bookies
        ],
        "ledgers": {
            "count": found.ledgers.count,
            "bytes": found.ledgers.size,
            **{state.name.lower(): count for state, count in sorted(found.ledgers.by_state.items())},
        },
        "lost": found.lost,
        "short": found.short,
        "silent": found.silent,
        "stuck": [{"ledger": ledger, "reason": reason} for ledger, reason in sorted(found.stuck.items())],
        "unreadable": [{"ledger": ledger, "reason": why} for ledger, why in sorted(found.ledgers.unreadable.items())],
        "autorecovery": {
            "enabled": autorecovery.enabled,
            "auditor": autorecovery.auditor,
            "auditing": _auditing(found) or None,
            "working": _working(found),
        },
        "access": {
            "mode": found.access.value if found.access is not None else None,
            "not_enforced_by": list(found.not_enforcing),
        },
    }


def _auditing(found: ClusterStatus) -> str:
    """What the auditor says it does; Java's says nothing."""
    return next((report.auditing for report in found.autorecovery.reports if report.auditor), "")


def _working(found: ClusterStatus) -> list[str]:
    return [line for report in found.autorecovery.reports for line in report.working]


def screen(found: ClusterStatus, width: int) -> RenderableType:
    """A look for people, on a terminal of so many columns."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows = [
        {
            "bookie": each.bookie,
            "state": each.state,
            "total": size_in_words(each.total),
            "free": size_in_words(each.free),
            "problem": each.problem,
        }
        for each in found.bookies
    ]
    columns = ["bookie", "state", "total", "free", "problem"]
    table = table_of(columns, rows, width)
    said = lines(found)
    return Group(
        Text(_bookies(found.bookies)),
        *([table] if rows else []),
        Text("\n".join(said if isinstance(table, Table) else ["", *said])),
    )


def _bookies(bookies: Sequence[BookieStatus]) -> str:
    states = [each.state for each in bookies]
    return f"{counted(len(bookies), 'bookie')}: " + ", ".join(
        f"{states.count(state)} {state}" for state in ("writable", "read-only", "absent")
    )


def lines(found: ClusterStatus) -> list[str]:
    """What is said below the table of bookies."""
    ledgers, autorecovery = found.ledgers, found.autorecovery
    states = ", ".join(f"{count} {state_in_words(state.name)}" for state, count in sorted(ledgers.by_state.items()))
    said = [
        f"{counted(ledgers.count, 'ledger')}" + (f": {states}" if states else "") + f"; {size_in_words(ledgers.size)}",
        f"lost: {_named(found.lost)}",
        f"short of copies: {_named(found.short)}",
        f"stuck: {_named(sorted(found.stuck))}",
    ]
    if found.silent:
        said.append(f"registered, and no answer: {some_of(found.silent, _SHOWN)}")
    reasons = {**ledgers.unreadable, **found.stuck}
    said += [f"  ledger {ledger}: {reason}" for ledger, reason in sorted(reasons.items())[:_SHOWN]]
    if autorecovery.enabled:
        said.append("autorecovery: enabled")
    else:
        said.append("autorecovery: DISABLED; `bk autorecovery enable` switches it on")
    if autorecovery.auditor is None:
        said.append("auditor: none; run `bk autorecovery`")
    else:
        said.append(": ".join(filter(None, (f"auditor {autorecovery.auditor}", _auditing(found)))))
    said += [f"  {line}" for line in _working(found)[:_SHOWN]]
    said += _access(found)
    said.append("well: nothing is lost, short or stuck" if found.is_well else "NOT WELL")
    return said


def _access(found: ClusterStatus) -> list[str]:
    """What the access policy does; nothing where it is off."""
    if found.access is Mode.OFF:
        return []
    if found.access is None:
        return ["access policy: CANNOT BE READ; `bk access list` says why"]
    said = [f"access policy: {found.access.value}"]
    if found.not_enforcing:
        names = some_of(found.not_enforcing, _SHOWN)
        said.append(f"  NOT ENFORCED by {names}: Java's, or of an earlier version, and open to every client there")
    return said


def _named(ledgers: Sequence[int]) -> str:
    if not ledgers:
        return "none"
    return f"{counted(len(ledgers), 'ledger')} ({some_of(ledgers, _SHOWN)})"
