"""``bk journal``'s verbs that take a journal over, after a question."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from journal_manager import Discard, EditLog, JournalFencedError, RequestId, capability, open_writer, sync
from journal_manager.commands import change, shared
from tests.journal_manager.commands.helpers import as_json, bk_journal, damage, filled, txids


def test_format_asks_before_it_removes_edits(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/edits"
    assert bk_journal("format", uri, "--cluster-id", "c", "--namespace-id", "7") == f"{uri} is empty\n"
    assert as_json("show", uri)["namespace"]["cluster_id"] == "c"
    assert bk_journal("show", uri).endswith("segments: none\nsnapshots: none\n")
    assert bk_journal("recover", uri, "--yes") == "epoch 2; it has no edits\n"
    uri = filled(tmp_path, name="full")
    assert "Remove them" in bk_journal("format", uri, data="n\n", status=1)
    assert txids(uri) == list(range(1, 8))
    bk_journal("format", uri, data="y\n")
    assert txids(uri) == []
    uri = filled(tmp_path, name="forced")
    assert bk_journal("format", uri, "--force") == f"{uri} is empty\n"


@pytest.mark.parametrize(
    "words",
    [["recover"], ["purge"], ["purge", "--below", "4"], ["discard", "--from", "4"], ["snapshot", "delete"], ["sweep"]],
)
def test_who_does_not_agree_changes_nothing(tmp_path: Path, words: list[str]) -> None:
    uri = filled(tmp_path)
    with sync.EditLog.open(uri) as log:
        before = as_json("show", uri)
        last = ["3"] if words[-1] == "delete" else []
        assert "fence" in bk_journal(*words, uri, *last, data="n\n", status=1)
        assert as_json("show", uri) == before
        log.ensure_owner()


def test_recover_ends_the_open_segment_and_fences(tmp_path: Path) -> None:
    uri = filled(tmp_path)
    found = as_json("recover", uri, "--yes")
    assert (found["epoch"], found["last"]) == (2, 7)
    assert [(s["first"], s["last"]) for s in found["finalized"]] == [(7, 7)]
    with sync.EditLog.open(uri) as log:
        assert "epoch 4; the last edit is 7" in bk_journal("recover", uri, data="y\n")
        with pytest.raises(JournalFencedError):
            log.log(b"late")
        log.abort()
    assert "there is no journal" in bk_journal("recover", f"file://{tmp_path}/nowhere", "--yes", status=1)


def test_purge_by_retention_and_below_an_edit(tmp_path: Path) -> None:
    uri = filled(tmp_path)
    plan = bk_journal("purge", uri, "--dry-run", "--keep-snapshots", "1")
    assert plan == "would be removed: the snapshot at edit 3\nwould be removed: the edits from 1 to 3\n"
    assert txids(uri) == list(range(1, 8)) and as_json("show", uri)["epoch"] == 1
    kept = ["--yes", "--keep-snapshots", "1"]
    assert bk_journal("purge", uri, *kept, "--extra-edits", "5") == "removed: the snapshot at edit 3\n"
    assert bk_journal("purge", uri, *kept) == "removed: the edits from 1 to 3\n"
    assert txids(uri, 4) == [4, 5, 6, 7]
    assert bk_journal("purge", uri, "--yes") == "nothing to remove\n"
    assert bk_journal("purge", uri, "--yes", "--below", "100") == "removed: the edits from 4 to 6\n"
    assert "takes neither" in bk_journal("purge", uri, "--below", "3", "--extra-edits", "1", status=2)


def test_discard_removes_edits_and_their_snapshots(tmp_path: Path) -> None:
    uri = filled(tmp_path)
    assert "is inside segment" in bk_journal("discard", uri, "--from", "5", "--yes", status=1)
    assert bk_journal("discard", uri, "--from", "4", data="y\n").endswith(
        "removed: the edits from 4 to 6\nremoved: the edits from 7 to 7\n"
    )
    found = as_json("show", uri)
    assert [s["last"] for s in found["segments"]] == [3] and [s["at"] for s in found["snapshots"]] == [3]
    assert bk_journal("discard", uri, "--from", "4", "--yes") == "nothing to remove\n"


def test_sweep_is_for_ledgers(tmp_path: Path) -> None:
    assert "cannot do this" in bk_journal("sweep", filled(tmp_path), "--yes", status=1)
    uri = f"bk+embedded://{tmp_path}/bk?bookies=3"
    sync.EditLog.open(uri).close()
    assert bk_journal("sweep", uri, "--yes") == "0 orphans found\n"
    assert as_json("sweep", uri, "--yes", "--delete") == []


def test_what_an_upgrade_keeps_is_not_said_to_be_removed(tmp_path: Path) -> None:
    """The backend leaves such snapshots alone, and the commands said that they had removed them."""
    uri = filled(tmp_path)
    bk_journal("upgrade", "begin", "--layout", "9", uri, "--yes")
    assert bk_journal("purge", uri, "--keep-snapshots", "1", "--yes") == "nothing to remove\n"
    assert "the snapshot at edit 3 stays" in bk_journal("snapshot", "delete", uri, "3", "--yes", status=1)
    bk_journal("upgrade", "finalize", uri, "--yes")
    assert bk_journal("snapshot", "delete", uri, "3", "--yes") == "removed: the snapshot at edit 3\n"


def test_convert_copies_edits_with_their_ids_and_the_newest_intact_snapshot(tmp_path: Path) -> None:
    source = filled(tmp_path)
    target = f"bk+embedded://{tmp_path}/bk?bookies=3"
    assert f"copied 7 edits and the snapshot at edit 5 from {source} to {target}" in bk_journal(
        "convert", source, target
    )
    with sync.EditLog.open(target) as log:
        assert [(op.txid, op.opcode) for op in log.read(1)] == [(txid, txid) for txid in range(1, 8)]
        assert [s.last for s in log.segments()] == [3, 6, 7] and log.next_txid == 8
    with sync.open_snapshots(target) as store:
        found = store.load()
        assert found is not None and found[1] == b"state at 5"
    assert "copied to an empty one only" in bk_journal("convert", source, target, status=1)
    damage(source, "snapshot_0000000000000000005")
    assert "the snapshot at edit 3" in bk_journal("convert", source, f"file://{tmp_path}/back")
    assert txids(f"file://{tmp_path}/back") == list(range(1, 8))


def taking_back_before(monkeypatch: pytest.MonkeyPatch, module: ModuleType, opens: str, uri: str) -> None:
    """Before the command, in this module, opens the journal that way, somebody discards the edits from 4 on."""
    real = getattr(module, opens)

    async def other(of: str, **options: Any) -> Any:
        if of == uri:
            monkeypatch.setattr(module, opens, real)
            async with await open_writer(uri) as writer:
                await capability(writer, Discard).discard_from(4)  # type: ignore[type-abstract]
            async with await EditLog.open(uri) as log:
                for _ in range(6):
                    await log.log(b"another")
                await log.save_snapshot(3, [b"state at 3, again"])
        return await real(of, **options)

    monkeypatch.setattr(module, opens, other)


@pytest.mark.rule("J10")
def test_purge_decides_as_the_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It decided before it took the journal over, by ids alone: the snapshot for which an older one was removed may
    have been discarded meanwhile."""
    uri = filled(tmp_path)
    taking_back_before(monkeypatch, shared, "open_writer", uri)
    bk_journal("purge", uri, "--keep-snapshots", "1", "--yes")
    with sync.open_snapshots(uri) as store:
        assert [info.at for info in store.list()] == [3]
    assert txids(uri, 4) == list(range(4, 10))


@pytest.mark.rule("J10")
def test_convert_keeps_the_requests_of_edits_whose_batch_is_too_long_for_the_copy(tmp_path: Path) -> None:
    """Such a batch was made anew edit by edit, without the requests: a client that repeated one was counted twice."""
    source, target = f"file://{tmp_path}/edits", f"bk+embedded://{tmp_path}/bk?bookies=3&max_batch_bytes=100"
    request = RequestId(b"client", 7)
    with sync.EditLog.open(source) as log:
        log.log_group([(1, bytes(60)), (2, bytes(60))], request=request)
    bk_journal("convert", source, target)
    with sync.EditLog.open(target) as log:
        assert [op.request for op in log.read(1)] == [None, request]


def test_convert_says_that_edits_were_discarded_while_it_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy had edits that the journal has no more, and a snapshot of others."""
    uri = filled(tmp_path)
    taking_back_before(monkeypatch, change, "open_snapshots", uri)
    said = bk_journal("convert", uri, f"file://{tmp_path}/copy", status=1)
    assert "were discarded while it was copied" in said
