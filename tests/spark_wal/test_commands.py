from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from bookkeeper.real import PosixDisk
from spark_wal.commands import gateway


def test_help_reads_well() -> None:
    shown = CliRunner().invoke(gateway, ["webhdfs", "--help"]).output
    for word in ("--metadata", "--listen", "--advertise", "--namespace", "--quota", "checkpoints"):
        assert word in shown


def test_wrong_options_are_refused_with_a_reason() -> None:
    runner = CliRunner()
    listen = runner.invoke(gateway, ["webhdfs", "--metadata", "mem:x", "--listen", "nowhere"])
    assert listen.exit_code == 2
    assert "expected HOST:PORT" in listen.output
    quota = runner.invoke(gateway, ["webhdfs", "--metadata", "mem:x", "--quota", "/a=lots"])
    assert "expected /PATH=BYTES" in quota.output
    assert "--metadata" in runner.invoke(gateway, ["webhdfs"], env={"BK_METADATA": ""}).output


def test_a_gateway_that_cannot_start_ends_with_one_sentence(tmp_path: Path) -> None:
    disk = PosixDisk()
    disk.make_directories(str(tmp_path / "default"))
    lock = disk.lock(str(tmp_path / "default" / "lock"))
    result = CliRunner().invoke(gateway, ["webhdfs", "--metadata", f"file://{tmp_path}", "--listen", "127.0.0.1:0"])
    lock.release()
    assert result.exit_code == 1
    assert "another gateway uses" in result.output
