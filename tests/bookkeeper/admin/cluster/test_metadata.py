"""``bk metadata``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from bookkeeper import BookKeeper
from bookkeeper.launchers.zookeeper import ZooKeeperServer
from bookkeeper.meta import Metadata
from bookkeeper.real import run, system_seams
from tests.bookkeeper.admin.commands import bk

CREDENTIALS = {"BK_ZOOKEEPER_USER": "bk", "BK_ZOOKEEPER_PASSWORD": "planted"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
def embedded(tmp_path: Path) -> str:
    """A cluster with a ledger, stopped."""

    async def fill() -> None:
        async with BookKeeper.connect(f"embedded://{tmp_path}/bk?bookies=1") as client:
            ledger = await client.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1)
            await ledger.append(b"hello")
            await ledger.close()

    run(fill())
    return f"embedded://{tmp_path}/bk"


def test_a_cluster_moves_to_a_file_and_says_so(embedded: str, tmp_path: Path) -> None:
    target = f"sqlite://{tmp_path}/there.db"
    said = bk("metadata", "copy", embedded, target)
    assert said.status == 0, said.err
    assert f"is now at {target}: 1 ledger, " in said.out
    assert "compared byte for byte" in said.out
    shown = bk("metadata", "show", "-m", target, "--json").document
    assert (shown["layout"], len(shown["copies"]), shown["bookies_known"]) == ("hierarchical", 1, 1)
    assert shown["copies"][0] in bk("metadata", "show", "-m", target).out
    assert "[" not in bk("metadata", "show", "-m", target).out, "a list is shown as words"
    assert bk("metadata", "copy", embedded, target, "--json").document["already"]
    bk("bookies", "-m", embedded).refused(f"moved to {target}")


def test_what_is_open_is_not_copied(embedded: str, tmp_path: Path) -> None:
    async def job() -> None:
        async with BookKeeper.connect(embedded):
            said = await asyncio.to_thread(bk, "metadata", "copy", embedded, f"sqlite://{tmp_path}/there.db")
            said.refused("another process has", "stop that process first")
        metadata = await Metadata.connect(f"sqlite://{tmp_path}/bk/metadata.sqlite", system_seams())
        said = await asyncio.to_thread(bk, "metadata", "copy", embedded, f"sqlite://{tmp_path}/there.db")
        said.refused("1 other process uses", "stop them first")
        await metadata.close()

    run(job())


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        ("sqlite:///nowhere/x.db", "sqlite:///tmp/y.db", ["there is no cluster at sqlite:///nowhere/x.db"]),
        ("embedded:///nowhere", "sqlite:///tmp/y.db", ["there is no cluster at embedded:///nowhere"]),
        ("memory:", "sqlite:///tmp/y.db", ["cannot be copied"]),
        ("zk+flat://127.0.0.1:1/ledgers", "sqlite:///tmp/y.db", ["give the address without a layout"]),
    ],
)
def test_what_cannot_be_copied_is_one_sentence(source: str, target: str, words: list[str]) -> None:
    bk("metadata", "copy", source, target).refused(*words)


@pytest.mark.zookeeper
@pytest.mark.rule("X26", "X58")
def test_nodes_that_are_open_are_listed_and_fixed(server: ZooKeeperServer) -> None:
    uri = f"zk://{server.address}/audited"
    assert bk("init", "-m", uri).status == 0
    audit = ("metadata", "audit-acls", "-m", uri, "--json")
    found = bk(*audit, environment=CREDENTIALS)
    assert found.status == 1
    assert '"problem": "everybody may change it", "fixed": false' in found.out
    rows = bk(*audit, "--fix", environment=CREDENTIALS).document
    assert {row["path"] for row in rows} >= {"/audited", "/audited/LAYOUT", "/audited/available/readonly"}
    assert bk(*audit, environment=CREDENTIALS).document == []
    bk("bookies", "-m", uri).refused("access list")
    bk("bookies", "-m", uri, environment=CREDENTIALS | {"BK_ZOOKEEPER_PASSWORD": "other"}).refused("digest user bk")


def test_a_file_has_no_access_lists(tmp_path: Path) -> None:
    uri = f"sqlite://{tmp_path}/m.db"
    bk("init", "-m", uri)
    bk("metadata", "audit-acls", "-m", uri).refused("no access lists")


@pytest.mark.rule("M10", "M6")
def test_a_file_that_was_restored_is_refused_until_the_loss_is_accepted(embedded: str, tmp_path: Path) -> None:
    """Bookies that had seen more did not start, and nothing an operator could say changed that."""
    file, backup = tmp_path / "bk" / "metadata.sqlite", tmp_path / "backup"
    backup.write_bytes(file.read_bytes())
    assert not file.with_name("metadata.sqlite-wal").exists(), "it was closed"

    async def more() -> None:
        async with BookKeeper.connect(f"{embedded}?bookies=1") as client:
            for _ in range(3):
                async with await client.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1) as ledger:
                    await ledger.append(b"lost")

    run(more())
    file.write_bytes(backup.read_bytes())
    bk("ledger", "list", "-m", f"{embedded}?bookies=1").refused("older state")
    command = ("metadata", "accept-rollback", "-m", embedded)
    bk(*command, "--json").refused("give --yes, too", status=2)
    bk(*command, "--bookie", "b1", "--yes").refused("expected ID=HOST:PORT", status=2)
    refused = bk(*command, "--yes")
    assert refused.status == 1
    assert "not every bookie has answered" in refused.err and "--without" in refused.err
    [name] = bk("bookies", "-m", f"sqlite://{file}", "--json").document
    found = bk(*command, "--yes", "--json", "--without", name["bookie"]).document
    assert found["next_id"] > 2**32 and list(found["away"]) == [name["bookie"]]

    async def survivors() -> tuple[bytes, int]:
        async with BookKeeper.connect(f"{embedded}?bookies=1") as client:
            async with await client.open_ledger(0) as reader:
                payload = await reader.read_entry(0)
            async with await client.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1) as ledger:
                return payload, ledger.id

    payload, new = run(survivors())
    assert payload == b"hello" and new >= found["next_id"]


def test_a_backup_is_written_privately_and_old_ones_are_removed(embedded: str, tmp_path: Path) -> None:
    place = tmp_path / "backups"
    place.mkdir()
    other = place / "metadata-of-mine.backup"
    other.write_text("kept")
    files = [bk("metadata", "backup", place, "-m", embedded, "--keep", 2, "--json").document["file"] for _ in range(3)]
    assert sorted(map(str, place.iterdir())) == sorted([*files[1:], str(other)])
    assert Path(files[2]).stat().st_mode & 0o077 == 0
    said = bk("metadata", "backup", place, "-m", embedded, "--keep", 2)
    assert "1 ledger, " in said.out and f"removed: {Path(files[1]).name}" in said.out


def test_backups_of_another_cluster_and_of_a_wrong_clock_stay_and_count_for_nothing(
    embedded: str, tmp_path: Path
) -> None:
    def backup() -> Path:
        return Path(bk("metadata", "backup", tmp_path / "b", "-m", embedded, "--keep", 1, "--json").document["file"])

    first = backup()
    others = first.with_name("metadata-20010101T000000.000Z.backup")
    others.write_text(first.read_text().replace('"instance_id": "', '"instance_id": "x'))
    unreadable, later = (
        others.with_name("metadata-20020101T000000.000Z.backup"),
        first.with_name("metadata-29990101T000000.000Z.backup"),
    )
    unreadable.write_text("nothing\n")
    first.rename(later)
    second = backup()
    assert set(second.parent.iterdir()) == {others, unreadable, later, second}
    third = backup()
    assert set(third.parent.iterdir()) == {others, unreadable, later, third}


def test_a_backup_is_restored_into_an_empty_store_and_no_other(embedded: str, tmp_path: Path) -> None:
    file = bk("metadata", "backup", tmp_path / "backups", "-m", embedded, "--json").document["file"]
    target = f"sqlite://{tmp_path}/restored.db"
    said = bk("metadata", "restore", file, target)
    assert said.status == 0, said.err
    assert "1 ledger, compared byte for byte" in said.out
    assert f"bk metadata accept-rollback --metadata {target}" in said.out
    bk("metadata", "restore", file, target).refused("is not empty")
    Path(file).write_text(Path(file).read_text()[:-20])
    bk("metadata", "restore", file, f"sqlite://{tmp_path}/another.db").refused(
        file, "no backup of metadata, or damaged"
    )
    bk("metadata", "backup", tmp_path / "b", "-m", f"sqlite://{tmp_path}/none.db").refused("there is no cluster")
