from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import spark_wal
from spark_wal.copy_command import checkpoint


def run(*arguments: str) -> Result:
    return CliRunner().invoke(checkpoint, ["copy", *arguments])


@pytest.fixture
def made(tmp_path: Path) -> Path:
    directory = tmp_path / "from"
    (directory / "offsets").mkdir(parents=True)
    (directory / "metadata").write_text('{"id":"0a"}')
    (directory / "offsets" / "0").write_text("v1")
    return directory


def test_there_and_back(made: Path, tmp_path: Path) -> None:
    with spark_wal.checkpoint_service(f"file://{tmp_path}/place", listen="127.0.0.1:0") as wal:
        there = run(str(made), wal.location("a"))
        assert there.exit_code == 0, there.output
        assert "copied and verified: 2 files, 13 bytes" in there.output
        assert f"checkpointLocation={wal.location('a')}" in there.output
        again = run(str(made), wal.location("a"), "--resume")
        assert "2 of them by an earlier copy" in again.output
        back = run(wal.location("a"), f"file://{tmp_path}/back")
    assert back.output.split("sha256")[1].split()[0] == there.output.split("sha256")[1].split()[0]
    assert (tmp_path / "back" / "offsets" / "0").read_text() == "v1"


def test_what_cannot_be_done_is_one_sentence(made: Path, tmp_path: Path) -> None:
    assert "not a checkpoint" in run(str(tmp_path / "none"), str(tmp_path / "to")).output
    assert "is not empty" in run(str(made), str(tmp_path)).output or "overlap" in run(str(made), str(tmp_path)).output
    assert "does not answer" in run(str(made), "webhdfs://127.0.0.1:1/a").output
    token = tmp_path / "token"
    token.write_text("x")
    token.chmod(0o644)
    assert "chmod 600" in run(str(made), "swebhdfs://127.0.0.1:1/a", "--token-file", str(token)).output


def test_help_says_what_is_not_copied() -> None:
    shown = run("--help").output
    for word in ("s3a://", "swebhdfs://", "_spark_metadata", "--resume", "--token-file"):
        assert word in shown
