"""A stopped bookie's directories: found, held, refused."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from bookkeeper.admin.bookie.stopped_bookie import find_stopped
from bookkeeper.errors import CorruptionError
from bookkeeper.real.disk import PosixDisk
from bookkeeper.volumes.disks.volume_list import VolumeList, VolumeState, write_volumes
from tests.bookkeeper.admin.bookie.stopped import flip, written


@pytest.mark.rule("B11")
def test_its_directories_are_held_while_something_is_done(tmp_path: Path) -> None:
    found = find_stopped(str(written(tmp_path, 1)), None)
    with found.held():
        for path in ("bookie.lock", "journal/lock", "ledgers/lock"):
            with pytest.raises(BlockingIOError):
                found.disk.lock(str(tmp_path / path))
    lock = found.disk.lock(str(tmp_path / "journal" / "lock"))
    with pytest.raises(click.ClickException, match="a bookie runs on"), found.held():
        raise AssertionError("it was not held")
    lock.release()
    with found.held():
        pass


def test_directories_that_are_elsewhere_are_told(tmp_path: Path) -> None:
    written(tmp_path, 1)
    found = find_stopped(
        str(tmp_path / "x"), None, journal_dir=str(tmp_path / "journal"), ledger_dir=str(tmp_path / "ledgers")
    )
    assert found.manifest().boot == 7
    with pytest.raises(click.ClickException, match="does not exist"):
        find_stopped(str(tmp_path / "x"), None)


def test_a_manifest_that_is_missing_or_damaged_has_a_reason(tmp_path: Path) -> None:
    found = find_stopped(str(written(tmp_path, 1)), None)
    manifest, reason = found.known_manifest()
    assert manifest is not None and reason is None
    flip(tmp_path / "ledgers" / "manifest", 30)
    assert found.known_manifest()[0] is None and "is damaged" in str(found.known_manifest()[1])
    with pytest.raises(CorruptionError):
        found.manifest()
    (tmp_path / "ledgers" / "manifest").unlink()
    assert "is missing" in str(found.known_manifest()[1])


def test_of_several_ledger_directories_one_is_chosen(tmp_path: Path) -> None:
    for name in ("disk1", "disk2"):
        written(tmp_path / name, 1)
    home = tmp_path / "home"
    home.mkdir()
    listed = VolumeList(1)
    for name in ("disk1", "disk2"):
        place = tmp_path / name
        listed = listed.with_new(str(place / "ledgers"), str(place / "journal"), VolumeState.USED)
    listed = listed.with_new(f"{tmp_path}/disk4", f"{tmp_path}/disk4", VolumeState.DRAINED)
    write_volumes(PosixDisk(), str(home), listed.with_state(2, VolumeState.LOST))
    for chosen in ("disk1", "disk2"):
        found = find_stopped(str(home), None, ledger_dir=str(tmp_path / chosen / "ledgers"))
        assert found.storage.ledger_dir == str(tmp_path / chosen / "ledgers")
        assert found.storage.journal_dir == str(tmp_path / chosen / "journal"), "the journal goes with it"
    text = f"choose one with --ledger-dir: {tmp_path}/disk1/ledgers$"  # the others are lost or drained
    for wrong in ({}, {"ledger_dir": str(tmp_path / "disk3")}, {"journal_dir": str(tmp_path / "disk1" / "journal")}):
        with pytest.raises(click.ClickException, match=text):
            find_stopped(str(home), None, choose=True, **wrong)
    with pytest.raises(click.ClickException, match=f"has no ledger directory {tmp_path}/disk3"):
        find_stopped(str(home), None, ledger_dir=f"{tmp_path}/disk3")
    whole = find_stopped(str(home), None, choose=False)
    assert whole.pairs == [(f"{tmp_path}/disk1/ledgers", f"{tmp_path}/disk1/journal")], "the other one is lost"
    assert whole.storage.ledger_dir == f"{tmp_path}/disk1/ledgers"
