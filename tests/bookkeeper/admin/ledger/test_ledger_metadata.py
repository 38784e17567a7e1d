"""``bk ledger metadata``: the stored bytes, out and back, and nothing that can be read is replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from bookkeeper import BookKeeper
from bookkeeper.real import run
from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import Bookies


async def _store(uri: str, ledger: int, value: bytes | None) -> None:
    """Write into the store as nobody should."""
    async with BookKeeper.connect(uri) as client:
        store, path = client.metadata_store.store, client.metadata_store.ledgers.path(ledger)  # type: ignore[arg-type]
        if value is None:
            await store.delete(path, None)
        else:
            await store.set(path, value, None)


@pytest.mark.rule("M2", "M6")
def test_metadata_go_out_and_come_back(cluster: Bookies, tmp_path: Path) -> None:
    number = int(bk("ledger", "append", "-m", cluster.uri, stdin=b"a\nb\n").out)
    file = tmp_path / "metadata"
    words = ("ledger", "metadata", number, "-m", cluster.uri)
    assert f"the metadata of ledger {number}" in bk(*words, "export", file).out
    bk(*words, "export", file).refused("is not replaced")
    assert "nothing is changed" in bk(*words, "restore", file).out

    run(_store(cluster.uri, number, b"rubbish"))
    assert "UNREADABLE" in bk("ledger", "list", "-m", cluster.uri, "--state", "open").out
    bk(*words, "export", tmp_path / "bad").refused("they were written as they are stored, but cannot be read")
    assert (tmp_path / "bad").read_bytes() == b"rubbish"
    assert "would put back" in bk(*words, "restore", file, "--dry-run").out
    assert bk(*words, "restore", file).status == 130, "nobody says yes"
    assert f"put back ledger {number}: closed" in bk(*words, "restore", file, "--yes").out
    assert bk("ledger", "read", number, "-m", cluster.uri).out == "a\nb\n"

    run(_store(cluster.uri, number, None))
    assert bk(*words, "restore", file, "--yes").status == 0
    assert bk("ledger", "read", number, "-m", cluster.uri).out == "a\nb\n"
    assert bk("ledger", "delete", number, "-m", cluster.uri, "--yes").status == 0
    bk(*words, "restore", file, "--yes").refused(f"bk ledger undelete {number}")
    assert bk("ledger", "delete", number, "-m", cluster.uri, "--yes", "--grace", 0).status == 0
    bk(*words, "restore", file, "--yes").refused("was deleted for good")


def test_files_that_are_no_metadata_and_ledgers_that_are_not_there(cluster: Bookies, tmp_path: Path) -> None:
    number = int(bk("ledger", "append", "-m", cluster.uri, stdin=b"a\n").out)
    other = int(bk("ledger", "append", "-m", cluster.uri, stdin=b"a\nb\n").out)
    file = tmp_path / "metadata"
    assert bk("ledger", "metadata", number, "-m", cluster.uri, "export", file).status == 0
    bk("ledger", "metadata", other, "-m", cluster.uri, "restore", file).refused("are not replaced")
    bk("ledger", "metadata", 987654, "-m", cluster.uri, "export", tmp_path / "x").refused("there is no ledger 987654")
    bk("ledger", "metadata", number, "-m", cluster.uri, "restore", tmp_path / "x").refused("does not exist")
    (tmp_path / "x").write_bytes(b"rubbish")
    said = bk("ledger", "metadata", number, "-m", cluster.uri, "restore", tmp_path / "x")
    said.refused(f"{tmp_path}/x does not have the metadata of a ledger: ")
