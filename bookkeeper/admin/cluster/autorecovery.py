"""``bk autorecovery``: a process that finds and repairs what is under-replicated; what it does; switching it."""

from __future__ import annotations

import logging
import os
import platform
from typing import TYPE_CHECKING, Any, Final

import click

from bookkeeper.admin.command_group import DefaultCommandGroup
from bookkeeper.admin.shared.amounts import byte_count
from bookkeeper.admin.shared.answers import VerbAnswer, on_cluster, verb_on_cluster
from bookkeeper.admin.shared.options import metadata_option, moment, print_table
from bookkeeper.amounts import counted, size_in_words
from bookkeeper.errors import ConfigError, NoClusterError
from bookkeeper.ids import Address
from bookkeeper.option_types import AnyNumber, Number, WholeNumber
from bookkeeper.program_log import begin_log, log_option
from bookkeeper.settings import structure

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from bookkeeper.autorecovery.status import AutorecoveryStatus
    from bookkeeper.meta.records.autorecovery import AutorecoveryNodes

DELAY_MAX_S: Final = 2**31 - 1
"""Apache's auditor reads no larger number."""
_SHOWN: Final = 20
"""Ledgers that a table for people names at most."""


@click.group(cls=DefaultCommandGroup, default="run")
def autorecovery() -> None:
    """Find under-replicated ledgers and repair them (the default), show what is being done, switch it off and on."""


@autorecovery.command()
@metadata_option
@click.option("--name", metavar="NAME", help="The name of this process in votes and locks.  [default: HOST:PID]")
@click.option(
    "--lost-bookie-delay",
    type=WholeNumber(0),
    metavar="SECONDS",
    help="Time after which an absent bookie counts as lost; `trigger --delay` changes it later.  [default: 30]",
)
@click.option(
    "--throttle",
    callback=byte_count,
    metavar="BYTES/S",
    help="The most bytes a second that it copies, for example 20M.  [default: no limit]",
)
@click.option("--parallel", type=WholeNumber(1), metavar="N", help="Ledgers repaired at a time.  [default: 4]")
@click.option(
    "--grace",
    type=Number(0),
    metavar="SECONDS",
    help="How long the writer of an open ledger has to leave a lost bookie, before the ledger is recovered.  "
    "[default: 30]",
)
@click.option(
    "--check-every",
    type=AnyNumber(),
    metavar="HOURS",
    help="How often all copies of all ledgers are checked; 0: never.  [default: 168]",
)
@click.option(
    "--check-placement-every",
    type=AnyNumber(),
    metavar="HOURS",
    help="How often it is checked that the copies of closed ledgers stand in enough racks; 0: never.  [default: 24]",
)
@click.option("--repair-placement", is_flag=True, help="Move copies apart that are in too few racks.")
@click.option(
    "--sample",
    type=Number(0, 100),
    metavar="PERCENT",
    help="How many of each copy's entries such a check reads and verifies, besides asking for lists.  [default: 0]",
)
@click.option(
    "--http",
    metavar="HOST:PORT",
    help="Show /healthz, /livez, /readyz and /metrics at this address.  [default: nowhere]",
)
@click.option("--http-insecure", is_flag=True, help="Allow --http beyond loopback: these pages change nothing.")
@click.option(
    "--http-api",
    metavar="HOST:PORT",
    help="Serve Apache's HTTP administration API at this address; it needs --http-token-file.  [default: nowhere]",
)
@click.option(
    "--http-token-file",
    metavar="FILE",
    help="With --http-api: the file of tokens that `bk gateway token` writes; all but health and metrics needs one.",
)
@click.option(
    "--http-actions",
    metavar="ACTION,...",
    help="With --http-api: which routes that change something are on, such as decommission; all: every one.  "
    "[default: none]",
)
@click.option(
    "--http-tls-cert",
    metavar="FILE",
    help="With --http-api: PEM file with its certificate and chain; then it speaks TLS, and other hosts may reach it.",
)
@click.option(
    "--http-tls-key", metavar="FILE", help="PEM file with its private key.  [default: the file of --http-tls-cert]"
)
@log_option
@click.option("--audit", metavar="FILE|log", help="With --http-api: write its audit log there.")
def run(
    metadata: str,
    name: str | None,
    lost_bookie_delay: int | None,
    throttle: int | None,
    parallel: int | None,
    grace: float | None,
    check_every: float | None,
    check_placement_every: float | None,
    repair_placement: bool,
    sample: float | None,
    http: str | None,
    http_insecure: bool,
    http_api: str | None,
    http_token_file: str | None,
    http_actions: str | None,
    http_tls_cert: str | None,
    http_tls_key: str | None,
    audit: str | None,
) -> None:
    """Run autorecovery in the foreground, until Ctrl-C or SIGTERM.

    Any number of these processes may run, beside Apache's. All of them repair ledgers. One at a time is elected
    auditor: it looks for ledgers that need repair.
    """
    from bookkeeper.audit import AuditConfig
    from bookkeeper.autorecovery import AutorecoveryConfig
    from bookkeeper.autorecovery.process import PagesConfig, serve
    from bookkeeper.bookie.http_api_config import HttpApiConfig, http_api_options
    from bookkeeper.real import NotifySocket, names_secrets, no_core_dumps

    begin_log(logging.WARNING)
    given: dict[str, Any] = {
        "lost_bookie_delay_s": lost_bookie_delay,
        "bytes_per_s": throttle,
        "parallel": parallel,
        "grace_ms": None if grace is None else int(grace * 1000),
        "ledgers_interval_s": _seconds(check_every),
        "sample_percent": sample,
        "placement_interval_s": _seconds(check_placement_every),
        "repair_placement": repair_placement or None,
    }
    shown = PagesConfig(
        http=_pages(http, allowed=http_insecure) if http is not None else None,
        api=structure(
            HttpApiConfig, http_api_options(http_api, http_token_file, http_actions, http_tls_cert, http_tls_key)
        ),
        audit=AuditConfig(to=audit),
    )
    if names_secrets(os.environ) or shown.api.listen:
        no_core_dumps()
    config = AutorecoveryConfig(**{option: given[option] for option in given if given[option] is not None})
    supervisor, own_name = NotifySocket.of_this_process(), name or f"{platform.node()}:{os.getpid()}"

    @on_cluster()
    async def work(bk: BookKeeper) -> None:
        await serve(bk, own_name, config, click.echo, shown, supervisor)

    work(metadata=metadata)


def _seconds(hours: float | None) -> float | None:
    return None if hours is None else hours * 3600


def _pages(http: str, *, allowed: bool) -> Address:
    from bookkeeper.bookie.page_address import require_page_address

    try:
        address = Address.parse(http)
    except ValueError as error:
        raise ConfigError(f"--http: {error}") from error
    require_page_address("--http", address, allowed=allowed, option="--http-insecure")
    return address


@autorecovery.command()
@verb_on_cluster()
async def status(bk: BookKeeper) -> VerbAnswer:
    """Show who audits, what is being repaired, and which ledgers are stuck and why. Exit status 1: some are stuck."""
    from bookkeeper.autorecovery.status import status_of

    found = await status_of(bk.metadata_store)
    return VerbAnswer(_document(found), lambda: _print_report(found), is_good=not found.stuck)


def _document(found: AutorecoveryStatus) -> dict[str, Any]:
    return {
        "enabled": found.enabled,
        "auditor": found.auditor,
        "lost_bookie_delay_s": found.delay_s,
        "checks": {check.name.lower(): at for check, at in found.checks.items()},
        "marked": found.marked,
        "processes": [
            {
                "name": report.name,
                "auditor": report.auditor,
                "auditing": report.auditing,
                "working": list(report.working),
                "repaired": report.repaired,
                "recovered": report.recovered,
                "copied_entries": report.copied_entries,
                "copied_bytes": report.copied_bytes,
                "waiting": report.waiting,
            }
            for report in found.reports
        ],
        "stuck": [{"ledger": ledger, "reason": reason} for ledger, reason in sorted(found.stuck.items())],
    }


def _print_report(found: AutorecoveryStatus) -> None:
    click.echo("enabled" if found.enabled else "DISABLED for this cluster: `bk autorecovery enable` switches it on")
    click.echo(f"auditor: {found.auditor}" if found.auditor else "auditor: none; run `bk autorecovery`")
    if found.delay_s is not None:
        click.echo(f"an absent bookie counts as lost after {found.delay_s} s")
    for check, at in found.checks.items():
        what = "all ledgers" if check.name == "ALL_LEDGERS" else "what bookies hold"
        click.echo(f"last check of {what}: {moment(at, 'not yet')}")
    click.echo(f"under-replicated: {counted(len(found.marked), 'ledger')}")
    for report in found.reports:
        click.echo(
            f"\n{report.name}: repaired {counted(report.repaired, 'ledger')}, "
            f"copied {counted(report.copied_entries, 'entry')} "
            f"({size_in_words(report.copied_bytes)}), recovered {counted(report.recovered, 'open ledger')}"
        )
        for line in (report.auditing, *report.working):
            if line:
                click.echo(f"  {line}")
    if found.stuck:
        rows = [{"ledger": ledger, "why": reason} for ledger, reason in sorted(found.stuck.items())]
        print_table(f"stuck: {len(rows)}", ["ledger", "why"], rows[:_SHOWN])


@autorecovery.command()
@verb_on_cluster(json=False, changes=True)
@click.option(
    "--delay",
    type=WholeNumber(0, DELAY_MAX_S),
    metavar="SECONDS",
    help="Set the time after which an absent bookie counts as lost.",
)
@click.option("--check", is_flag=True, help="Check all copies of all ledgers now, too.")
async def trigger(bk: BookKeeper, delay: int | None, check: bool) -> str:
    """Ask the auditor to look now, without any delay, even if many bookies are lost together.

    Use it when lost bookies will not come back.
    """

    from bookkeeper.meta.records.autorecovery import ClusterCheck

    records = _records(bk)
    if await records.auditor() is None:
        raise NoClusterError("there is no auditor: start one with `bk autorecovery`")
    if check:
        for each in ClusterCheck:
            await records.request_check(each)
    known = await records.delay_s()
    await records.write_delay(delay if delay is not None else known or 0)
    return "the auditor was asked to look now; `bk autorecovery status` shows what it finds"


def _records(bk: BookKeeper) -> AutorecoveryNodes:
    from bookkeeper.meta.records.autorecovery import AutorecoveryNodes

    return AutorecoveryNodes(bk.metadata_store.store, bk.metadata_store.paths)


@autorecovery.command()
@verb_on_cluster(json=False, changes=True)
async def enable(bk: BookKeeper) -> str:
    """Switch autorecovery on for the whole cluster, Java's processes included."""
    await _records(bk).enable()
    return "autorecovery is enabled"


@autorecovery.command()
@verb_on_cluster(json=False, changes=True)
async def disable(bk: BookKeeper) -> str:
    """Switch autorecovery off for the whole cluster, for instance during an upgrade.

    Copies that have begun are finished.
    """
    await _records(bk).disable()
    return "autorecovery is disabled: nothing is repaired until `bk autorecovery enable`"
