"""``bk bookie directories``, ``add-directory``, ``drain-directory``, ``lose-directory``."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from bookkeeper.real.disk import PosixDisk
from bookkeeper.volumes.disks.volume_list import VolumeList, VolumeState, read_volumes, write_volumes
from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import Bookies, bookies


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bookies]:
    """A bookie with two ledger directories, and one with one."""
    home = tmp_path_factory.mktemp("several")
    for name in ("disk1", "disk2", "disk3", "disk4"):
        (home / name).mkdir()
    with bookies(home, ("one",)) as found:
        found.add("many", "--ledger-dir", str(home / "disk1"), "--ledger-dir", str(home / "disk2"))
        found.await_serving()
        yield found


def quorum(size: int) -> tuple[object, ...]:
    return ("--ensemble", size, "--write-quorum", size, "--ack-quorum", size)


def rows(cluster: Bookies) -> dict[str, dict[str, object]]:
    found = bk("bookie", "directories", "--dir", cluster.home / "many", "--json").document
    return {Path(row["ledger_dir"]).name: row for row in found}


def states(cluster: Bookies) -> dict[str, object]:
    return {name: row["state"] for name, row in rows(cluster).items()}


def test_directories_are_shown_added_emptied_and_given_up(several: Bookies) -> None:
    home, many = several.home, several.home / "many"
    for _ in range(4):
        stdin = b"".join(b"%d\n" % number for number in range(20))
        assert bk("ledger", "append", "-m", several.uri, *quorum(2), stdin=stdin).status == 0
    found = rows(several)
    assert states(several) == {"disk1": "used", "disk2": "used"}
    for row in found.values():
        assert row["disk"] == "writable" and row["reason"] is None and isinstance(row["free_bytes"], int)
    assert sum(int(str(row["ledgers"])) for row in found.values()) == 4
    shown = bk("bookie", "directories", "--dir", many).out
    assert "2 ledger directories" in shown and "used" in shown

    said = bk("bookie", "add-directory", "--dir", many, home / "disk3", "--journal-dir", home / "disk4")
    assert said.status == 0, said.err
    assert said.out == f"{home}/disk3 is used for ledgers from now on; add it to ledger_dirs, the next start needs it\n"
    assert states(several) == {"disk1": "used", "disk2": "used", "disk3": "used"}
    assert rows(several)["disk3"]["journal_dir"] == str(home / "disk4")
    assert any(name.name.endswith(".journal") for name in (home / "disk4").iterdir())

    moved = rows(several)["disk1"]["ledgers"]
    said = bk("bookie", "drain-directory", "--dir", many, home / "disk1")
    assert said.status == 0, said.err
    assert said.out == f"{home}/disk1 is empty of ledgers, {moved} ledgers moved; take it out of ledger_dirs\n"
    assert states(several)["disk1"] == "drained"

    there = rows(several)["disk2"]["ledgers"]
    said = bk("bookie", "lose-directory", "--dir", many, home / "disk2", "--yes")
    assert said.status == 0, said.err
    assert said.out.startswith(f"{home}/disk2 is given up; {there} ledger")
    assert states(several) == {"disk1": "drained", "disk2": "lost", "disk3": "used"}
    assert rows(several)["disk2"]["reason"] == "an operator has given it up"
    shown = bk("bookie", "directories", "--dir", many).out
    assert "drained" in shown and "lost" in shown

    for command in ("drain-directory", "lose-directory"):
        words = ("--yes",) if command == "lose-directory" else ()
        bk("bookie", command, "--dir", many, home / "disk3", *words).refused("is the last ledger directory")
        bk("bookie", command, "--dir", many, home / "disk2", *words).refused("is lost already")
        bk("bookie", command, "--dir", many, home / "nowhere", *words).refused(
            "is not a ledger directory of this bookie"
        )
    unasked = bk("bookie", "lose-directory", "--dir", many, home / "nowhere")
    unasked.refused("is not a ledger directory of this bookie", f"{home}/disk3")
    bk("bookie", "add-directory", "--dir", many, home / "disk3").refused("is a ledger directory of this bookie already")
    bk("bookie", "add-directory", "--dir", many, home / "nowhere").refused("does not exist: make the directory")


def test_a_directory_that_is_a_link_is_known_by_its_name(tmp_path: Path) -> None:
    """The configuration names the link, and a start compares the names. Where there are several, each entry log is
    shown with its directory."""
    (tmp_path / "disk1").mkdir()
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with bookies(tmp_path, ()) as cluster:
        cluster.add("many", "--ledger-dir", str(tmp_path / "disk1"))
        cluster.await_serving()
        many = tmp_path / "many"
        said = bk("bookie", "add-directory", "--dir", many, tmp_path / "link")
        assert said.out.startswith(f"{tmp_path}/link is used for ledgers from now on"), said.err
        assert states(cluster) == {"disk1": "used", "link": "used"}
        for _ in range(2):
            assert bk("ledger", "append", "-m", cluster.uri, *quorum(1), stdin=b"x\n").status == 0
        found = bk("bookie", "gc", "--dir", many, "--dry-run", "--json").document["logs"]
        assert {row["directory"] for row in found} == {str(tmp_path / "disk1"), str(tmp_path / "link")}
        assert "directory" in bk("bookie", "gc", "--dir", many, "--dry-run").out
        said = bk("bookie", "drain-directory", "--dir", many, tmp_path / "link")
        assert said.out.startswith(f"{tmp_path}/link is empty of ledgers"), said.err
        assert states(cluster) == {"disk1": "used", "link": "drained"}


def test_cookies_and_offline_commands_know_the_directories(several: Bookies) -> None:
    many = several.home / "many"
    in_use = [row["ledger_dir"] for row in rows(several).values() if row["state"] == "used"]
    shown = bk("bookie", "cookie", "show", "--dir", many, "-m", several.uri, "--json").document
    assert shown[-1]["where"] == "metadata"
    assert {f"{place}/VERSION" for place in in_use} <= {row["where"] for row in shown}
    assert all(row["problem"] is None and set(in_use) <= set(row["ledgers"]) for row in shown), shown
    made = bk("bookie", "cookie", "generate", "--dir", many, "-m", several.uri)
    assert made.status == 0 and all(str(place) in made.out for place in in_use)
    for command in ("gc", "scrub"):
        bk("bookie", command, "--offline", "--dir", many).refused("choose one with --ledger-dir")
        bk("bookie", command, "--dir", many, "--ledger-dir", in_use[0]).refused("needs --offline", status=2)
        bk("bookie", command, "--offline", "--dir", many, "--ledger-dir", in_use[0]).refused("a bookie runs on")


def test_the_one_directory_of_a_bookie_is_shown(several: Bookies) -> None:
    one = several.home / "one"
    (row,) = bk("bookie", "directories", "--dir", one, "--json").document
    assert (row["ledger_dir"], row["journal_dir"]) == (str(one / "ledgers"), str(one / "journal"))
    assert (row["number"], row["state"], row["disk"], row["reason"]) == (None, "used", "writable", None)
    assert 0 < row["free_bytes"] <= row["total_bytes"]
    shown = bk("bookie", "directories", "--dir", one).out
    assert "1 ledger directory" in shown and "used" in shown and "None" not in shown


def test_a_bookie_with_one_directory_says_how_it_gets_more(several: Bookies) -> None:
    one = several.home / "one"
    for words in (("add-directory", several.home), ("drain-directory", one / "ledgers")):
        bk("bookie", words[0], "--dir", one, *words[1:]).refused("this bookie has one ledger directory", "ledger_dirs")
    said = bk("bookie", "lose-directory", "--dir", one, one / "ledgers", "--yes")
    said.refused(f"the bookie in {one} has one ledger directory, and cannot do without it", "--bookie-id")
    nowhere = several.home / "nowhere"
    said = bk("bookie", "lose-directory", "--dir", nowhere, nowhere / "ledgers", "--yes")
    said.refused(f"there is no bookie in {nowhere}")


def test_a_directory_of_a_stopped_bookie_is_given_up(tmp_path: Path) -> None:
    """The next start goes on without it, though it is configured still or not any more."""
    for name in ("disk1", "disk2"):
        (tmp_path / name).mkdir()
    words = ("--ledger-dir", str(tmp_path / "disk1"), "--ledger-dir", str(tmp_path / "disk2"))
    with bookies(tmp_path, ()) as cluster:
        cluster.add("many", *words)
        cluster.await_serving()
        many = tmp_path / "many"
        for _ in range(3):
            assert bk("ledger", "append", "-m", cluster.uri, *quorum(1), stdin=b"x\n").status == 0
        assert cluster["many"].stop(signal.SIGTERM) == 0
        bk("bookie", "directories", "--dir", many).refused(f"no bookie runs in {many}")
        bk("bookie", "drain-directory", "--dir", many, tmp_path / "disk2").refused(f"no bookie runs in {many}")
        said = bk("bookie", "lose-directory", "--dir", many, tmp_path / "disk2", stdin=b"n\n")
        assert said.status == 130 and f"The copies on {tmp_path}/disk2 are given up" in said.out
        listed = read_volumes(PosixDisk(), str(many))
        assert listed is not None and len(listed.serving) == 2, "whoever is asked may say no"
        said = bk("bookie", "lose-directory", "--dir", many, tmp_path / "disk2", "--yes")
        assert said.status == 0, said.err
        assert said.out.startswith(f"{tmp_path}/disk2 is given up; take it out of ledger_dirs.")
        bk("bookie", "lose-directory", "--dir", many, tmp_path / "disk2", "--yes").refused("is lost already")
        bk("bookie", "lose-directory", "--dir", many, tmp_path / "disk1", "--yes").refused("is the last ledger directo")
        cluster.add("many", *words[:2]).until_said(r"serves at \S+")
        assert states(cluster) == {"disk1": "used", "disk2": "lost"}
        assert bk("bookie", "status", "--dir", many).status == 0


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """The directory of a bookie that does not run, with its list alone."""
    listed = VolumeList(1).with_new("/a", "/a", VolumeState.USED).with_new("/b", "/b", VolumeState.USED)
    write_volumes(PosixDisk(), str(tmp_path), listed)
    return tmp_path


def test_a_bookie_that_starts_or_stops_keeps_its_list(stopped: Path) -> None:
    lock = PosixDisk().lock(str(stopped / "bookie.lock"))
    bk("bookie", "lose-directory", "--dir", stopped, "/b", "--yes").refused(
        f"a bookie starts or stops in {stopped}: try again"
    )
    lock.release()
    assert bk("bookie", "lose-directory", "--dir", stopped, "/b", "--yes").status == 0
    lock = PosixDisk().lock(str(stopped / "bookie.lock"))  # it was let go
    lock.release()


def test_a_damaged_list_is_said(stopped: Path) -> None:
    path = stopped / "volumes"
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(bytes(data))
    bk("bookie", "lose-directory", "--dir", stopped, "/b", "--yes").refused(f"{path} is damaged")


def test_a_directory_whose_disk_is_gone_can_be_given_up(stopped: Path) -> None:
    """Its name may be a link to nowhere, or a file."""
    for name in ("gone", "file"):
        place = stopped / name
        listed = read_volumes(PosixDisk(), str(stopped))
        assert listed is not None
        write_volumes(PosixDisk(), str(stopped), listed.with_new(str(place), str(place), VolumeState.USED))
        if name == "gone":
            os.symlink(stopped / "nowhere", place)
        else:
            place.write_text("x")
        assert bk("bookie", "lose-directory", "--dir", stopped, place, "--yes").status == 0
