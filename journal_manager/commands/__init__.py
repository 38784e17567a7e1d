"""``bk journal``: commands for edit logs and their journals.

shared         the argument JOURNAL, errors in words, the question before a journal is taken over
inspection     list, show, select, dump, verify: change nothing and fence nobody
change         format, recover, purge, discard, sweep, convert: become the journal's owner first
snapshot       snapshot list, export, import, delete
upgrade        upgrade begin, finalize, roll-back
oev            HDFS's edits files
"""

from __future__ import annotations

import click

from bookkeeper.admin.command_group import CommandGroup
from journal_manager.commands.change import convert, discard, format_command, purge, recover, sweep
from journal_manager.commands.inspection import dump, list_command, select_command, show, verify
from journal_manager.commands.oev import oev
from journal_manager.commands.snapshot import snapshot
from journal_manager.commands.upgrade import upgrade


@click.group(cls=CommandGroup)
def journal() -> None:
    """Look at edit logs and manage them.

    \b
    A JOURNAL is an address:
      file:///DIR                         a directory
      bk+zk://HOST:PORT/ledgers?name=N    ledgers of a cluster; also bk+sqlite:///FILE, bk+embedded:///DIR
      bk:N?metadata=URI                   the same
    """


for _command in (
    list_command,
    show,
    select_command,
    dump,
    verify,
    format_command,
    recover,
    purge,
    discard,
    sweep,
    convert,
    snapshot,
    upgrade,
    oev,
):
    journal.add_command(_command)

__all__ = ["journal"]
