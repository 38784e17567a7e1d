"""``bk config``."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from bookkeeper.bookie.config import load_config
from tests.bookkeeper.admin.commands import bk

APACHE = """\
bookiePort=3181
metadataServiceUri=zk+hierarchical://zk1:2181/ledgers
journalDirectories=/journal
ledgerDirectories=/data
numReadWorkerThreads=8
bookieId=
"""


@pytest.fixture
def apache(tmp_path: Path) -> Path:
    path = tmp_path / "bk_server.conf"
    path.write_text(APACHE)
    return path


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    path = tmp_path / "bookie.toml"
    path.write_text(f'metadata_uri = "sqlite://{tmp_path}/m.db"\ndirectory = "{tmp_path}/b1"\nread_only = true\n')
    return path


def test_good_settings_are_good_and_start_nothing(toml: Path, tmp_path: Path) -> None:
    said = bk("config", "check", toml, "--autorecovery")
    assert (said.status, said.err) == (0, "")
    assert said.out.startswith("these settings are good: 4 settings given")
    document = bk("config", "check", toml, "--json").document
    assert document["settings"]["read_only"] is True
    assert {path.name for path in tmp_path.iterdir()} == {"bookie.toml"}


def test_a_reserve_that_may_not_suffice_is_a_warning(toml: Path) -> None:
    assert bk("config", "check", toml, "--json").document["warnings"] == []
    toml.write_text(toml.read_text() + "[storage]\nreserve_bytes = 1048576\n")
    said = bk("config", "check", toml)
    assert said.status == 0 and "\nwarning: reserve_bytes is 1048576, and with the other sizes" in said.out
    assert len(bk("config", "check", toml, "--json").document["warnings"]) == 1


def test_options_alone_are_checked_too(tmp_path: Path) -> None:
    good = ("--metadata", f"sqlite://{tmp_path}/m.db", "--dir", tmp_path / "b")
    assert bk("config", "check", *good).status == 0
    bk("config", "check", *good, "--listen", "0.0.0.0:1").refused("open to everyone")
    bk("config", "check", "--dir", "/d").refused("--metadata URI")
    bk("config", "check", *good, "--lisen", "x").refused("--lisen", "--listen", status=2)


def test_a_wrong_setting_is_named_with_the_nearest(toml: Path) -> None:
    toml.write_text(toml.read_text() + "read_onli = true\n")
    bk("config", "check", toml).refused("unknown option: read_onli", "did you mean read_only")
    toml.write_text("no toml")
    bk("config", "check", toml).refused(str(toml))
    bk("config", "check", f"{toml}.gone").refused("No such file")


def test_files_that_are_named_are_there(toml: Path, tmp_path: Path) -> None:
    bk("config", "check", toml, "--tls-cert", tmp_path / "none.pem").refused("tls.cert", "none.pem")


def test_the_file_is_named_once(toml: Path) -> None:
    bk("config", "check", toml, "--config", toml).refused("once", status=2)


def test_settings_are_shown_with_their_sources(toml: Path) -> None:
    rows = {row["setting"]: row for row in bk("config", "show", toml, "--port", "4000", "--json").document}
    assert (rows["listen"]["value"], rows["listen"]["from"]) == ("127.0.0.1:4000", "command line")
    assert (rows["read_only"]["value"], rows["read_only"]["from"]) == (True, str(toml))
    said = bk("config", "show", "--dir", "/d", environment={"BK_METADATA": "sqlite:///m.db"}).out
    assert "BK_METADATA" in said


def test_apaches_file_is_translated_and_written_once(apache: Path, tmp_path: Path) -> None:
    target = tmp_path / "bookie.toml"
    words = ("config", "import", apache, "--dir", tmp_path / "bk", "--insecure", "--write", target)
    said = bk(*words, environment={"BK_ZOOKEEPER": None})  # type: ignore[dict-item]  # not inherited
    assert said.status == 0, said.err
    assert "listen = 0.0.0.0:3181" in said.out
    assert "numReadWorkerThreads" in said.out.split("meaningless here, because memory and threads of the JVM")[1]
    made = load_config(str(target))
    assert (made.listen, made.storage.journal_dir) == ("0.0.0.0:3181", "/journal/bookkeeper-py-journal")
    before = target.read_text()
    bk(*words[:-3], "--insecure", "--write", target).refused("exists")
    assert target.read_text() == before
    assert tomllib.loads(before)["insecure"] is True


def test_what_apaches_bookie_does_openly_is_not_done_unasked(apache: Path, tmp_path: Path) -> None:
    target = tmp_path / "bookie.toml"
    said = bk("config", "import", apache, "--dir", tmp_path / "bk", "--write", target)
    assert said.status == 1 and "open to everyone" in said.err
    assert not target.exists()


def test_a_refused_setting_is_named_and_left_out_only_on_purpose(apache: Path, tmp_path: Path) -> None:
    apache.write_text(APACHE + "extraServerComponents=a.B\nbookiePrt=1\n")
    target = tmp_path / "bookie.toml"
    words = ("config", "import", apache, "--dir", tmp_path / "bk", "--insecure", "--write", target)
    said = bk(*words, "--leave-out", "bookiePrt")
    assert said.status == 1 and "1 setting of" in said.err and "extraServerComponents" in said.err
    assert not target.exists()
    assert bk(*words, "--leave-out", "bookiePrt", "--leave-out", "extraServerComponents").status == 0
    bk(*words, "--leave-out", "else").refused("has no else", status=2)


def test_apaches_file_is_checked_by_its_name(apache: Path) -> None:
    assert "bk config import" in bk("config", "check", apache, "--dir", "/d", "--insecure").out
    bk("config", "check", apache, "--dir", "/d").refused("open to everyone")
    bk("config", "check", apache).refused("--dir", status=2)
    apache.write_text("bookiePort=1\n")
    bk("config", "check", apache, "--dir", "/d").refused("metadataServiceUri")


def test_passwords_of_apaches_file_are_not_shown(apache: Path) -> None:
    apache.write_text(APACHE + "passwd=hush\nhttpServerKeyStorePassword=hush\n")
    words = ("config", "import", apache, "--dir", "/d", "--insecure")
    assert "hush" not in bk(*words).out and "hush" not in bk(*words, "--json").out
