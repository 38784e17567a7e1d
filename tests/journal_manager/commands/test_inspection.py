"""``bk journal``'s verbs that only look: what they show, and that they disturb nobody."""

from __future__ import annotations

import json
from pathlib import Path

import bookkeeper.sync
from journal_manager import sync
from tests.journal_manager.commands.helpers import as_json, bk_journal, damage, filled


def test_show(tmp_path: Path) -> None:
    uri = filled(tmp_path)
    found = as_json("show", uri)
    assert (found["epoch"], found["owner"], found["namespace"]["namespace_id"]) == (1, "the application", 0)
    assert [(s["first"], s["last"], s["state"]) for s in found["segments"]] == [
        (1, 3, "finalized"),
        (4, 6, "finalized"),
        (7, None, "in progress"),
    ]
    assert [(s["at"], s["size"]) for s in found["snapshots"]] == [(3, 10), (5, 10)]
    text = bk_journal("show", uri)
    assert "epoch 1 of the application" in text and "in progress" in text


def test_show_says_how_full_the_record_of_a_journal_on_ledgers_is(tmp_path: Path) -> None:
    """Nothing told that a journal that is never purged comes near the size that its metadata store takes."""
    uri = f"bk+embedded://{tmp_path}/bk?bookies=3"
    with sync.EditLog.open(uri) as log:
        log.log(b"x")
    node = as_json("show", uri)["node"]
    assert 0 < node["bytes"] < 1000 < node["max"] < 1 << 20
    assert f"its node is 0 % full ({node['bytes']} of {node['max']} bytes)" in bk_journal("show", uri)
    assert "node" not in as_json("show", filled(tmp_path))


def test_looking_fences_nobody(tmp_path: Path) -> None:
    uri = filled(tmp_path)
    with sync.EditLog.open(uri) as log:
        for verb in ("show", "select", "dump", "verify"):
            bk_journal(verb, uri)
        log.ensure_owner()
        assert log.log(b"goes on") == 8


def test_dump(tmp_path: Path) -> None:
    uri = filled(tmp_path)
    assert bk_journal("dump", uri, "--from", "3", "--to", "4") == "3\t3\t7\tedit 3\\n\n4\t4\t7\tedit 4\\n\n"
    last = json.loads(bk_journal("dump", uri, "--from", "7", "--json"))
    assert last == {"txid": 7, "opcode": 7, "body": "ZWRpdCD/"}
    assert len(bk_journal("dump", uri).splitlines()) == 7
    assert "no edit after" not in bk_journal("dump", uri, "--from", "8")


def test_dump_says_what_is_missing(tmp_path: Path) -> None:
    uri = filled(tmp_path)
    with sync.EditLog.open(uri):
        pass
    assert "edit 99 is missing; it is beyond the end" in bk_journal("dump", uri, "--from", "99", status=1)
    assert "there is no journal" in bk_journal("dump", f"file://{tmp_path}/nowhere", status=1)
    assert "no backend is installed for ftp" in bk_journal("dump", "ftp://x", status=1)


def test_select_over_several_copies(tmp_path: Path) -> None:
    one = filled(tmp_path)
    two = f"file://{tmp_path}/two"
    with sync.EditLog.open(two) as log:
        log.log_group([(1, b"x")] * 5)
    found = as_json("select", one, two)
    assert [(row["from"], row["journal"], row["first"]) for row in found["segments"]] == [
        (1, two, 1),
        (6, one, 4),
        (7, one, 7),
    ]
    assert found["missing"] is None
    bk_journal("purge", one, "--below", "4", "--yes")
    found = as_json("select", one, "--from", "2", status=1)
    assert found == {"segments": [], "missing": {"wanted": 2, "next": 4}}
    assert "edit 2 is missing" in bk_journal("select", one, "--from", "2", status=1)
    assert as_json("select", one, two, "--from", "2")["missing"] is None


def test_verify(tmp_path: Path) -> None:
    uri = filled(tmp_path)
    assert "7 edits from 1 on, 2 snapshots" in bk_journal("verify", uri)
    damage(uri, "snapshot_0000000000000000005")
    found = as_json("verify", uri, status=1)
    assert found["edits"] == 7 and len(found["problems"]) == 1 and "is damaged" in found["problems"][0]
    damage(uri, "edits_0000000000000000004-0000000000000000006")
    found = as_json("verify", uri, status=1)
    assert found["edits"] == 5 and len(found["problems"]) == 2


def test_list_the_journals_of_a_cluster(tmp_path: Path) -> None:
    cluster = f"embedded://{tmp_path}/bk?bookies=3"
    with bookkeeper.sync.BookKeeper.connect(cluster):
        pass  # makes the cluster
    assert bk_journal("list", "--metadata", cluster) == "there are no journals\n"
    for name in ("b", "a/b"):
        sync.EditLog.open(f"bk+{cluster}&name={name}").close()
    assert bk_journal("list", "--metadata", cluster) == "a/b\nb\n"
    assert as_json("list", "--metadata", cluster) == ["a/b", "b"]
