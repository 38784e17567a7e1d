"""``bk bookie check``, ``index rebuild``, ``gc --offline``: what is damaged is named; changes are careful."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bookkeeper.real.disk import PosixDisk
from bookkeeper.real.workers import ThreadWorkers
from bookkeeper.storage.base.manifest import read_manifest
from bookkeeper.storage.engine import Engine
from bookkeeper.volumes.after_all import wait_until_done
from tests.bookkeeper.admin.bookie.stopped import config_of, flip, names, written
from tests.bookkeeper.admin.commands import bk


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return written(tmp_path, 1, 2)


def snapshot(home: Path) -> dict[str, bytes]:
    """Every file but the locks, which are made."""
    return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file() and "lock" not in path.name}


@pytest.mark.parametrize("deep", [[], ["--deep"]])
def test_whole_files_pass_and_nothing_is_changed(home: Path, deep: list[str]) -> None:
    before = snapshot(home)
    said = bk("bookie", "check", "--dir", home, *deep)
    assert said.status == 0 and "nothing is damaged" in said.out
    document = bk("bookie", "check", "--dir", home, "--json", *deep).document
    assert document["damaged"] == [] and document["files"]["entry log"] >= 3
    assert document["deep"] is bool(deep) and snapshot(home) == before


def test_a_bookie_that_was_killed_is_not_damaged(tmp_path: Path) -> None:
    said = bk("bookie", "check", "--deep", "--dir", written(tmp_path, 1, 2, clean=False))
    assert said.status == 0 and "was not stopped cleanly" in said.out


@pytest.mark.rule("G4", "K30")
def test_a_deep_check_finds_a_record_that_rots_and_says_whose_entries_they_are(home: Path) -> None:
    (path,) = [path for path in names(home, ".log") if b"2/29 " in path.read_bytes()]
    flip(path, path.read_bytes().index(b"2/29 ") + 20)
    assert bk("bookie", "check", "--dir", home).status == 0, "its frame is whole"
    said = bk("bookie", "check", "--deep", "--dir", home)
    assert said.status == 1 and "hold no valid record; entries of ledger 2" in said.out


@pytest.mark.parametrize(
    ("ending", "offset"),
    [(".log", 10), (".log", -3), (".index", -3), ("manifest", 20)],
)
def test_the_frame_of_every_file_is_checked_without_deep(home: Path, ending: str, offset: int) -> None:
    path = names(home, ending)[0]
    flip(path, offset if offset > 0 else path.stat().st_size + offset)
    said = bk("bookie", "check", "--dir", home)
    assert said.status == 1 and path.name in said.out


@pytest.mark.parametrize("ending", [".log", ".index", "manifest"])
def test_a_file_that_is_missing_is_named(home: Path, ending: str) -> None:
    path = names(home, ending)[0]
    path.unlink()
    said = bk("bookie", "check", "--dir", home)
    assert said.status == 1 and f"{path.name}: it is missing" in said.out.replace("\n", "")


def test_a_page_of_the_index_and_a_group_of_the_journal_are_checked(tmp_path: Path) -> None:
    home = written(tmp_path, 1, 2, clean=False)
    (index,) = [path for path in names(home, ".index") if path.stat().st_size > 4096 + 240]
    flip(index, 4096 + 3)
    assert bk("bookie", "check", "--dir", home).status == 0
    said = bk("bookie", "check", "--deep", "--dir", home)
    assert said.status == 1 and "the index page of ledger 1 fails its checksum" in said.out
    (path,) = [path for path in names(home, ".journal") if b"1/0 " in path.read_bytes()]
    flip(path, path.read_bytes().index(b"1/0 "))
    assert "is damaged: later groups are there" in bk("bookie", "check", "--dir", home).out


def test_a_note_of_the_bookie_is_checked(home: Path) -> None:
    (home / "identity.json").write_text('{"bookie_id": 3')
    (home / "boot").write_text("7\ncrc32c 00000000\n")
    said = bk("bookie", "check", "--dir", home)
    assert said.status == 1 and "identity.json" in said.out and "its checksum does not match" in said.out


def test_left_over_files_are_named_and_no_damage(home: Path) -> None:
    (home / "ledgers" / "00ffff.log").write_bytes(bytes(5000))
    said = bk("bookie", "check", "--dir", home)
    assert said.status == 0 and "no manifest names 00ffff.log" in said.out


@pytest.mark.rule("B11")
@pytest.mark.parametrize("words", [("check",), ("index", "rebuild"), ("gc", "--offline")])
def test_a_bookie_that_runs_is_left_alone(home: Path, words: tuple[str, ...]) -> None:
    lock = PosixDisk().lock(str(home / "ledgers" / "lock"))
    try:
        bk("bookie", *words, "--dir", home).refused("a bookie runs on", "stop it first")
    finally:
        lock.release()
    assert bk("bookie", *words, "--dir", home).status == 0


# -- the index --------------------------------------------------------------------------------------------


@pytest.mark.rule("K19")
def test_the_next_start_rebuilds_the_index(home: Path) -> None:
    before = snapshot(home)
    assert "would rebuild" in bk("bookie", "index", "rebuild", "--dry-run", "--dir", home).out
    assert snapshot(home) == before
    assert "the next start rebuilds" in bk("bookie", "index", "rebuild", "--dir", home).out
    manifest = read_manifest(PosixDisk(), str(home / "ledgers"))
    assert manifest is not None and manifest.rebuild

    async def start() -> None:
        engine = Engine.open(config_of(home), PosixDisk(), ThreadWorkers())
        assert engine.report.rebuilt and engine.report.limbo_reason is None
        await wait_until_done(engine.close)

    asyncio.run(start())
    assert bk("bookie", "check", "--deep", "--dir", home).status == 0


@pytest.mark.rule("B5", "K19")
def test_an_index_is_not_rebuilt_from_damaged_logs_unless_that_is_accepted(home: Path) -> None:
    (path,) = [path for path in names(home, ".log") if b"2/29 " in path.read_bytes()]
    flip(path, path.read_bytes().index(b"2/29 ") + 20)
    before = snapshot(home)
    said = bk("bookie", "index", "rebuild", "--dir", home)
    assert said.status == 1 and "the index stays as it is" in said.err and snapshot(home) == before
    assert bk("bookie", "index", "rebuild", "--dir", home, "--accept-damage", "--json").document["rebuild"]


# -- garbage ----------------------------------------------------------------------------------------------


@pytest.mark.rule("K3", "G1")
def test_logs_in_which_nothing_lives_go_and_others_stay(tmp_path: Path) -> None:
    home = written(tmp_path, 1, 2, drop=(1,))
    before = snapshot(home)
    dry = bk("bookie", "gc", "--offline", "--dry-run", "--dir", home, "--json").document
    assert dry["removed"] and snapshot(home) == before
    done = bk("bookie", "gc", "--offline", "--dir", home)
    assert "came free" in done.out
    there = {path.name for path in names(home, ".log")}
    assert there == {f"{log['log']:06x}.log" for log in dry["logs"] if not log["removed"]}
    assert bk("bookie", "check", "--deep", "--dir", home).status == 0
    assert bk("bookie", "gc", "--offline", "--dir", home, "--json").document["removed"] == []


@pytest.mark.rule("G4")
def test_nothing_is_removed_while_the_index_is_damaged(tmp_path: Path) -> None:
    home = written(tmp_path, 1, 2, drop=(1,))
    (index,) = [path for path in names(home, ".index") if path.stat().st_size > 4096 + 240]
    flip(index, 4096 + 3)
    before = snapshot(home)
    bk("bookie", "gc", "--offline", "--dir", home).refused("nothing is removed while something is damaged")
    bk("bookie", "index", "rebuild", "--dir", home)
    bk("bookie", "gc", "--offline", "--dir", home).refused("the index is to be rebuilt")
    assert set(snapshot(home)) == set(before)


def test_a_compaction_needs_a_bookie_that_runs(home: Path) -> None:
    bk("bookie", "gc", "--offline", "--major", "--dir", home).refused("--major needs a running bookie", status=2)


# -- scrub ------------------------------------------------------------------------------------------------


@pytest.mark.rule("K30", "B5")
def test_what_an_offline_scrub_finds_is_suspect_from_the_next_start_on(home: Path) -> None:
    before = snapshot(home)
    said = bk("bookie", "scrub", "--offline", "--dir", home, "--throttle", "100M")
    assert said.status == 0 and "nothing is damaged" in said.out and snapshot(home) == before
    (path,) = [path for path in names(home, ".log") if b"2/29 " in path.read_bytes()]
    flip(path, path.read_bytes().index(b"2/29 ") + 20)
    said = bk("bookie", "scrub", "--offline", "--dir", home)
    assert said.status == 1 and "the next start suspects and repairs 1 ledger" in said.out

    async def start() -> None:
        engine = Engine.open(config_of(home), PosixDisk(), ThreadWorkers())
        assert engine.suspects == {2} and engine.report.limbo_reason is None
        await wait_until_done(engine.close)

    asyncio.run(start())


@pytest.mark.rule("K30", "K19")
def test_an_offline_scrub_has_a_damaged_index_rebuilt(home: Path) -> None:
    (index,) = [path for path in names(home, ".index") if path.stat().st_size > 4096 + 240]
    flip(index, 4096 + 3)
    said = bk("bookie", "scrub", "--offline", "--dir", home)
    assert said.status == 1 and "the next start rebuilds the index" in said.out
    manifest = read_manifest(PosixDisk(), str(home / "ledgers"))
    assert manifest is not None and manifest.rebuild


def test_without_its_map_every_ledger_of_a_damaged_log_is_suspect(home: Path) -> None:
    path = names(home, "000001.log")[0]
    flip(path, path.stat().st_size - 3)
    flip(path, 4096 + 60)
    assert "suspects and repairs 2 ledgers" in bk("bookie", "scrub", "--offline", "--dir", home).out


@pytest.mark.rule("B11")
def test_an_offline_scrub_leaves_a_bookie_that_runs_alone(home: Path) -> None:
    lock = PosixDisk().lock(str(home / "ledgers" / "lock"))
    try:
        bk("bookie", "scrub", "--offline", "--dir", home).refused("a bookie runs on")
    finally:
        lock.release()
    bk("bookie", "scrub", "--offline", "--now", "--dir", home).refused("--now is for a running bookie", status=2)
    bk("bookie", "scrub", "--throttle", "1M", "--dir", home).refused("--throttle needs --offline", status=2)
