"""A query moves with its checkpoint: a directory, a gateway, another directory; half a copy is refused by Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from spark_wal.checkpoint_copy.contents import note
from spark_wal.copy_command import checkpoint
from tests.spark_wal.processes import Driver, GatewayProcess, assert_exactly_once, conf

pytest.importorskip("pyspark")
pytest.importorskip("bookkeeper.launchers.java")

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(400)]


def copied(source: str, target: str) -> None:
    result = CliRunner().invoke(checkpoint, ["copy", source, target])
    assert result.exit_code == 0, result.output


@pytest.mark.rule("S10")
def test_a_query_goes_on_from_each_copy_as_if_it_had_never_moved(tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path / "namespace")
    gateway.start()
    out = tmp_path / "out"
    here, there, back = f"file://{tmp_path}/here", gateway.location("a/there"), f"file://{tmp_path}/back"

    def run(location: str, until: int) -> Callable[[str], object]:
        driver = Driver(location, out, conf=conf(), until=until)
        try:
            return driver.result().get
        finally:
            driver.kill()

    try:
        assert run(here, 1)("finished")
        copied(here, there)
        assert run(there, 3)("finished")
        copied(there, back)
        last = run(back, 5)("finished")
    finally:
        gateway.kill()
    assert isinstance(last, int)
    assert_exactly_once(out, last)
    assert Driver.attempts_in(out) == list(range(last + 1))

    half = tmp_path / "half"
    shutil.copytree(tmp_path / "back", half)
    shutil.rmtree(half / "offsets")
    (half / "metadata").write_bytes(note(here))
    (half / ".metadata.crc").unlink(missing_ok=True)
    assert "unfinished_bk_checkpoint_copy" in str(run(f"file://{half}", 9)("failed"))
