"""``bk bookie``: commands to a bookie that runs, by the socket in its directory."""

from __future__ import annotations

from pathlib import Path

from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import Bookies


def test_a_running_bookie_says_what_it_knows_of_itself(cluster: Bookies) -> None:
    said = bk("bookie", "status", "--dir", cluster.home / "b1", "--json").document
    assert said["bookie_id"] == "b1" and said["status"] == "ok"
    assert "bookie id: b1" in bk("bookie", "status", "--dir", cluster.home / "b1").out


def test_a_pass_now_says_what_it_has_won_and_a_dry_run_changes_nothing(cluster: Bookies) -> None:
    assert bk("ledger", "append", "-m", cluster.uri, stdin=b"one\ntwo\n").status == 0
    home = cluster.home / "b1"
    dry = bk("bookie", "gc", "--dir", home, "--dry-run", "--json").document
    assert [set(row) >= {"log", "bytes", "live_bytes", "major", "wins_bytes"} for row in dry["logs"]] != []
    assert "dropped" not in dry
    done = bk("bookie", "gc", "--dir", home, "--major", "--json").document
    assert done["dropped"] == [] and done["bytes_after"] == sum(row["bytes"] for row in done["logs"])
    shown = bk("bookie", "gc", "--dir", home)
    assert f"{len(done['logs'])} entry log" in shown.out and "dropped 0 ledgers; 0 B came free" in shown.out


def test_compaction_rests_and_goes_on(cluster: Bookies) -> None:
    home = cluster.home / "b1"
    assert "compaction is suspended" in bk("bookie", "suspend", "--dir", home).out
    assert "compaction is suspended" in bk("bookie", "status", "--dir", home).out
    assert "compaction goes on" in bk("bookie", "resume", "--dir", home).out
    assert "compaction is suspended" not in bk("bookie", "status", "--dir", home).out


def test_a_scrub_now_reads_everything_and_says_what_it_found(cluster: Bookies) -> None:
    assert bk("ledger", "append", "-m", cluster.uri, stdin=b"one\ntwo\n").status == 0
    home = cluster.home / "b2"
    shown = bk("bookie", "scrub", "--dir", home)
    assert shown.status == 0 and "no damage was found" in shown.out
    found = bk("bookie", "scrub", "--now", "--dir", home, "--json").document
    assert found["damaged"] == [] and found["suspects"] == [] and found["read_bytes"] > 4096
    assert found["seconds_since_pass"] == 0
    shown = bk("bookie", "scrub", "--dir", home)
    assert "the last scrub ended" in shown.out and "the next scrub begins in" in shown.out


def test_a_scrub_names_what_is_damaged(cluster: Bookies) -> None:
    home = cluster.home / "b3"
    note = home / "boot"
    text = note.read_bytes()
    try:
        note.write_bytes(text.replace(b"crc32c", b"crc32d"))
        said = bk("bookie", "scrub", "--now", "--dir", home)
        assert said.status == 1 and f"damaged: {note}" in said.out and "1 damaged place" in said.out
    finally:
        note.write_bytes(text)


def test_where_no_bookie_runs_it_says_so(tmp_path: Path) -> None:
    bk("bookie", "gc", "--dir", tmp_path).refused(f"no bookie runs in {tmp_path}")
    bk("bookie", "status").refused("--dir", status=2)


def test_the_help_of_the_group_has_the_options_of_a_bookie_and_the_commands() -> None:
    said = bk("bookie", "--help").out
    assert "--journal-dir" in said and "suspend" in said
