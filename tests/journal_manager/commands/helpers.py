"""A journal in a directory with two final segments, an open one and a snapshot; and ``bk journal`` on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from journal_manager import sync
from journal_manager.commands import journal


def bk_journal(*arguments: str, data: str | None = None, status: int = 0) -> str:
    """Run a command; returns what it printed."""
    result: Result = CliRunner().invoke(journal, arguments, input=data)
    assert result.exit_code == status, (result.output, result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.output


def as_json(*arguments: str, status: int = 0) -> Any:
    return json.loads(bk_journal(*arguments, "--json", status=status))


def filled(directory: Path, *, name: str = "edits") -> str:
    """Edits 1 to 3, 4 to 6, and 7 in an open segment; snapshots at 3 and 5. Its writer has vanished."""
    uri = f"file://{directory}/{name}"
    log = sync.EditLog.open(uri, owner="the application")
    for first in (1, 4):
        for txid in range(first, first + 3):
            log.log(b"edit %d\n" % txid, txid)
        log.roll()
    log.save_snapshot(3, [b"state at 3"])
    log.save_snapshot(5, [b"state at 5"])
    log.log(b"edit \xff", 7)
    log.abort()
    return uri


def txids(uri: str, start: int = 1) -> list[int]:
    with sync.open_reader(uri) as reader:
        return [op.txid for op in reader.read(start)]


def damage(uri: str, name: str) -> None:
    """Flip a bit near the end of a file of the journal."""
    path = Path(uri.removeprefix("file://")) / name
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
