"""The drill: metadata are backed up while writers write, lost, restored, and the cluster goes on."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from bookkeeper import BookKeeper
from bookkeeper.launchers.zookeeper import ZooKeeperServer, free_port
from bookkeeper.real import run
from tests.integration.processes import Process, bk, bk_json, bookies

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


async def written(uri: str, count: int) -> int:
    """A closed ledger with so many entries. Its id."""
    async with BookKeeper.connect(uri) as client, await client.create_ledger() as ledger:
        for number in range(count):
            await ledger.append(b"%d" % number)
        return ledger.id


async def read(uri: str, ledger_id: int) -> list[bytes]:
    async with BookKeeper.connect(uri) as client:
        reader = await client.open_ledger(ledger_id)
        return [entry.payload async for entry in reader.read(0, reader.last_add_confirmed)]


def where(process: Process) -> str:
    """The address of a bookie."""
    return process.until_said(r"serves at (\d+\.\d+\.\d+\.\d+:\d+)").group(1)


@pytest.mark.rule("M10")
def test_metadata_that_are_lost_are_restored_from_a_backup(tmp_path: Path) -> None:
    port = free_port()
    uri = f"zk://127.0.0.1:{port}/ledgers"
    with ZooKeeperServer(tmp_path / "zk", port=port) as server, bookies(tmp_path, metadata=uri) as cluster:
        kept = run(written(uri, 50))
        backup = bk_json("metadata", "backup", str(tmp_path / "backups"), "--metadata", uri, "--keep", "2")
        assert backup["ledgers"] == 1
        assert stat.S_IMODE(Path(backup["file"]).stat().st_mode) == 0o600, "passwords are in it"
        lost = run(written(uri, 10))
        addresses = [f"--bookie={name}={where(process)}" for name, process in cluster.each.items()]
        server.stop()
        with ZooKeeperServer(tmp_path / "new-zk", port=port):
            status, out, err = bk("metadata", "restore", backup["file"], uri)
            assert status == 0, err
            assert "1 ledger, compared byte for byte" in out
            status, out, err = bk("metadata", "accept-rollback", "--metadata", uri, "--yes", *addresses)
            assert status == 0, err
            assert str(lost) in out, "what the backup does not know is named"
            for name, process in cluster.each.items():
                process.stop()
                cluster.restart(name)
            assert run(read(uri, kept)) == [b"%d" % number for number in range(50)]
            later = run(written(uri, 5))
            assert later > lost
            assert run(read(uri, later)) == [b"%d" % number for number in range(5)]
            cluster.stop()
