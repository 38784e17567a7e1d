"""``bk stream check``: what is wrong with streams, and its repair."""

from __future__ import annotations

import sys

import click

from bookkeeper.admin.shared.options import json_option, metadata_option, print_json
from bookkeeper.amounts import counted
from bookkeeper.option_types import Number
from segments.checks.checker import CheckOptions
from segments.checks.findings import Finding
from segments.commands.shared import complete, streams_at


@click.command()
@metadata_option
@json_option
@click.option("--repair", is_flag=True, help="Repair what can be repaired. Without it nothing is changed.")
@click.option("--no-scan", is_flag=True, help="Compare only metadata; read no entries.")
@click.option("--no-orphans", is_flag=True, help="Do not look at all ledgers of the cluster for those of no stream.")
@click.option(
    "--older-than",
    type=Number(0),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="A ledger that no stream names is left alone until it is so old: somebody may be about to name it.",
)
@click.option("--yes", is_flag=True, help="With --repair: do not ask.")
@click.argument("name", metavar="[STREAM]", required=False)
def check(
    metadata: str,
    as_json: bool,
    repair: bool,
    no_scan: bool,
    no_orphans: bool,
    older_than: float,
    yes: bool,
    name: str | None,
) -> None:
    """Compare what is known of a stream, or of all: its record, ledgers, entries, cursors, name.

    A check changes nothing and fences nobody. A repair of a stream's node takes the stream over: its writer is
    fenced. Exit status 1: something is wrong and was not repaired.
    """
    if repair and not yes:
        click.confirm("A repair takes over the streams that need one: their writers are fenced. Continue?", abort=True)
    options = CheckOptions(scan=not no_scan, repair=repair, orphans=not no_orphans, older_than_s=older_than)

    async def work() -> tuple[Finding, ...]:
        async with streams_at(metadata) as namespace:
            return await namespace.verify(name, options)

    found = complete(work(), changes=repair)
    if as_json:
        print_json([_document(finding) for finding in found])
    else:
        for finding in found:
            click.echo(_line(finding))
        left = sum(not finding.repaired for finding in found)
        what = "all streams" if name is None else name
        repaired = f", {len(found) - left} of them repaired" if repair and found else ""
        click.echo(f"{what}: {counted(len(found), 'finding')}{repaired}" if found else f"{what}: nothing is wrong")
    if any(not finding.repaired for finding in found):
        sys.exit(1)


def _line(finding: Finding) -> str:
    if finding.repaired:
        end = "repaired"
    elif finding.repair is not None:
        end = f"--repair would {finding.repair}"
    else:
        end = "nothing repairs this by itself"
    return f"{finding.stream}: {finding.text} [{end}]"


def _document(finding: Finding) -> dict[str, object]:
    return {
        "stream": finding.stream,
        "problem": finding.problem.value,
        "text": finding.text,
        "segment": finding.segment,
        "ledger": finding.ledger,
        "repair": finding.repair,
        "repaired": finding.repaired,
    }
