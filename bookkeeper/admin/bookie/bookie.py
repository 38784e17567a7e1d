"""``bk bookie``: runs a bookie (the default), gives commands to one that runs, looks at the files of one that does not.

The commands go by the socket in the bookie's directory. What concerns files is in :mod:`bookkeeper.admin.bookie.dumps`,
:mod:`~bookkeeper.admin.bookie.bookie_checks` and :mod:`~bookkeeper.admin.bookie.cookies`.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from bookkeeper.admin.command_group import DefaultCommandGroup
from bookkeeper.admin.shared.amounts import byte_count
from bookkeeper.admin.shared.options import in_cell, json_option, print_json, print_table
from bookkeeper.amounts import counted, size_in_words, time_in_words
from bookkeeper.bookie.command import bookie as run_bookie
from bookkeeper.bookie.control.bookie_control import SOCKET
from bookkeeper.real import run
from bookkeeper.real.unix_socket import request_unix

_SHOWN: Final = 40
"""Entry logs that a table for people has at most."""


_OTHERS: Final = {
    "add-directory": "bookkeeper.admin.bookie.bookie_directories:add_directory",
    "check": "bookkeeper.admin.bookie.bookie_checks:check",
    "cookie": "bookkeeper.admin.bookie.cookies:cookie",
    "directories": "bookkeeper.admin.bookie.bookie_directories:directories",
    "drain-directory": "bookkeeper.admin.bookie.bookie_directories:drain_directory",
    "index": "bookkeeper.admin.bookie.bookie_checks:index",
    "journal": "bookkeeper.admin.bookie.dumps:journal",
    "last-mark": "bookkeeper.admin.bookie.dumps:last_mark",
    "log": "bookkeeper.admin.bookie.dumps:log",
    "lose-directory": "bookkeeper.admin.bookie.bookie_directories:lose_directory",
}
"""What a bookie that is started need not import."""


@click.group(cls=DefaultCommandGroup, default="run", others=_OTHERS)
def bookie() -> None:
    """Run a bookie in the foreground (the default), command one that runs on this machine, or look at the files of one
    that does not."""


bookie.add_command(run_bookie, "run")

directory_option = click.option(
    "--dir",
    "--directory",
    "directory",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The directory of the bookie, as it was started with.",
)


def send_command(directory: Path, command: str, **options: Any) -> dict[str, Any]:
    """Give a command; show what the bookie says meanwhile, if a person looks on. Its result."""
    path = directory.resolve() / SOCKET

    async def work() -> dict[str, Any]:
        answer: dict[str, Any] = {}
        async for line in request_unix(str(path), json.dumps({"command": command, **options}).encode()):
            answer = json.loads(line)
            if "says" in answer and sys.stderr.isatty():
                click.echo(answer["says"], err=True)
        return answer

    try:
        answer = run(work())
    except FileNotFoundError:
        raise click.ClickException(f"no bookie runs in {directory}: there is no {SOCKET}") from None
    except ConnectionError:
        raise click.ClickException(f"no bookie runs in {directory}: no process answers at {SOCKET}") from None
    except PermissionError:
        raise click.ClickException(f"{path} may be used only by the user that runs the bookie, and by root") from None
    if "result" not in answer:
        raise click.ClickException(answer.get("error", "the bookie ended before it answered; try again"))
    return dict(answer["result"])


_ONLY_IF_ANY: Final = ("ledgers_in_doubt", "kept_though_unknown")
"""Numbers that are 0 unless something has happened to this bookie or its cluster."""


@bookie.command()
@directory_option
@json_option
def status(directory: Path, as_json: bool) -> None:
    """Show what a running bookie knows of itself, and what it is doing."""
    found = send_command(directory, "status")
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        if name != "sentences" and value is not None and (value or name not in _ONLY_IF_ANY):
            click.echo(f"{name.replace('_', ' ')}: {in_cell(value)}")
    for sentence in found.get("sentences", ()):
        click.echo(sentence)


@bookie.command()
@directory_option
@json_option
@click.option("--major", is_flag=True, help="Compact also logs that are mostly alive (by default up to 80 %).")
@click.option(
    "--dry-run", is_flag=True, help="Only show the live share of each log, and the space that a run would free."
)
@click.option("--offline", is_flag=True, help="On a stopped bookie: remove logs whose ledgers were all dropped.")
@click.option("--config", "path", metavar="FILE", help="With --offline: its TOML file, which may name the directories.")
@click.option("--ledger-dir", metavar="DIR", help="With --offline, of several ledger directories: which one.")
def gc(
    directory: Path, as_json: bool, major: bool, dry_run: bool, offline: bool, path: str | None, ledger_dir: str | None
) -> None:
    """Look for deleted ledgers now, and compact entry logs; or show what that would free.

    A ledger's data are dropped when two passes have found it deleted, a while apart: the second `gc` may free what the
    first could not. With --offline the metadata are not asked, and nothing is compacted: only entry logs are removed
    of which every ledger was dropped before.
    """
    if offline:
        if major:
            raise click.UsageError("--major needs a running bookie: only it compacts")
        from bookkeeper.admin.bookie.bookie_checks import collect_offline
        from bookkeeper.admin.bookie.stopped_bookie import find_stopped

        collect_offline(find_stopped(str(directory), path, ledger_dir=ledger_dir), as_json, dry_run)
        return
    if ledger_dir is not None:
        raise click.UsageError("--ledger-dir needs --offline: a running bookie collects in all of them")
    found = send_command(directory, "gc", major=major, dry_run=dry_run)
    if as_json:
        print_json(found)
        return
    rows = [
        {
            "directory": row.get("directory"),
            "log": row["log"],
            "size": size_in_words(row["bytes"]),
            "alive": f"{100 * row['live_bytes'] // row['bytes']} %" if row["bytes"] else "",
            "taken by": "minor, major" if row["minor"] else "major" if row["major"] else "",
            "frees": size_in_words(row["wins_bytes"]) if row["wins_bytes"] else "",
            "remark": row["left"] or ("is being filled" if row["filling"] else ""),
        }
        for row in found["logs"]
    ]
    several = ["directory"] if any(row["directory"] for row in rows) else []
    columns = [*several, "log", "size", "alive", "taken by", "frees", "remark"]
    print_table(counted(len(rows), "entry log"), columns, rows, most=_SHOWN)
    if not dry_run:
        won = max(0, found["bytes_before"] - found["bytes_after"])
        click.echo(f"dropped {counted(len(found['dropped']), 'ledger')}; {size_in_words(won)} came free")
        _say_what_waits(found)


def _say_what_waits(found: Mapping[str, Any]) -> None:
    """Deleted ledgers whose space did not come free, and when it does."""
    if waiting := found.get("waiting", 0):  # bookies of an earlier version do not say it
        deleted = counted(waiting, "more ledger", "is", "are")
        seconds = math.ceil(found["waiting_s"])
        click.echo(
            f"{deleted} not in the metadata any more: a pass from {seconds} s on drops what is still absent then"
        )
    if restorable := found.get("restorable", 0):
        kept = counted(restorable, "deleted ledger")
        click.echo(f"{kept} can be brought back until the grace is over; bk ledger delete ID --grace 0 ends it sooner")


@bookie.command()
@directory_option
@json_option
@click.option("--now", is_flag=True, help="Read everything now, as fast as the bookie's limit allows, and wait for it.")
@click.option("--offline", is_flag=True, help="On a stopped bookie: read its files now.")
@click.option(
    "--throttle",
    callback=byte_count,
    metavar="BYTES/S",
    help="With --offline: the most bytes a second, for example 20M.  [default: no limit]",
)
@click.option("--config", "path", metavar="FILE", help="With --offline: its TOML file, which may name the directories.")
@click.option("--ledger-dir", metavar="DIR", help="With --offline, of several ledger directories: which one.")
def scrub(
    directory: Path,
    as_json: bool,
    now: bool,
    offline: bool,
    throttle: int | None,
    path: str | None,
    ledger_dir: str | None,
) -> None:
    """Show what the scrub of a running bookie is doing and has found; or have it read everything now.

    A bookie reads every stored byte within a period and checks it. What is damaged is quarantined, and the ledgers of
    which entries may be lost are repaired from their other bookies. With --offline the files of a bookie that does not
    run are read, and its next start repairs what was found. Exit status 1: something is damaged.
    """
    if offline:
        if now:
            raise click.UsageError("--now is for a running bookie, and --offline for a stopped one: give one of them")
        from bookkeeper.admin.bookie.bookie_checks import scrub_offline
        from bookkeeper.admin.bookie.stopped_bookie import find_stopped

        scrub_offline(find_stopped(str(directory), path, ledger_dir=ledger_dir), as_json, throttle)
        return
    if throttle is not None:
        raise click.UsageError("--throttle needs --offline: a running bookie has scrub_bytes_per_s")
    if ledger_dir is not None:
        raise click.UsageError("--ledger-dir needs --offline: a running bookie scrubs all of them")
    found = send_command(directory, "scrub", now=now)
    if as_json:
        print_json(found)
    else:
        _print_scrub(found)
    if found["damaged"]:
        sys.exit(1)


def _print_scrub(found: dict[str, Any]) -> None:
    ended = found["seconds_since_pass"]
    if found["running"]:
        left = f"{counted(found['files_left'], 'file')}, {size_in_words(found['bytes_left'])}"
        click.echo(f"a scrub is running; still to be read: {left}")
    elif found["next_pass_in_s"] is not None:
        wait = found["next_pass_in_s"]
        click.echo(f"the next scrub begins {f'in {time_in_words(wait)}' if wait >= 1 else 'at once'}")
    else:
        click.echo("no scrub is running, and none begins by itself")
    if ended is not None:
        click.echo(f"the last scrub ended {f'{time_in_words(ended)} ago' if ended >= 1 else 'just now'}")
    click.echo(f"{size_in_words(found['read_bytes'])} read since the start")
    for sentence in found["sentences"]:
        click.echo(sentence)
    if found["suspects"]:
        click.echo(f"ledgers that are not whole yet: {', '.join(map(str, found['suspects'][:_SHOWN]))}")
    click.echo(counted(len(found["damaged"]), "damaged place") if found["damaged"] else "no damage was found")


@bookie.command()
@directory_option
def suspend(directory: Path) -> None:
    """Let compaction rest until `resume`, or until the bookie is started again. Nothing is lost."""
    send_command(directory, "suspend")
    click.echo("compaction is suspended; `bk bookie resume` resumes it")


@bookie.command()
@directory_option
def resume(directory: Path) -> None:
    """Let compaction go on."""
    send_command(directory, "resume")
    click.echo("compaction goes on")
