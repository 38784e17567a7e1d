from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bookkeeper.errors import (
    ConfigError,
    MetadataConflictError,
    MetadataError,
    MetadataFormatError,
    MetadataRolledBackError,
    MetadataUnavailableError,
    NoSuchKeyError,
    Outcome,
    SessionExpiredError,
)
from bookkeeper.meta.store import Create, Set, Version
from bookkeeper.meta.stores import sqlite_file
from bookkeeper.meta.stores.sqlite_file import SqliteFile, reason
from bookkeeper.meta.stores.tree import find
from tests.bookkeeper.real.places import in_place_of_another

LEASE_S = 10.0


class Files:
    """Several connections to one file under one clock."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.now = 100.0
        self.open_files: list[SqliteFile] = []

    def open(self) -> SqliteFile:
        file = SqliteFile(self.path, monotonic=lambda: self.now, wall_ms=lambda: 5, lease_s=LEASE_S)
        file.open_session()
        self.open_files.append(file)
        return file


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    files = Files(tmp_path / "m.db")
    yield files
    for file in files.open_files:
        file.close()


def create(file: SqliteFile, path: str, *, ephemeral: bool = False) -> None:
    file.write(file.session, lambda transaction: transaction.run([Create(path, b"", ephemeral)]))


def test_the_file_is_durable_by_its_settings(files: Files) -> None:
    file = files.open()
    assert file._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert file._db.execute("PRAGMA synchronous").fetchone() == (2,)


@pytest.mark.rule("X43")
@pytest.mark.parametrize("earlier", [False, True])
def test_nobody_else_reads_the_file_or_what_is_beside_it(files: Files, tmp_path: Path, earlier: bool) -> None:
    """SQLite makes files that everybody reads, and ledgers' passwords are in them."""
    before = os.umask(0o022)
    try:
        first = files.open()
        create(first, "/a")
        if earlier:
            for path in tmp_path.iterdir():
                path.chmod(0o644)
        create(files.open(), "/b")
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"m.db": 0o600, "m.db-wal": 0o600, "m.db-shm": 0o600}


def test_what_was_written_is_there_after_reopening(files: Files) -> None:
    create(files.open(), "/a")
    assert files.open().read(lambda tree: tree.names("/")) == ["a"]


def test_a_failed_transaction_leaves_nothing(files: Files) -> None:
    file = files.open()
    before = file.last_transaction
    with pytest.raises(MetadataConflictError):
        file.write(file.session, lambda transaction: transaction.run([Create("/a"), Set("/a", b"", Version(7))]))
    assert file.read(lambda tree: tree.names("/")) == []
    assert file.last_transaction == before


def test_what_others_have_done_is_seen_also_by_a_transaction_that_fails(files: Files) -> None:
    """It counts when the file shows an older state later."""
    file, other = files.open(), files.open()
    other.write(other.session, lambda transaction: transaction.run([Create("/a", b"")]))
    with pytest.raises(NoSuchKeyError):
        file.write(file.session, lambda transaction: transaction.run([Set("/none", b"", None)]))
    assert file.last_transaction == other.last_transaction


@pytest.mark.rule("Z1", "Z9")
def test_nobody_writes_after_the_end_of_its_lease(files: Files) -> None:
    file = files.open()
    files.now += LEASE_S - 0.001
    create(file, "/a")
    files.now += 0.001
    with pytest.raises(SessionExpiredError):
        create(file, "/b")
    file.open_session()
    create(file, "/b")


@pytest.mark.rule("Z1")
def test_a_lease_is_renewed_by_looks_alone(files: Files) -> None:
    file = files.open()
    for _ in range(10):
        files.now += LEASE_S / 2
        file.poll(())
    create(file, "/a")


@pytest.mark.rule("Z9")
def test_a_look_after_the_end_of_the_lease_says_so(files: Files) -> None:
    file = files.open()
    files.now += LEASE_S
    with pytest.raises(SessionExpiredError):
        file.poll(())


def test_ephemeral_values_go_when_the_lease_has_run_out_not_before(files: Files) -> None:
    file, other = files.open(), files.open()
    create(file, "/e", ephemeral=True)
    files.now += LEASE_S / 2
    other.poll(())
    files.now += LEASE_S / 2 - 0.001
    other.poll(())
    assert other.find("/e") is not None
    files.now += 0.001
    other.poll(())
    assert other.find("/e") is None


def test_news_are_what_changed_since_the_last_look(files: Files) -> None:
    file, other = files.open(), files.open()
    keys = [("value", "/a"), ("family", "/"), ("value", "/b"), ("family", "/a")]
    for key in keys:
        file.watch(key)
    file.poll(keys)
    assert file.poll(keys).changed == []
    create(other, "/a")
    assert set(file.poll(keys).changed) == {("value", "/a"), ("family", "/"), ("family", "/a")}
    create(file, "/a/c")
    assert file.poll(keys).changed == [("family", "/a")]
    assert file.poll(keys).changed == []


def test_a_value_made_anew_between_two_looks_is_news(files: Files) -> None:
    file, key = files.open(), ("value", "/a")
    create(file, "/a")
    file.watch(key)
    file.write(file.session, lambda transaction: transaction.delete("/a", None))
    create(file, "/a")
    assert file.poll([key]).changed == [key]


def test_what_nobody_watches_any_more_is_forgotten(files: Files) -> None:
    file = files.open()
    file.watch(("value", "/a"))
    file.poll(())
    assert file._stamps == {}


@pytest.mark.rule("M10", "Z14")
def test_a_file_with_an_older_state_is_not_written(files: Files) -> None:
    file = files.open()
    create(file, "/a")
    with sqlite3.connect(files.path) as connection:
        connection.execute("UPDATE state SET tx = 0")
    connection.close()
    with pytest.raises(MetadataRolledBackError):
        create(file, "/b")
    with pytest.raises(MetadataRolledBackError):
        file.read(lambda tree: find(tree, "/a"))


@pytest.mark.rule("M10")
def test_a_file_that_was_replaced_is_noticed(files: Files, tmp_path: Path) -> None:
    file = files.open()
    (tmp_path / "m.db").rename(tmp_path / "old.db")
    with pytest.raises(MetadataRolledBackError):
        file.poll(())


@pytest.mark.rule("M10")
def test_a_backup_that_was_put_back_in_place_is_noticed_by_the_next_look(files: Files, tmp_path: Path) -> None:
    """The file stayed the same one, and a look did not compare what it shows with what was seen: whoever only waited
    for changes went on with what was gone."""
    file = files.open()
    with sqlite3.connect(tmp_path / "backup") as backup:
        file._db.backup(backup)
    create(file, "/a")
    file.poll(())
    with sqlite3.connect(files.path) as live:
        backup.backup(live)
    for connection in (backup, live):
        connection.close()
    with pytest.raises(MetadataRolledBackError):
        file.poll(())


@pytest.mark.rule("M10")
@pytest.mark.parametrize("name", ["m.db", "m.db-wal"])
def test_a_file_of_the_store_that_was_removed_is_noticed_before_anything_is_read_or_written(
    files: Files, tmp_path: Path, name: str
) -> None:
    """Reading and writing went on in the file that was open here, which nobody else would ever see again."""
    file = files.open()
    create(file, "/a")
    (tmp_path / name).rename(tmp_path / "away")
    with pytest.raises(MetadataRolledBackError):
        file.read(lambda tree: find(tree, "/a"))
    with pytest.raises(MetadataRolledBackError):
        create(file, "/b")
    with pytest.raises(MetadataRolledBackError):
        file.poll(())


def test_a_lock_that_is_not_to_be_had_is_no_answer(files: Files) -> None:
    file = files.open()
    file._db.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(files.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(MetadataUnavailableError, match="locked"):
        create(file, "/a")
    assert file.read(lambda tree: tree.names("/")) == []
    other.close()


def test_another_kind_of_file_is_refused(files: Files, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database, certainly not one of ours")
    with pytest.raises(MetadataUnavailableError):
        Files(tmp_path / "text").open()
    file = files.open()
    file._db.execute("PRAGMA user_version = 99")
    with pytest.raises(MetadataFormatError):
        files.open()


def test_a_file_of_the_first_format_becomes_one_of_this(files: Files) -> None:
    file = files.open()
    create(file, "/old")
    for statement in ("ALTER TABLE nodes DROP COLUMN born", "PRAGMA user_version = 1"):
        file._db.execute(statement)
    file._db.close()
    files.open_files.clear()
    file = files.open()
    create(file, "/new")
    assert [file.read(lambda tree, path=path: find(tree, path)).created_txn for path in ("/old", "/new")] == [0, 2]  # type: ignore[misc]
    assert file._db.execute("PRAGMA user_version").fetchone() == (sqlite_file.FORMAT,)
    assert files.open().read(lambda tree: tree.names("/")) == ["new", "old"]


def test_a_network_file_system_is_refused(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "network_file_system", lambda path: "nfs4")
    with pytest.raises(MetadataError, match="nfs4"):
        files.open()


def test_a_place_where_no_file_can_be_is_named(files: Files, tmp_path: Path) -> None:
    files.path = str(tmp_path / "absent" / "m.db")
    with pytest.raises(MetadataError, match="cannot be made: there is no directory") as raised:
        files.open()
    assert (raised.value.retryable, raised.value.outcome) == (False, Outcome.REJECTED), "nothing was done"
    files.path = str(tmp_path)
    with pytest.raises(MetadataUnavailableError, match="is a directory, but the metadata are a file"):
        files.open()


def test_why_a_file_cannot_be_used_is_said_for_people(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, " * 100)
    for file, statement, words in (
        (tmp_path / "nowhere" / "file", "", "this user may not open the file"),
        (":memory:", "CREATE TABLE t (x)", "this user may read the file and not write it"),
        (tmp_path / "text", "SELECT * FROM t", "the file holds something else"),
        (":memory:", "SELECT * FROM nowhere", "no such table: nowhere"),
    ):
        with pytest.raises(sqlite3.Error) as caught, closing(sqlite3.connect(file)) as database:
            database.execute("PRAGMA query_only = ON")
            database.execute(statement)
        assert reason(caught.value).startswith(words)


@pytest.mark.rule("X43")
@pytest.mark.parametrize("beside", ["", "-wal", "-shm", "-journal"])
def test_files_of_another_user_are_no_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: str) -> None:
    """Cause: who makes the file before somebody else does read the ledgers' passwords that came into it."""
    (tmp_path / f"metadata.db{beside}").touch()
    with pytest.raises(ConfigError, match=in_place_of_another(monkeypatch, tmp_path)):
        SqliteFile(str(tmp_path / "metadata.db"), monotonic=lambda: 0.0, wall_ms=lambda: 0, lease_s=1.0)
