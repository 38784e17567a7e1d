"""``bk journal upgrade``: there, back, and there for good."""

from __future__ import annotations

from pathlib import Path

import pytest

from journal_manager import sync
from tests.journal_manager.commands.helpers import as_json, bk_journal, filled, txids


@pytest.mark.parametrize("kind", ["file", "cluster"])
def test_an_upgrade_goes_back_or_is_finalized(tmp_path: Path, kind: str) -> None:
    uri = filled(tmp_path)
    if kind == "cluster":
        cluster = f"bk+embedded://{tmp_path}/bk?bookies=3"
        bk_journal("convert", uri, cluster)
        uri = cluster
    begin = ["upgrade", "begin", "--layout", "2", uri]
    assert bk_journal(*begin, "--yes").endswith("is in progress; roll-back returns to edit 7\n")
    found = as_json("show", uri)
    assert (found["layout"], found["upgraded_at"]) == (2, 7)
    assert "can be rolled back to edit 7" in bk_journal("show", uri)
    for body in (b"8", b"9"):
        with sync.EditLog.open(uri) as log:
            log.save_snapshot(log.log(body), [body])
    assert bk_journal("purge", uri, "--yes", "--below", "9") == "nothing to remove\n"
    assert "since its upgrade began" in bk_journal("upgrade", "roll-back", uri, data="n\n", status=1)
    assert bk_journal("upgrade", "roll-back", uri, data="y\n").endswith(
        "removed: the edits from 8 to 8\nremoved: the edits from 9 to 9\n"
        "the upgrade is rolled back: the journal ends at edit 7\n"
    )
    found = as_json("show", uri)
    assert (found["layout"], found["upgraded_at"], found["snapshots"][-1]["at"]) == (1, None, 5)
    assert txids(uri) == list(range(1, 8))
    assert "nothing to roll back to" in bk_journal("upgrade", "roll-back", "--yes", uri, status=1)
    bk_journal(*begin, data="y\n")
    with sync.EditLog.open(uri) as log:
        log.log(b"8")
    assert bk_journal("upgrade", "finalize", "--yes", uri) == "the upgrade is finalized\n"
    assert bk_journal("upgrade", "finalize", "--yes", uri) == "no upgrade is in progress: nothing was changed\n"
    assert txids(uri) == list(range(1, 9)) and as_json("show", uri)["layout"] == 2
    assert "would be a step back" in bk_journal("upgrade", "begin", "--layout", "1", uri, "--yes", status=1)
