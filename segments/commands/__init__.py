"""``bk stream``: commands for streams.

shared        the cluster, the argument STREAM, places, settings, errors in words
inspection    list, show, explain: change nothing and fence nobody
records       append, read, tail, count
line_records  lines as records, and how append sends them
change        create, configure, rename, delete, truncate, purge, roll, seal
hold          hold add, list, release
apps          apps list, hand-over, forget
producers     producer list, hand-over
cursor        cursor list, show, set, history, restore, delete
transfer      export, import
check         check
"""

from __future__ import annotations

import click

from bookkeeper.admin.command_group import CommandGroup
from segments.commands.apps import apps
from segments.commands.change import configure, create, delete, purge, rename, roll, seal, truncate
from segments.commands.check import check
from segments.commands.cursor import cursor
from segments.commands.hold import hold
from segments.commands.inspection import explain, list_command, show
from segments.commands.producers import producer
from segments.commands.records import append, count, read, tail
from segments.commands.transfer import export, import_command


@click.group(cls=CommandGroup)
def stream() -> None:
    """Write, read and manage streams of records.

    \b
    A place in a stream is one of:
      earliest, latest, a position (as `read --json` shows it, or SEGMENT:ENTRY:SLOT), txid:N, seq:N,
      time:2026-11-23T04:00:00Z, event:TIME, -90s (also ms, m, h, d), cursor:NAME

    \b
    Examples:
      bk stream create orders --set retention.max_age_s=86400
      seq 1000 | bk stream append orders
      bk stream read orders --from seq:990
      bk stream explain orders
    """


for _command in (
    create,
    list_command,
    show,
    configure,
    append,
    read,
    tail,
    count,
    roll,
    seal,
    truncate,
    purge,
    cursor,
    explain,
    hold,
    apps,
    producer,
    export,
    import_command,
    check,
    rename,
    delete,
):
    stream.add_command(_command)

__all__ = ["stream"]
